"""Clones a tree: shallow, the user's mirrors and proxies respected, no hooks, no questions, nothing of the tree run."""

from __future__ import annotations

import os
import re
import shlex
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from caffeup.errors import CaffeupError, SourceError, UsageError
from caffeup.host import Host
from caffeup.source.checkout import COMMIT, read_checkout, without_credentials
from caffeup.source.problems import NoAccess, NotFetched, Unreachable, disk_error
from caffeup.source.progress import Progress, silent

if TYPE_CHECKING:
    from git import Git

PROTOCOLS = "file:git:http:https:ssh"
CHUNK = 1 << 16
SILENCE = 60.0
"""Seconds without a word from git after which the host counts as unreachable."""
LOOK = 15.0
"""Seconds for a look whether a host answers."""
URL = re.compile(r"(?:https?|ssh|git|file)://[^\s]+")
SCP = re.compile(r"(?:[A-Za-z0-9_.+-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?!//|:)[^\s:][^\s]*")
REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")
OPTIONS = (
    "core.hooksPath=/dev/null",  # hooks of the user's template folder are no business of a fetch
    "core.fsmonitor=false",
    "core.autocrlf=false",  # a Makefile with CRLF does not work
    "core.symlinks=true",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "protocol.ext.allow=never",
    "credential.interactive=false",
)

# What git, curl and ssh say. The first group that matches decides; the order is from the special to the general.
_SAYINGS = (
    ("full", re.compile(r"No space left on device|Disk quota exceeded")),
    (
        "branch",
        re.compile(r"Remote branch .* not found|couldn't find remote ref|not our ref|unadvertised object|did not match any"),
    ),
    (
        "access",
        re.compile(
            r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied \(|"
            r"Host key verification failed|error: 40[13]\b|Invalid username"
        ),
    ),
    (
        "absent",
        re.compile(
            r"[Rr]epository .* not found|does not appear to be a git repository|does not exist|"
            r"error: 404\b|not found: did you run"
        ),
    ),
    ("damaged", re.compile(r"repository corruption|pack-objects died|bad object|loose object .* is corrupt")),
    ("certificate", re.compile(r"certificate|SSL|TLS", re.IGNORECASE)),
    (
        "unreachable",
        re.compile(
            r"Could not resolve|Failed to connect|Couldn't connect|timed? ?out|"
            r"Connection (?:refused|reset|closed)|Network is unreachable|"
            r"No route to host|unable to access|unable to connect|Proxy|early EOF|the remote end hung up|error: 5\d\d|RPC failed|"
            r"Could not read from remote|Name or service not known|Temporary failure|transfer closed",
            re.IGNORECASE,
        ),
    ),
)

_CAUSE = re.compile(
    r"Could not resolve (?:host(?:name)?|proxy)(?::? [\w.-]+)?|Failed to resolve '[\w.-]+'|Name or service not known|"
    r"Temporary failure in name resolution|Connection (?:refused|reset|closed|timed out)|"
    r"(?:Operation|Connect\w*) timed? ?out|Network is unreachable|No route to host|Couldn't connect to server|"
    r"The requested URL returned error: \d{3}",
    re.IGNORECASE,
)
"""The words of those that name a cause."""


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
    runner = _Runner(into.parent, url, env or {}, progress, silence)
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
        return _reason(asked.stderr) if asked is not None else ""
    if not url.startswith(("http://", "https://")):
        return None
    import requests  # noqa: PLC0415  # takes longer to load than most commands run

    try:
        answer = requests.get(f"{url}/info/refs?service=git-upload-pack", timeout=LOOK, stream=True)
    except requests.RequestException as error:
        return _reason(str(error))
    return None if answer.ok else f"the server says {answer.status_code}"


def cannot_reach(shown: str, why: str) -> str:
    """``cannot reach https://…: Could not resolve host: …``."""
    return f"cannot reach {shown}: {why}" if why else f"cannot reach {shown}"


def _reason(said: str) -> str:
    """Why a host cannot be reached, in the words of git, curl or ssh; empty where they name no cause."""
    found = _CAUSE.search(said)
    return found.group().strip() if found else ""


def _check_out(runner: _Runner, into: Path, commit: str) -> None:
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


class _Runner:
    """Runs git through GitPython with what it says passed on, and ends it when it falls silent."""

    def __init__(self, folder: Path, url: str, env: Mapping[str, str], progress: Progress, silence: float) -> None:
        self.url = url
        self._folder = folder
        self._env = env
        self._progress = progress
        self._silence = silence

    def run(self, arguments: Sequence[str]) -> None:
        git = _git(self._folder)
        settings = [word for option in OPTIONS for word in ("-c", option)]
        said: list[str] = []
        try:
            child: Any = git.execute(
                [git.GIT_PYTHON_GIT_EXECUTABLE, *settings, *arguments],
                as_process=True,
                env=_environment(self._env),
                start_new_session=True,  # without a terminal nobody can ask for passwords there
            )
        except _not_found() as error:
            raise _no_git() from error
        heard = _Listener(said, self._progress)
        process = child.proc
        silent_for = _Watch(process, heard, self._silence)
        try:
            while raw := process.stderr.read1(CHUNK):  # not by lines: progress comes with carriage returns alone
                heard.take(raw)
            status = process.wait()
        finally:
            silent_for.cancel()
            if process.poll() is None:
                _end(process)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            heard.finish()
        if silent_for.fired:
            raise Unreachable(
                f"no answer from {without_credentials(self.url)}",
                details=f"git was silent for {self._silence:.0f} s\n" + "\n".join(said[-5:]),
                advice="Check the network, or set http.proxy or a mirror (url.<base>.insteadOf) in git's configuration.",
                commands=(f"git ls-remote {shlex.quote(without_credentials(self.url))}",),
            )
        if status != 0:
            raise explain(said, self.url, self._folder)


class _Listener:
    """Cuts git's stderr into lines and progress."""

    STEP = re.compile(r"(?:remote: )?([A-Z][a-z]+(?: [a-z]+)?):\s+\d+% \((\d+)/(\d+)\)")

    def __init__(self, said: list[str], progress: Progress) -> None:
        self._said = said
        self._progress = progress
        self._rest = b""
        self.last = time.monotonic()

    def take(self, raw: bytes) -> None:
        self.last = time.monotonic()
        *lines, self._rest = (self._rest + raw).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._hear(line.decode("utf-8", "replace"))

    def finish(self) -> None:
        self._hear(self._rest.decode("utf-8", "replace"))
        self._rest = b""

    def _hear(self, line: str) -> None:
        step = self.STEP.match(line)
        if step:
            self._progress(step.group(1).lower(), int(step.group(2)), int(step.group(3)))
        elif line.strip():
            self._said.append(line.strip())


class _Watch:
    """Ends the child when it has said nothing for too long."""

    def __init__(self, process: Any, heard: _Listener, silence: float) -> None:
        self.fired = False
        self._done = threading.Event()
        self._process = process
        self._heard = heard
        self._silence = silence
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._done.wait(min(1.0, self._silence / 4)):
            if time.monotonic() - self._heard.last > self._silence:
                self.fired = True
                _end(self._process)
                return

    def cancel(self) -> None:
        self._done.set()
        self._thread.join()


def _end(process: Any) -> None:
    """End git with its helpers: it leads a session of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(OSError):
            os.killpg(process.pid, sign)
        with suppress(Exception):  # it raises subprocess's TimeoutExpired, which is host.py's to know
            process.wait(3)
            return


def _git(folder: Path) -> Git:
    try:
        from git import Git  # noqa: PLC0415 - 0.2 s that only a fetch needs
    except ImportError as error:
        raise _no_git() from error
    return Git(str(folder))


def _not_found() -> type[Exception]:
    from git.exc import GitCommandNotFound  # noqa: PLC0415

    return GitCommandNotFound


def _no_git() -> SourceError:
    return SourceError(
        "git is not installed",
        details="there is no git on PATH",
        advice="Package managers call it git. One tree of the catalogue can be had without.",
        commands=("caffeup up brocolli",),
    )


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Added to the environment: no questions, and no transports that run programs, also after insteadOf."""
    ours = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "LC_ALL": "C",
        "GCM_INTERACTIVE": "never",
    }
    ours.update(dict.fromkeys(("GIT_ASKPASS", "SSH_ASKPASS"), "true"))
    if "GIT_SSH_COMMAND" not in env and "GIT_SSH" not in env:
        ours["SSH_ASKPASS_REQUIRE"] = "never"
    if "GIT_HTTP_LOW_SPEED_LIMIT" not in env:
        ours.update({"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "60"})
    return ours


def explain(said: Sequence[str], url: str, folder: Path) -> CaffeupError:
    """An error of git as something to act on."""
    shown = without_credentials(url)
    lines = [re.sub(r"//[^/@\s]*@", "//", line) for line in said if not line.startswith("Cloning into")]
    text = "\n".join(lines)
    what = next((name for name, pattern in _SAYINGS if pattern.search(text)), "")
    details = "\n".join(lines[-8:])
    look = (f"git ls-remote {shlex.quote(shown)}",)
    if what == "full":
        return disk_error(OSError(28, details), folder)
    if what == "unreachable":
        return Unreachable(
            cannot_reach(shown, _reason(text)),
            details=details,
            advice="Check the network, or set http.proxy or a mirror (url.<base>.insteadOf) in git's configuration.",
            commands=look,
        )
    if what == "certificate":
        return Unreachable(
            f"the certificate of {shown} is not trusted here",
            details=details,
            advice="Install your proxy's certificate (ca-certificates), or name it with git config http.sslCAInfo.",
            commands=look,
        )
    brief = {
        "branch": f"{shown} has no such branch, tag or commit",
        "access": f"{shown} gives no access; it may not exist, or be private",
        "damaged": f"the repository at {shown} is damaged",
        "absent": f"there is no repository at {shown}",
    }.get(what, f"git could not fetch {shown}")
    return (NoAccess if what == "access" else NotFetched)(brief, details=details, commands=look)
