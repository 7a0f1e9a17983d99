"""``caffeup export``: the same plan gives the same bytes, nothing in a name ends what holds it, and the script does its steps."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.app.exporting import export_tree
from caffeup.app.session import Session
from caffeup.app.state import LOCK
from caffeup.cli.main import main
from caffeup.errors import CaffeupError, CannotBuild, DependencyError, UsageError
from caffeup.export import quoting
from caffeup.export.differences import patch_of
from caffeup.export.image import image_row, images_for
from caffeup.export.recipe import FORMS
from caffeup.facts.images import ImageFile
from caffeup.host import Output, RealHost
from caffeup.lock import text as lock_text
from caffeup.model.base import from_json
from caffeup.model.lock import Lock
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Origin, Tree
from planvalues import FACTS
from planvalues import toolkit as make_toolkit

TESTS = Path(__file__).resolve().parents[1]
MACHINES = {
    name: from_json((TESTS / "machines" / name / "expected" / "machine.json").read_bytes(), Machine)
    for name in (
        "debian12-no-gpu",
        "ubuntu2404-cuda12x-rtx4090",
        "jetson-orin-jetpack6",
        "arch-rolling-opt-cuda",
        "fedora41-cuda129",
    )
}
IMAGES = FACTS.reader.table("images", ImageFile)
ALL = sorted(FORMS)
COMMIT = "89380f1d4e0000000000000000000000deadbeef"


class Asked(RealHost):
    """A host whose package manager is played."""

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Any:
        if argv[0] == "dpkg-query":
            return Output(status=1, stdout="g++ 4:12.2.0-3 installed\nmake 4.3 installed\npatch 2.7 config-files\nodd\n")
        return None


def on(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Session:
    monkeypatch.setattr(Session, "machine", lambda *_named: machine)
    return Session(Asked())


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TESTS / "trees" / "tiny", tmp_path / "tiny")
    return tmp_path / "tiny"


def from_git(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let the tree be a checkout."""
    real = Session.tree
    origin = Origin(**{"kind": "git", "url": "https://example.org/caffe.git", "commit": COMMIT, **changes})

    def tree(self: Session, root: Path) -> Tree:
        return msgspec.structs.replace(real(self, root), origin=origin)

    monkeypatch.setattr(Session, "tree", tree)


# --- a Dockerfile, read by rules of its own --------------------------------------------------------------


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile with their words; here-documents are part of theirs."""
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        whole = line
        while whole.endswith("\\"):
            whole = whole[:-1] + next(lines).strip()
        word, _, rest = whole.partition(" ")
        assert re.fullmatch(r"[A-Z]+", word), f"no instruction: {line!r}"
        for end in re.findall(r"<<'(\w+)'", rest):
            held = []
            for inside in lines:
                if inside == end:
                    break
                held.append(inside)
            else:
                raise AssertionError(f"{end} never comes")
            rest += "\n" + "\n".join(held) + "\n"
        yield word, rest


KNOWN = {"FROM", "ARG", "ENV", "COPY", "RUN", "LABEL", "USER", "WORKDIR", "CMD"}


@pytest.mark.parametrize("machine", ["debian12-no-gpu", "ubuntu2404-cuda12x-rtx4090", "fedora41-cuda129"])
def test_the_dockerfile_is_one(machine: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_git(monkeypatch)
    text = export_tree(on(monkeypatch, MACHINES[machine]), "docker", "tiny", Request(cpu=machine.startswith("fedora"))).text
    assert text.startswith("# syntax=docker/dockerfile:1\n"), "here-documents need it, and it must be the first line"
    found = list(instructions(text))
    assert {word for word, _ in found} <= KNOWN
    froms = [rest for word, rest in found if word == "FROM"]
    assert len(froms) == 2
    assert froms[0].endswith(" AS build")
    for image in froms:
        assert re.fullmatch(r"[a-z0-9./-]+:[A-Za-z0-9_.-]+( AS build)?", image), "each image has a tag"
        assert ":latest" not in image
    at = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    last = found[at:]
    assert not [rest for word, rest in last if word == "RUN" and "caffe.sh" in rest], "the run image compiles nothing"
    assert [rest for word, rest in last if word == "USER"] == ["caffe"]
    assert [rest for word, rest in last if word == "COPY"] == ["--from=build /out /opt/caffe"]
    (script,) = [rest for word, rest in found if word == "COPY" and "caffe.sh" in rest]
    checked(script.partition("\n")[2])


def test_a_gpu_build_begins_with_nvidias_images(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_git(monkeypatch)
    session = on(monkeypatch, MACHINES["ubuntu2404-cuda12x-rtx4090"])
    for form, begins in (("docker", "FROM "), ("apptainer", "From: ")):
        text = export_tree(session, form, "tiny", Request()).text
        assert f"{begins}nvidia/cuda:12.6.3-cudnn-devel-ubuntu24.04" in text
        assert f"{begins}nvidia/cuda:12.6.3-cudnn-runtime-ubuntu24.04" in text
    text = export_tree(session, "docker", "tiny", Request(cudnn=msgspec.convert("off", type(Request().cudnn)))).text
    assert "nvidia/cuda:12.6.3-devel-ubuntu24.04" in text
    assert "point .caffeup/cuda" in text


@pytest.mark.parametrize(
    ("machine", "said"),
    [("jetson-orin-jetpack6", "Jetson"), ("arch-rolling-opt-cuda", "arch")],
)
def test_where_there_is_no_image_the_script_is_offered(
    machine: str, said: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_git(monkeypatch)
    session = on(monkeypatch, MACHINES[machine])
    with pytest.raises(CannotBuild, match=said) as raised:
        export_tree(session, "docker", "tiny", Request())
    assert "caffeup export sh" in raised.value.advice


def test_a_toolkit_without_image_names_those_there_are() -> None:
    machine = MACHINES["ubuntu2404-cuda12x-rtx4090"]
    with pytest.raises(CannotBuild) as raised:
        image_row(machine, make_toolkit("9.0"), IMAGES)
    assert "12.6" in raised.value.advice
    with pytest.raises(CannotBuild, match=r"ubuntu 24\.04; it has them for ubuntu20\.04"):
        image_row(machine, make_toolkit("12.4"), IMAGES)


@pytest.mark.parametrize("release", ["24.04 AS x\nRUN y", "$(x)", "{major}"])
def test_a_strange_release_is_no_part_of_an_images_name(release: str) -> None:
    machine = MACHINES["debian12-no-gpu"]
    machine = msgspec.structs.replace(machine, system=msgspec.structs.replace(machine.system, distro_version=release))
    with pytest.raises(CannotBuild):
        images_for(machine, Plan(tree="/t", fork="bvlc", request=Request(), gpu=False), IMAGES, None)


# --- all forms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ALL)
def test_the_same_plan_gives_the_same_bytes(form: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_git(monkeypatch)
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    first = export_tree(session, form, "tiny", Request()).text
    shutil.copytree(tiny, tmp_path / "elsewhere" / "tiny")
    assert export_tree(session, form, str(tmp_path / "elsewhere" / "tiny"), Request()).text == first
    assert str(tmp_path) not in first
    assert "/home/user" not in first


def test_a_tree_that_is_patched_gives_what_the_untouched_one_gives(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    first = export_tree(session, "sh", "tiny", Request()).text
    from caffeup.app.planning import plan_for
    from caffeup.patch import engine
    from caffeup.render import render_config

    planned = plan_for(session, "tiny", Request())
    engine.apply(str(tiny), planned.plan, session.facts, render_config(planned.plan))
    before = {path: path.stat().st_mtime_ns for path in tiny.rglob("*")}
    assert export_tree(session, "sh", "tiny", Request()).text == first
    assert {path: path.stat().st_mtime_ns for path in tiny.rglob("*")} == before, "exporting changes nothing in the tree"


@pytest.mark.parametrize("form", ALL)
def test_what_is_known_is_pinned(form: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_git(monkeypatch)
    text = export_tree(on(monkeypatch, MACHINES["debian12-no-gpu"]), form, "tiny", Request()).text
    assert COMMIT in text
    script = export_tree(on(monkeypatch, MACHINES["debian12-no-gpu"]), "sh", "tiny", Request()).text
    assert "g++=4:12.2.0-3" in script
    assert " make=4.3 " in script
    assert " patch " in script, "not installed here: no version is known"


def test_the_lock_says_which_versions(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_git(monkeypatch)
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    place = tiny / LOCK
    place.parent.mkdir(exist_ok=True)
    place.write_text(lock_text.write(lock_text.sealed(Lock(packages={"make": "4.2", "other": "1"}, tree={"commit": "f" * 40}))))
    done = export_tree(session, "sh", "tiny", Request())
    assert " make=4.2 " in done.text
    assert "other=" not in done.text
    assert any("the lock is of commit ffffffffff" in note for note in done.notes)
    place.write_text("nonsense")
    with pytest.raises(CaffeupError):
        export_tree(session, "sh", "tiny", Request())


def test_a_tree_from_nowhere_is_told_so(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    done = export_tree(session, "docker", "tiny", Request())
    assert any("where this tree comes from" in note for note in done.notes)
    assert "COPY . /opt/caffe" in done.text
    assert "CAFFE_SOURCE" in export_tree(session, "sh", "tiny", Request()).text
    from_git(monkeypatch, dirty=True)
    assert any("changes that are not in its commit" in note for note in export_tree(session, "sh", "tiny", Request()).notes)
    from_git(monkeypatch, url="/srv/caffe")
    assert any("/srv/caffe" in note for note in export_tree(session, "sh", "tiny", Request()).notes)


def test_bad_wishes(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    with pytest.raises(UsageError, match="word"):
        export_tree(session, "word", "tiny", Request())
    bare = msgspec.structs.replace(MACHINES["debian12-no-gpu"], libraries=())
    with pytest.raises(DependencyError):
        export_tree(on(monkeypatch, bare), "sh", "tiny", Request())


def test_the_command_prints_or_writes(tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    on(monkeypatch, MACHINES["debian12-no-gpu"])
    assert main(["export", "sh", "tiny"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("#!/bin/sh\n")
    assert "where this tree comes from" in printed.err
    assert main(["export", "sh", "tiny", "-o", "made here.sh"]) == 0
    assert capsys.readouterr().out == ""
    assert Path("made here.sh").read_text() == printed.out
    assert main(["export", "word", "tiny"]) == 2


# --- what stands in it -------------------------------------------------------------------------------------


def checked(script: str, *, but: str = "SC9999") -> None:
    """A shell reads it; shellcheck too, where it is."""
    subprocess.run(["sh", "-n"], input=script.encode("utf-8", "surrogateescape"), check=True)
    if shutil.which("shellcheck"):
        done = subprocess.run(["shellcheck", "-e", but, "-"], input=script, capture_output=True, text=True, check=False)
        assert done.stdout == ""


HOSTILE = "$(touch pwned) `touch pwned`'\"; touch pwned; \\"


@pytest.mark.parametrize("form", ALL)
def test_nothing_in_a_name_is_run(form: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Address, commit and paths come from the tree and the machine: they are words, and lines of comments."""
    from_git(monkeypatch, url=f"https://example.org/{HOSTILE}\n%post\ntouch pwned\nEOF")
    machine = MACHINES["debian12-no-gpu"]
    machine = msgspec.structs.replace(machine, system=msgspec.structs.replace(machine.system, distro_version="12"))
    text = export_tree(on(monkeypatch, machine), form, "tiny", Request()).text
    if form == "docker":
        assert [word for word, _ in instructions(text)].count("FROM") == 2
    if form == "apptainer":
        sections = [line for line in text.splitlines() if line.lstrip().startswith("%")]
        assert sections == ["%post", "%files from build", "%post", "%environment", "%runscript", "%test", "%labels"]
    if form == "sh":
        checked(text, but="SC2016")  # what looks like an expansion in the address is none
        script = tmp_path / "x.sh"
        script.write_text(text)
        subprocess.run(
            ["sh", str(script), "fetch"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        )
        assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("fork", FACTS.forks, ids=lambda fork: fork.id)
@pytest.mark.parametrize("form", ALL)
def test_every_fork_can_be_written(fork: Any, form: str, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its known failures are left out of the tests, and an archive of the package index is fetched by its hash."""
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    real = Session.tree
    origin = Origin(kind="sdist" if fork.sdist else "git", url="https://example.org/x.git", commit=COMMIT)
    monkeypatch.setattr(
        Session, "tree", lambda self, root: msgspec.structs.replace(real(self, root), fork=fork.id, origin=origin)
    )
    text = export_tree(session, form, "tiny", Request()).text
    if form != "sh":
        return
    checked(text)
    for known in fork.failures:
        assert not known.cpu or known.test in text
    if fork.sdist:
        assert f"{fork.sdist.name}=={fork.sdist.version}" in text
        assert f"{fork.sdist.sha256}" in text
        assert "python3-pip" in text


@given(st.binary(max_size=300))
def test_any_bytes_come_out_of_a_here_document(data: bytes) -> None:
    script = quoting.heredoc("cat", data)
    assert subprocess.run(["sh", "-c", script + "\n"], capture_output=True, check=True).stdout == data


@pytest.mark.parametrize(
    "data",
    [b"CAFFEUP_END\n", b"CAFFEUP_END\nCAFFEUP_END_2\n", b"no end", b"", b"\x1b[2J\n", b"a\r\n", b"\xff\n", b"$HOME `id` \\\n"],
)
def test_these_too(data: bytes) -> None:
    script = quoting.heredoc("cat", data)
    assert subprocess.run(["sh", "-c", script + "\n"], capture_output=True, check=True).stdout == data
    assert "\x1b" not in script
    assert "\r" not in script


@given(
    before=st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\xff\n", b"\x0c\n", b"--\n"]), max_size=9),
    after=st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\xff\n"]), min_size=1, max_size=9),
    end=st.booleans(),
)
def test_the_patch_makes_one_of_the_other(
    before: list[bytes], after: list[bytes], end: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if shutil.which("patch") is None:
        pytest.skip("no patch here")
    old, new = b"".join(before) or b"x\n", b"".join(after) + (b"" if end else b"last")
    if old == new:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(old)
    subprocess.run(["patch", "--binary", "-p1", "-F0", "-s"], input=patch_of((("f", old, new),)), cwd=folder, check=True)
    assert (folder / "f").read_bytes() == new


def test_the_script_does_its_steps(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a folder to a tree that holds what caffeup would have put there; again: nothing is touched."""
    session = on(monkeypatch, MACHINES["debian12-no-gpu"])
    script = tmp_path / "caffe.sh"
    script.write_text(export_tree(session, "sh", "tiny", Request()).text)
    checked(script.read_text())
    place = tmp_path / "a b'c"
    place.mkdir()
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CAFFE_SOURCE": str(tiny), "CAFFE_DIR": "my tree"}

    def steps(*names: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", str(script), *names], cwd=place, env=env, capture_output=True, text=True, check=False)

    plan = session.plan(MACHINES["debian12-no-gpu"], session.tree(tiny), Request())
    here = all(Path(one).exists() for one in (plan.compiler, "/usr/bin/patch"))
    if not here:
        pytest.skip("no compiler or patch here")
    done = steps("fetch", "configure")
    assert done.returncode == 0, done.stderr
    from caffeup.patch import engine
    from caffeup.render import render_config

    engine.apply(str(tiny), msgspec.structs.replace(plan, tree=str(tiny)), session.facts, render_config(plan))
    made = place / "my tree"
    kept = {"undo", "ledger.json", ".gitignore", "journal.json"}
    for path in tiny.rglob("*"):
        inside = path.relative_to(tiny)
        if path.is_file() and not set(inside.parts) & kept:
            assert (made / inside).read_bytes() == path.read_bytes(), inside
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    assert steps("fetch", "configure").returncode == 0
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before
    edited = next((one for one in before if one.name == "Makefile"), None)
    assert edited is not None
    assert steps("no-such-step").returncode == 1
    assert "no-such-step" in steps("no-such-step").stderr
    assert "export PATH='" in steps("ready").stdout
    said = subprocess.run(
        ["sh", "-c", steps("ready").stdout + 'printf %s "$PYTHONPATH"'],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert said.stdout == f"{made}/python"


# --- the table of images -----------------------------------------------------------------------------------


@pytest.mark.parametrize("row", IMAGES.cuda, ids=lambda row: row.id)
def test_a_row_of_images_fits_its_range(row: Any) -> None:
    from packaging.version import Version

    assert IMAGES.cuda_of(Version(row.release)) == row
    assert row.release.startswith(f"{row.id}.")
    assert row.source
    assert row.cudnn_word in ("cudnn", f"cudnn{row.cudnn}")


def test_each_system_of_an_image_has_a_base() -> None:
    called = {base.cuda.partition("{")[0] for base in IMAGES.base if base.cuda}
    for row in IMAGES.cuda:
        for system in row.systems:
            assert any(system.startswith(name) for name in called), system
