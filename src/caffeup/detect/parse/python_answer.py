"""What a Python answered to ``detect.python_query``."""

from __future__ import annotations

from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.detect.parse.versions import parse_version


class Module(msgspec.Struct, frozen=True):
    """One installed package; all empty where it is not there."""

    folder: str = ""
    version: str = ""
    include: str = ""
    path: str = ""
    """The extra folder it was found in."""

    @property
    def number(self) -> Optional[Version]:
        """Its version; 0 where it is there and does not say."""
        return (parse_version(self.version) or Version("0")) if self.folder else None


class Answer(msgspec.Struct, frozen=True):
    """The answer; unknown keys are passed over."""

    version: str
    prefix: str
    base_prefix: str
    number: str
    stage: str = ""
    serial: int = 0
    implementation: str = "cpython"
    include: str = ""
    library_dir: str = ""
    conda: bool = False
    numpy: Module = Module()
    protobuf: Module = Module()
    skimage: Module = Module()
    six: Module = Module()

    @property
    def release(self) -> Version:
        """``3.15.0a2``."""
        return parse_version(f"{self.version}{self.stage}{self.serial if self.stage else ''}") or Version("0")


def parse_answer(text: str, mark: str) -> Optional[Answer]:
    """The answer in what was printed; None where there is none or it cannot be read."""
    for line in reversed(text.splitlines()):
        if line.startswith(mark):
            try:
                return msgspec.json.decode(line[len(mark) :].encode("utf-8", "replace"), type=Answer)
            except msgspec.DecodeError:
                return None
    return None
