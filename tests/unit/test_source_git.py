"""Clones, from local repositories made here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from caffeup.errors import DiskError, UsageError
from caffeup.host import RealHost
from caffeup.source.checkout import read_checkout, without_credentials
from caffeup.source.git import checked_url, clone, is_git_url, unanswered
from caffeup.source.git_said import explain
from caffeup.source.problems import NoAccess, NotFetched, Unreachable

NOBODY = {
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "n@example.org",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "n@example.org",
}


def git(*words: str, cwd: Path) -> str:
    env = {**os.environ, **NOBODY, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return subprocess.run(["git", *words], cwd=cwd, check=True, capture_output=True, text=True, env=env).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits on main, one on the branch ssd."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git("init", "-q", "-b", "main", cwd=folder)
    for text in ("one", "two"):
        (folder / "file").write_text(text)
        git("add", ".", cwd=folder)
        git("commit", "-q", "-m", text, cwd=folder)
    git("checkout", "-q", "-b", "ssd", "HEAD~1", cwd=folder)
    (folder / "file").write_text("ssd")
    git("commit", "-q", "-a", "-m", "ssd", cwd=folder)
    git("checkout", "-q", "main", cwd=folder)
    return folder


def test_clone_is_shallow_and_of_one_branch(repository: Path, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    clone(repository.as_uri(), tmp_path / "tree", branch="ssd", progress=lambda *step: steps.append(step))
    assert (tmp_path / "tree/file").read_text() == "ssd"
    found = read_checkout(tmp_path / "tree")
    assert found is not None
    assert (found.branch, found.shallow, found.dirty) == ("ssd", True, False)
    assert found.commit == git("rev-parse", "ssd", cwd=repository)
    assert git("rev-list", "--count", "HEAD", cwd=tmp_path / "tree") == "1"
    assert ("receiving objects", 3, 3) in steps


@pytest.mark.parametrize("length", [40, 10])
def test_a_commit_that_the_branch_has_left_behind(repository: Path, tmp_path: Path, length: int) -> None:
    wanted = git("rev-parse", "main~1", cwd=repository)
    clone(repository.as_uri(), tmp_path / "tree", branch="main", commit=wanted[:length])
    found = read_checkout(tmp_path / "tree")
    assert found is not None
    assert (found.commit, found.branch) == (wanted, "")
    assert (tmp_path / "tree/file").read_text() == "one"


@pytest.mark.parametrize(("branch", "commit"), [("nothing", ""), ("main", "f" * 40), ("main", "abcdef12")])
def test_what_is_not_there(repository: Path, tmp_path: Path, branch: str, commit: str) -> None:
    with pytest.raises(NotFetched) as caught:
        clone(repository.as_uri(), tmp_path / "tree", branch=branch, commit=commit)
    assert caught.value.commands


def test_hooks_of_the_users_templates_do_not_run(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = tmp_path / "templates/hooks/post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "templates"))
    clone(repository.as_uri(), tmp_path / "tree")
    assert not (tmp_path / "ran").exists()


def test_mirrors_of_the_users_configuration_are_used(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(f'[url "{repository.as_uri()}"]\n\tinsteadOf = https://example.invalid/caffe\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    clone("https://example.invalid/caffe", tmp_path / "tree", branch="main")
    assert (tmp_path / "tree/file").read_text() == "two"


def test_a_mirror_that_would_run_a_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(f'[url "ext::sh -c touch% {tmp_path}/ran% "]\n\tinsteadOf = https://example.invalid/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    with pytest.raises(NotFetched, match="could not fetch"):
        clone("https://example.invalid/caffe", tmp_path / "tree")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "url",
    [
        "--upload-pack=touch x",
        "-u",
        "ext::sh -c touch% x",
        "fd::17/foo",
        "ssh://-oProxyCommand=touch/x",
        "ssh://git@-oProxyCommand=x/y",
        "https://host/a\nb",
        "https://host/\x1b[31m",
    ],
)
def test_addresses_that_git_must_not_see(url: str) -> None:
    with pytest.raises(UsageError):
        checked_url(url)


@pytest.mark.parametrize("revision", ["--orphan", "-x", "a..b", "a b", "$(x)", "a\nb"])
def test_branches_that_are_none(tmp_path: Path, revision: str) -> None:
    with pytest.raises(UsageError):
        clone("https://example.invalid/x", tmp_path / "tree", branch=revision)


def test_a_host_that_refuses(tmp_path: Path) -> None:
    with pytest.raises(Unreachable) as caught:
        clone("https://user:secret@127.0.0.1:9/caffe.git", tmp_path / "tree")
    error = caught.value
    assert "secret" not in f"{error.brief}{error.details}{error.commands}"
    assert error.exit_code == 7


def test_a_host_that_never_answers(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(Unreachable, match="no answer"):
            clone(f"git://127.0.0.1:{port}/caffe", tmp_path / "tree", silence=0.5)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal: unable to access 'https://h/x/': Could not resolve host: h", Unreachable),
        ("fatal: unable to access 'https://h/x/': Failed to connect to h port 443: Connection timed out", Unreachable),
        ("fatal: unable to access 'https://h/x/': Received HTTP code 407 from proxy after CONNECT", Unreachable),
        (
            "fatal: unable to access 'https://h/x/': server certificate verification failed. CAfile: none CRLfile: none",
            Unreachable,
        ),
        ("error: RPC failed; curl 56 GnuTLS recv error (-9)\nfatal: early EOF", Unreachable),
        (
            "ssh: Could not resolve hostname h: Name or service not known\nfatal: Could not read from remote repository.",
            Unreachable,
        ),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", NoAccess),
        ("git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", NoAccess),
        ("fatal: unable to access 'https://h/x/': The requested URL returned error: 403", NoAccess),
        ("fatal: repository 'https://h/x/' not found", NotFetched),
        ("fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.", NotFetched),
        ("warning: Could not find remote branch y\nfatal: Remote branch y not found in upstream origin", NotFetched),
        ("remote: fatal: bad object abc\nremote: aborting due to possible repository corruption\nfatal: early EOF", NotFetched),
        ("fatal: something new", NotFetched),
        ("fatal: write error: No space left on device", DiskError),
    ],
)
def test_what_git_says_becomes_something_to_do(said: str, kind: type[Exception], tmp_path: Path) -> None:
    error = explain(said.split("\n"), "https://h/x", tmp_path)
    assert type(error) is kind
    assert error.commands


@pytest.mark.parametrize(
    ("said", "brief"),
    [
        (
            "fatal: unable to access 'https://h/x/': Could not resolve host: h",
            "cannot reach https://h/x: Could not resolve host: h",
        ),
        (
            "ssh: Could not resolve hostname h: Name or service not known\nfatal: Could not read from remote repository.",
            "cannot reach https://h/x: Could not resolve hostname h",
        ),
        (
            "fatal: unable to access 'https://h/x/': Failed to connect to h port 443: Connection timed out",
            "cannot reach https://h/x: Connection timed out",
        ),
        ("error: RPC failed; curl 56 recv error (-9)\nfatal: early EOF", "cannot reach https://h/x"),
    ],
)
def test_why_a_host_cannot_be_reached_is_said(said: str, brief: str, tmp_path: Path) -> None:
    assert explain(said.split("\n"), "https://h/x", tmp_path).brief == brief


def test_a_look_says_why_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        port = taken.getsockname()[1]
        why = unanswered(f"git://127.0.0.1:{port}/caffe", RealHost())
    assert why is not None
    assert "refused" in why


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("https://host/caffe.git", True),
        ("git@host:owner/caffe.git", True),
        ("host:caffe", True),
        ("file:///srv/caffe", True),
        ("ssh://git@host/caffe", True),
        ("ssd", False),
        ("./caffe", False),
        ("ftp://host/x", False),
        ("ext::sh", False),
    ],
)
def test_addresses(text: str, is_one: bool) -> None:
    assert is_git_url(text) is is_one


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://u:p@host/x?token=1", "https://host/x"),
        ("https://token@host:8443/x", "https://host:8443/x"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("git@host:x", "git@host:x"),
        ("https://host/x", "https://host/x"),
        ("https://u:p@[::1/x", "https://[::1/x"),
    ],
)
def test_credentials_are_left_out(url: str, clean: str) -> None:
    assert without_credentials(url) == clean


def test_checkout_is_read_without_git(repository: Path) -> None:
    found = read_checkout(repository)
    assert found is not None
    assert (found.commit, found.branch, found.dirty) == (git("rev-parse", "HEAD", cwd=repository), "main", False)
    (repository / "file").write_text("2wo")
    os.utime(repository / "file", (1, 1))
    changed = read_checkout(repository)
    assert changed is not None
    assert changed.changed == ("file",)
    (repository / "file").unlink()
    gone = read_checkout(repository)
    assert gone is not None
    assert gone.missing == ("file",)


def test_a_touched_file_is_not_a_changed_one(repository: Path) -> None:
    os.utime(repository / "file", (1, 1))
    found = read_checkout(repository)
    assert found is not None
    assert not found.dirty


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_each_form_of_the_index(repository: Path, version: str) -> None:
    for name in ("file2", "deep/er/file", "deep/er/file2"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    git("add", ".", cwd=repository)
    git("update-index", "--index-version", version, cwd=repository)
    for name in ("file2", "deep/er/file2"):
        (repository / name).unlink()
    found = read_checkout(repository)
    assert found is not None
    assert found.missing == ("deep/er/file2", "file2")


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\7short", os.urandom(300)])
def test_a_damaged_index_is_no_crash(repository: Path, damage: bytes) -> None:
    (repository / ".git/index").write_bytes(damage)
    found = read_checkout(repository)
    assert found is not None
    assert not found.dirty


def test_packed_refs_and_worktrees(repository: Path, tmp_path: Path) -> None:
    git("pack-refs", "--all", cwd=repository)
    git("worktree", "add", "-q", str(tmp_path / "second"), "ssd", cwd=repository)
    found = read_checkout(tmp_path / "second")
    assert found is not None
    assert (found.branch, found.commit) == ("ssd", git("rev-parse", "ssd", cwd=repository))


def test_a_reference_cannot_lead_out(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0" * 40)
    (repository / ".git/HEAD").write_text("ref: refs/../../../secret\n")
    found = read_checkout(repository)
    assert found is not None
    assert found.commit == ""


@pytest.mark.parametrize("first", ["", "import git, os; os.environ['PATH'] = '/nothing'; "])
def test_git_that_is_not_installed(tmp_path: Path, first: str) -> None:
    code = (
        f"{first}from pathlib import Path\nfrom caffeup.errors import SourceError\nfrom caffeup.source.git import clone\n"
        f"try:\n    clone('https://example.invalid/x', Path({str(tmp_path / 'x')!r}))\nexcept SourceError as error:\n    print(error.brief)\n"
    )
    env = {**os.environ, "PATH": os.environ["PATH"] if first else "/nothing"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "git is not installed\n", done.stderr
