"""The package index through pip's own access, from a folder of files: nothing of an sdist is run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, ClassVar, Optional

import pytest

from caffeup.errors import CaffeupError, DiskError
from caffeup.source.index import PROGRAM, Pinned, download
from caffeup.source.problems import BadArchive, NotFetched, Unreachable
from caffeup.stream import run_stream

NAME = "no-such-thing-of-caffeup"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for pip's find-links with one sdist, whose set-up code would leave a trace, and one wheel."""
    links = tmp_path / "links"
    links.mkdir()
    setup = f"open({str(tmp_path / 'ran')!r}, 'w').write('x')\n".encode()
    with tarfile.open(links / f"{NAME}-1.0.tar.gz", "w:gz") as tar:
        for name, content in (("setup.py", setup), ("PKG-INFO", f"Name: {NAME}\nVersion: 1.0\n".encode())):
            info = tarfile.TarInfo(f"{NAME}-1.0/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(links / f"{NAME.replace('-', '_')}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("x.py", "")
    (tmp_path / "into").mkdir()
    return tmp_path


def run_with(**env: str) -> Callable[[Sequence[str], Callable[[str], None]], int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}

    def run(argv: Sequence[str], on_line: Callable[[str], None]) -> int:
        settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "3", **env}
        return run_stream(argv, cwd="/", env={**clean, **settings}, on_line=on_line).status

    return run


def offline(folder: Path) -> Callable[[Sequence[str], Callable[[str], None]], int]:
    return run_with(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder / "links"))


def of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_sdist_is_downloaded_and_not_run(folder: Path) -> None:
    wanted = Pinned(name=NAME, version="1.0", sha256=of(folder / f"links/{NAME}-1.0.tar.gz"))
    steps: list[tuple[str, int, int]] = []
    got = download(
        wanted, folder / "into", run=offline(folder), python=[sys.executable], progress=lambda *step: steps.append(step)
    )
    assert got == folder / f"into/{NAME}-1.0.tar.gz"
    assert of(got) == wanted.sha256
    assert not (folder / "ran").exists()
    assert steps[-1][1] == got.stat().st_size


def test_wheel_by_its_name(folder: Path) -> None:
    file = f"{NAME.replace('-', '_')}-1.0-py3-none-any.whl"
    wanted = Pinned(name=NAME, version="1.0", file=file, sha256=of(folder / "links" / file), binary=True)
    assert download(wanted, folder / "into", run=offline(folder), python=[sys.executable]).name == file


def test_another_hash_is_refused_and_nothing_is_left(folder: Path) -> None:
    wanted = Pinned(name=NAME, version="1.0", sha256="0" * 64)
    with pytest.raises(BadArchive, match="its hash differs") as caught:
        download(wanted, folder / "into", run=offline(folder), python=[sys.executable])
    assert "expected sha256 000" in caught.value.details
    assert list((folder / "into").iterdir()) == []


def test_version_that_the_index_has_not(folder: Path) -> None:
    with pytest.raises(NotFetched, match="has no"):
        download(Pinned(name=NAME, version="2.0", sha256="0"), folder / "into", run=offline(folder), python=[sys.executable])


def test_index_that_does_not_answer(folder: Path) -> None:
    run = run_with(PIP_INDEX_URL="http://user:secret@127.0.0.1:9/simple")
    with pytest.raises(Unreachable) as caught:
        download(Pinned(name=NAME, version="1.0", sha256="0"), folder / "into", run=run, python=[sys.executable])
    assert "secret" not in caught.value.details
    assert "127.0.0.1" in caught.value.details


def test_next_python_is_asked_where_one_has_no_pip(folder: Path) -> None:
    asked: list[str] = []

    def run(argv: Sequence[str], on_line: Callable[[str], None]) -> int:
        asked.append(argv[0])
        assert argv[1] == str(PROGRAM)
        if argv[0] == "first":
            on_line(json.dumps({"error": "pip", "text": "no pip"}))
            return 1
        on_line("WARNING: something that pip says")
        on_line(json.dumps({"file": "/x/y.tar.gz"}))
        return 0

    got = download(Pinned(name="n", version="1", sha256="0"), folder, run=run, python=["first", "second"])
    assert (got, asked) == (Path("/x/y.tar.gz"), ["first", "second"])


def test_no_python_at_all(folder: Path) -> None:
    with pytest.raises(NotFetched, match="no Python with pip"):
        download(Pinned(name="n", version="1", sha256="0"), folder, run=offline(folder), python=[])


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('{"error": "pip", "text": "laid out in another way"}', NotFetched),
        ('{"error": "unreachable", "text": "x"}', Unreachable),
        ('{"error": "disk", "text": "x"}', DiskError),
        ("Traceback (most recent call last):", NotFetched),
        ("", NotFetched),
        ("[1]", NotFetched),
    ],
)
def test_every_end_is_an_error_with_a_way_on(folder: Path, said: str, kind: type[CaffeupError]) -> None:
    def run(_: Sequence[str], on_line: Callable[[str], None]) -> int:
        on_line(said)
        return 1

    with pytest.raises(kind) as caught:
        download(Pinned(name="n", version="1", sha256="0"), folder, run=run, python=["python"])
    assert caught.value.commands


def test_a_python_that_cannot_be_started(folder: Path) -> None:
    with pytest.raises(CaffeupError):
        download(Pinned(name="n", version="1", sha256="0"), folder, run=offline(folder), python=["/nothing/python"])


class Breaks(BaseHTTPRequestHandler):
    """An index with one wheel, whose connections break in the middle."""

    content = b""
    name = ""
    gives_parts = True
    breaks = 2
    """How many times before it holds."""
    ranges: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            return self._send(200, f'<a href="/{self.name}">{self.name}</a>'.encode(), "text/html")
        wanted = self.headers.get("Range", "")
        self.ranges.append(wanted)
        start = int(wanted[6:-1]) if wanted and self.gives_parts else 0
        rest = self.content[start:]
        whole = len(self.ranges) > self.breaks
        return self._send(206 if start else 200, rest, "application/zip", None if whole else len(rest) // 2)

    def _send(self, status: int, body: bytes, kind: str, cut: Optional[int] = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.mark.parametrize(("parts", "breaks"), [(True, 2), (False, 2), (True, 99)])
def test_a_connection_that_breaks_is_taken_up_again(folder: Path, parts: bool, breaks: int) -> None:
    file = f"{NAME.replace('-', '_')}-1.0-py3-none-any.whl"
    content = (folder / "links" / file).read_bytes()
    ranges: list[str] = []
    kind = type("One", (Breaks,), {"content": content, "name": file, "gives_parts": parts, "breaks": breaks, "ranges": ranges})
    wanted = Pinned(name=NAME, version="1.0", file=file, sha256=of(folder / "links" / file), binary=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = run_with(PIP_INDEX_URL=f"http://127.0.0.1:{server.server_port}/simple", NO_PROXY="*", PIP_CONFIG_FILE=os.devnull)
        if breaks > 5:
            with pytest.raises(Unreachable):
                download(wanted, folder / "into", run=run, python=[sys.executable])
            assert list((folder / "into").iterdir()) == []
        else:
            assert download(wanted, folder / "into", run=run, python=[sys.executable]).read_bytes() == content
            assert ranges[0] == ""
            assert all(one.startswith("bytes=") for one in ranges[1:])
        server.shutdown()


class Pages(BaseHTTPRequestHandler):
    """An index that answers, and has nothing."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_index_that_answers_and_has_nothing(folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = run_with(PIP_INDEX_URL=f"http://127.0.0.1:{server.server_port}/simple", NO_PROXY="*")
        with pytest.raises(NotFetched, match="has no"):
            download(Pinned(name=NAME, version="1.0", sha256="0"), folder / "into", run=run, python=[sys.executable])
        server.shutdown()
