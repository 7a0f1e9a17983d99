"""Runs one git command: no questions, no hooks, no transports that run programs; ended with its helpers when it falls silent."""

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
from typing import TYPE_CHECKING, Any

from caffeup.errors import SourceError
from caffeup.source.checkout import without_credentials
from caffeup.source.git_said import explain
from caffeup.source.problems import Unreachable
from caffeup.source.progress import Progress

if TYPE_CHECKING:
    from git import Git

PROTOCOLS = "file:git:http:https:ssh"
CHUNK = 1 << 16
SILENCE = 60.0
"""Seconds without a word from git after which the host counts as unreachable."""
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
"""Settings of every call."""


class Runner:
    """Runs git through GitPython with what it says passed on, and ends it when it falls silent."""

    def __init__(self, folder: Path, url: str, env: Mapping[str, str], progress: Progress, silence: float) -> None:
        self.url = url
        self._folder = folder
        self._env = env
        self._progress = progress
        self._silence = silence

    def run(self, arguments: Sequence[str]) -> None:
        """Run it to its end; raise what its failure means to a person."""
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
