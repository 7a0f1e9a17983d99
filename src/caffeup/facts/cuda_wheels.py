"""The release of CUDA that is laid out from NVIDIA's wheels, and its files."""

from __future__ import annotations

from packaging.version import Version

from caffeup.model.base import Value


class CudaWheel(Value, kw_only=True):
    """One wheel; its id is the file's name."""

    id: str
    arch: str
    sha256: str
    bytes: int
    unpacked: int

    @property
    def name(self) -> str:
        """``nvidia-cublas``."""
        return self.id.split("-")[0].replace("_", "-")

    @property
    def version(self) -> str:
        """``13.1.1.3``."""
        return self.id.split("-")[1]


class WheelRelease(Value, kw_only=True):
    """Wheels that belong together."""

    id: str
    cuda: str
    cudnn: str
    glibc: str
    """The oldest C library that the wheels are made for."""
    source: tuple[str, ...]


class CudaWheelFile(Value, kw_only=True):
    """cuda_wheels.toml."""

    release: tuple[WheelRelease, ...] = ()
    wheel: tuple[CudaWheel, ...] = ()


class CudaFromWheels(Value, kw_only=True):
    """What is laid out on one kind of machine."""

    id: str
    cuda: Version
    cudnn: Version
    wheels: tuple[CudaWheel, ...]

    @property
    def download_bytes(self) -> int:
        """What comes over the network."""
        return sum(one.bytes for one in self.wheels)

    @property
    def disk_bytes(self) -> int:
        """What stays on the disk."""
        return sum(one.unpacked for one in self.wheels)
