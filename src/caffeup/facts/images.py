"""Rows of images.toml: what containers are made from."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.facts.ranges import Range
from caffeup.model.base import Value


class Base(Value, kw_only=True):
    """The image of a distribution."""

    id: str
    distros: tuple[str, ...]
    build: str
    run: str
    cuda: str = ""
    """How it is called in the tags of nvidia/cuda; empty: there are none."""
    source: tuple[str, ...]


class CudaImage(Value, kw_only=True):
    """The image of a release of CUDA."""

    id: str
    cuda: str
    """Half-open range of toolkits that it serves for."""
    release: str
    cudnn_word: str
    cudnn: int
    """Major version of the cuDNN in it."""
    systems: tuple[str, ...]
    source: tuple[str, ...]


class ImageFile(Value, kw_only=True):
    """images.toml."""

    base: tuple[Base, ...] = ()
    cuda: tuple[CudaImage, ...] = ()

    def base_of(self, distro: str) -> Optional[Base]:
        """The row of a distribution."""
        return next((row for row in self.base if distro in row.distros), None)

    def cuda_of(self, toolkit: Version) -> Optional[CudaImage]:
        """The row that serves for a toolkit."""
        return next((row for row in self.cuda if toolkit in Range.parse(row.cuda)), None)
