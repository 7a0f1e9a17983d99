"""Clones a tree: shallow, the user's mirrors and proxies respected, no hooks, no questions, nothing of the tree run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from caffeup.errors import UsageError
from caffeup.host import Host
from caffeup.source.checkout import COMMIT, read_checkout, without_credentials
from caffeup.source.git_run import OPTIONS, SILENCE, Runner
from caffeup.source.git_said import reason
from caffeup.source.problems import NotFetched
from caffeup.source.progress import Progress, silent

LOOK = 15.0
"""Seconds for a look whether a host answers."""
URL = re.compile(r"(?:https?|ssh|git|file)://[^\s]+")
SCP = re.compile(r"(?:[A-Za-z0-9_.+-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//|:)[^\s:][^\s]*")
REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")


def is_git_url(text: str) -> bool:
    """Whether it can only be meant for git."""
    return bool(URL.fullmatch(text)) or (bool(SCP.fullmatch(text)) and not os.path.exists(text))  # noqa: PTH110  # never raises


def checked_url(url: str) -> str:
    """The URL, if git may see it: ``UsageError`` for options in disguise, programs as transport, and control characters."""
    if url.startswith("-") or "::" in url.split("/", 1)[0] or not url.isprintable():
        raise UsageError(
            f"this is no address that caffeup gives to git: {url!r}",
            advice="Addresses look like https://host/owner/caffe.git, ssh://git@host/owner/caffe.git, git@host:owner/caffe.git or file:///path.",
        )
    host = re.match(r"(?:[a-z]+://)?(?:[^/@]*@)?([^/:]*)", url)
    if host and host.group(1).startswith("-"):
        raise UsageError(f"this is no host: {host.group(1)!r}")
    return url


def clone(
    url: str,
    into: Path,
    *,
    branch: str = "",
    commit: str = "",
    env: Optional[Mapping[str, str]] = None,
    progress: Progress = silent,
    silence: float = SILENCE,
) -> None:
    """Clone into a folder that does not exist yet; with ``commit``, have exactly that one checked out.

    ``env`` is the environment as the host has it; it tells which of the user's own settings must not be replaced.
    """
    checked_url(url)
    for revision in (branch, commit):
        if revision and (not REVISION.fullmatch(revision) or ".." in revision):
            raise UsageError(f"this is no branch, tag or commit: {revision!r}")
    runner = Runner(into.parent, url, env or {}, progress, silence)
    picked = ["--branch", branch] if branch else []
    runner.run(
        ["clone", "--progress", "--depth", "1", "--single-branch", "--no-recurse-submodules", *picked, "--", url, str(into)]
    )
    if commit:
        _check_out(runner, into, commit)


def unanswered(url: str, host: Host) -> Optional[str]:
    """Why no repository answers at the address, empty where nothing tells; None where one does.

    It is git's word, with the user's settings; where git is missing, the server's.
    """
    checked_url(url)
    if host.which("git"):
        options = [word for option in OPTIONS for word in ("-c", option)]
        asked = host.run(("git", *options, "ls-remote", "--quiet", "--", url, "HEAD"), timeout=LOOK)
        if asked is not None and asked.status == 0:
            return None
        return reason(asked.stderr) if asked is not None else ""
    if not url.startswith(("http://", "https://")):
        return None
    import requests  # noqa: PLC0415  # takes longer to load than most commands run

    try:
        answer = requests.get(f"{url}/info/refs?service=git-upload-pack", timeout=LOOK, stream=True)
    except requests.RequestException as error:
        return reason(str(error))
    return None if answer.ok else f"the server says {answer.status_code}"


def _check_out(runner: Runner, into: Path, commit: str) -> None:
    """The wanted commit: the branch may have moved on since."""
    have = read_checkout(into)
    if have and have.commit.startswith(commit):
        return
    where = ["-C", str(into)]
    try:
        if not COMMIT.fullmatch(commit):
            raise NotFetched("a short hash cannot be asked for")  # noqa: TRY301
        runner.run([*where, "fetch", "--progress", "--depth", "1", "--no-tags", "--no-recurse-submodules", "origin", commit])
    except NotFetched:
        runner.run([*where, "fetch", "--progress", "--unshallow", "--no-recurse-submodules", "origin"])
    runner.run([*where, "checkout", "--quiet", "--detach", commit])
    now = read_checkout(into)
    if now is None or not now.commit.startswith(commit):
        raise NotFetched(
            f"{without_credentials(runner.url)} has no commit {commit}", details=f"got {now.commit if now else 'nothing'}"
        )
