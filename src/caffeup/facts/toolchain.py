"""Rows about GPUs, CUDA, cuDNN and compilers."""

from __future__ import annotations

from typing import Optional

from caffeup.model.base import ComputeCapability, Value


class Gpu(Value, kw_only=True):
    """One compute capability."""

    id: str
    family: str
    cuda: str
    cudnn: str = ""
    last_driver: Optional[int] = None
    jetson: bool = False
    chips: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    source: tuple[str, ...]

    @property
    def compute_capability(self) -> ComputeCapability:
        """The row's id as a value."""
        return ComputeCapability.parse(self.id)


class Jetson(Value, kw_only=True):
    """One Jetson system on a chip."""

    id: str
    boards: tuple[str, ...]
    cc: str
    cuda: str
    source: tuple[str, ...]

    @property
    def compute_capability(self) -> ComputeCapability:
        """Its GPU's compute capability."""
        return ComputeCapability.parse(self.cc)


class CudaRelease(Value, kw_only=True):
    """One CUDA release and its drivers."""

    id: str
    cuda: str
    driver: str
    least_driver: str = ""
    source: tuple[str, ...]


class PackagedToolkit(Value, kw_only=True):
    """The toolkit that a distribution's own packages hold."""

    id: str
    distro: str
    release: str
    cuda: str
    source: tuple[str, ...]


class HostCompiler(Value, kw_only=True):
    """Host compilers that a toolkit accepts."""

    id: str
    cuda: str
    gcc: str
    clang: str = ""
    source: tuple[str, ...]


class DefaultGcc(Value, kw_only=True):
    """The gcc of a distribution release."""

    id: str
    distro: str
    release: str
    codename: str
    gcc: int
    source: tuple[str, ...]


class Cudnn(Value, kw_only=True):
    """Which cuDNN goes with which CUDA and GPUs."""

    id: str
    cudnn: str
    cuda: str
    cc: str
    source: tuple[str, ...]


class GpuFile(Value, kw_only=True):
    """gpus.toml."""

    gpu: tuple[Gpu, ...] = ()
    jetson: tuple[Jetson, ...] = ()


class CudaFile(Value, kw_only=True):
    """cuda.toml."""

    cuda: tuple[CudaRelease, ...] = ()
    packaged: tuple[PackagedToolkit, ...] = ()


class CompilerFile(Value, kw_only=True):
    """compilers.toml."""

    host_compiler: tuple[HostCompiler, ...] = ()
    default_gcc: tuple[DefaultGcc, ...] = ()


class CudnnFile(Value, kw_only=True):
    """cudnn.toml."""

    cudnn: tuple[Cudnn, ...] = ()
