"""Run as a program of its own: downloads one file of the package index through pip's own index access, and runs none of its code.

``pip download`` runs an sdist's set-up code to learn its name; pip's finder and session do not. They are pip's private modules,
so each is tried for, and a child process keeps them, and whatever they print, away from caffeup.

Argument: one JSON object with name, version, file (may be empty), sha256, into, binary. Prints JSON objects, one a line:
``{"done": ..., "total": ...}`` and at last ``{"file": ..., "sha256": ..., "url": ...}`` or ``{"error": kind, "text": ...}``.
"""
# ruff: noqa: PLC0415, PTH100, PTH108, PTH110, PTH118, PTH120, PTH123, PTH105 - a script for whatever Python has pip

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import IO, Any

CHUNK = 1 << 16
TRIES = 5
"""How often a broken connection is taken up again."""
FULL = (28, 122)
"""ENOSPC and EDQUOT: the disk is full, or the user's share of it."""
PARTIAL = 206


class Failure(Exception):
    """An end with a kind and words."""

    def __init__(self, kind: str, text: str) -> None:
        """Keep both."""
        super().__init__(text)
        self.kind = kind


class Heard(logging.Handler):
    """Keeps what pip says about pages that it could not fetch."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep lines that tell of a page that did not come; one that is not there is an answer."""
        text = record.getMessage()
        if "Could not fetch URL" in text and "404" not in text:
            self.lines.append(text)


def say(**what: object) -> None:
    """One line for the parent."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def pips() -> Any:
    """Pip's private parts, or a ``Failure`` that says which is missing."""
    try:
        import pip
        from pip._internal.commands.download import DownloadCommand
    except ImportError as error:
        raise Failure("pip", f"this Python has no pip that can be used: {error}") from error
    missing = [
        name for name in ("main_context", "get_default_session", "_build_package_finder") if not hasattr(DownloadCommand, name)
    ]
    if missing:
        raise Failure("pip", f"pip {pip.__version__} is laid out in another way: {', '.join(missing)} not there")
    return DownloadCommand("download", "caffeup")


def find(finder: Any, wanted: dict[str, Any]) -> Any:
    """The file in the index: by name where that is given, by version otherwise."""
    found = [
        candidate.link
        for candidate in finder.find_all_candidates(wanted["name"])
        if str(candidate.version) == wanted["version"] and wanted["file"] in ("", candidate.link.filename)
    ]
    right = [link for link in found if link.hash_name == "sha256" and link.hash == wanted["sha256"]]
    return (right or found or [None])[0]


def pieces(response: Any) -> Iterator[bytes]:
    """The bytes as they are on the server: a .tar.gz must not be unpacked on the way."""
    try:
        yield from response.raw.stream(CHUNK, decode_content=False)
    except AttributeError:  # a file:// answer
        while True:
            piece = response.raw.read(CHUNK)
            if not piece:
                return
            yield piece


def broken(error: Exception) -> bool:
    """Whether only the connection failed: the disk has room, and the server did not say no."""
    network = (isinstance(error, OSError) and error.errno not in FULL) or "urllib3" in type(error).__module__
    return network and getattr(error, "response", None) is None


def append(session: Any, url: str, out: IO[bytes]) -> None:
    """Write what the file has after what is there already; all of it where the server gives no parts."""
    done = out.tell()
    part = {"Range": f"bytes={done}-"} if done else {}
    response = session.get(url, headers={"Accept-Encoding": "identity", **part}, stream=True)
    response.raise_for_status()
    if done and response.status_code != PARTIAL:
        done = out.seek(0)
        out.truncate()
    length = int(response.headers.get("Content-Length") or 0)
    total = done + length if length else 0
    for piece in pieces(response):
        out.write(piece)
        done += len(piece)
        say(done=done, total=total)
    if done < total:
        raise ConnectionError(f"the connection ended after {done} of {total} bytes")


def fill(session: Any, url: str, out: IO[bytes]) -> None:
    """Write the whole file; where the connection breaks, go on from there."""
    for left in reversed(range(TRIES)):
        try:
            append(session, url, out)
        except Exception as error:
            if not left or not broken(error):
                raise
            time.sleep(1)
        else:
            return


def save(session: Any, link: Any, wanted: dict[str, Any]) -> None:
    """Download under another name, check, rename."""
    path = os.path.join(wanted["into"], link.filename)
    part = path + ".part"
    digest = hashlib.sha256()
    try:
        with open(part, "w+b") as held:
            fill(session, link.url_without_fragment, held)
            size = held.seek(0)
            for piece in iter(lambda: held.read(CHUNK), b""):
                digest.update(piece)
                size += len(piece)
        if digest.hexdigest() != wanted["sha256"]:
            raise Failure("corrupt", f"expected sha256 {wanted['sha256']}\n     got sha256 {digest.hexdigest()}, {size} bytes")
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    say(file=path, sha256=digest.hexdigest(), url=link.url_without_fragment)


def download(wanted: dict[str, Any]) -> None:
    """The whole errand."""
    command = pips()
    # pip's cache would keep a second gigabyte that nobody was told of.
    kinds = ["--only-binary", ":all:", "--no-cache-dir"] if wanted["binary"] else ["--no-binary", ":all:"]
    options, _ = command.parse_args(["--no-deps", "--no-input", "--disable-pip-version-check", *kinds, wanted["name"]])
    heard = Heard()
    logger = logging.getLogger("pip")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(heard)
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)  # noqa: SLF001
        link = find(finder, wanted)
        if link is None:
            kind = "unreachable" if heard.lines else "absent"
            raise Failure(
                kind,
                "\n".join(heard.lines[-3:]) or f"no {wanted['name']} {wanted['version']} in the index that pip is set to use",
            )
        save(session, link, wanted)


def main(argument: str) -> int:
    """Run, and say what came of it; the exit code is 0 or 1."""
    try:
        download(json.loads(argument))
    except Failure as failure:
        say(error=failure.kind, text=str(failure))
        return 1
    except OSError as error:  # those of requests are of this kind too
        say(error="disk" if error.errno in FULL else "unreachable", text=f"{type(error).__name__}: {error}")
        return 1
    except Exception as error:  # noqa: BLE001 - private modules of pip: anything may have changed
        network = "Connection" in type(error).__name__ or any(name in type(error).__module__ for name in ("requests", "urllib3"))
        say(error="unreachable" if network else "pip", text=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    # The folder of this file holds modules named like those of the standard library.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != os.path.dirname(os.path.abspath(__file__))]
    sys.exit(main(sys.argv[1]))
