"""The facts as one frozen value: rows read on demand, and the questions that may be asked of them.

No table leaves this module; what another part needs to know is a method here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Protocol, TypeVar

import msgspec
from packaging.version import Version

from caffeup.facts.cuda_wheels import CudaFromWheels, CudaWheelFile
from caffeup.facts.distros import DistroFile
from caffeup.facts.forks import Feature, Fork, ForkFile
from caffeup.facts.libraries import LibraryFile, LibraryRow
from caffeup.facts.ranges import Range
from caffeup.facts.toolchain import (
    CompilerFile,
    CudaFile,
    CudaRelease,
    Cudnn,
    CudnnFile,
    Gpu,
    GpuFile,
    Jetson,
)
from caffeup.model.base import ComputeCapability
from caffeup.model.explanation import Explained, ExplainedFile
from caffeup.model.fix import Fix
from caffeup.model.gpus import Figure, FigureFile

R = TypeVar("R", bound=msgspec.Struct)


class Reader(Protocol):
    """Where rows come from; ``facts.load`` has the one that reads the files."""

    def table(self, name: str, kind: type[R]) -> R:
        """The table ``name``.toml, the user's rows merged in by id."""
        ...

    def fixes(self) -> tuple[Fix, ...]:
        """All rows of fixes/, by id."""
        ...


@dataclass(frozen=True)
class Facts:
    """Everything known beforehand. The installed toolkit is asked first; these answer where it cannot."""

    reader: Reader

    @cached_property
    def _gpus(self) -> GpuFile:
        return self.reader.table("gpus", GpuFile)

    @cached_property
    def _cuda(self) -> CudaFile:
        return self.reader.table("cuda", CudaFile)

    @cached_property
    def _compilers(self) -> CompilerFile:
        return self.reader.table("compilers", CompilerFile)

    @cached_property
    def _cudnn(self) -> CudnnFile:
        return self.reader.table("cudnn", CudnnFile)

    @cached_property
    def _cuda_wheels(self) -> CudaWheelFile:
        return self.reader.table("cuda_wheels", CudaWheelFile)

    @cached_property
    def fixes(self) -> tuple[Fix, ...]:
        """Every known incompatibility, by id."""
        return self.reader.fixes()

    def fix(self, name: str) -> Optional[Fix]:
        """The fix with this id."""
        return next((one for one in self.fixes if one.id == name), None)

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the GPU table, explained, in its order."""
        return self.reader.table("figures", FigureFile).figure

    @cached_property
    def explained(self) -> tuple[Explained, ...]:
        """Findings that are no fixes, explained."""
        return self.reader.table("findings", ExplainedFile).finding

    # --- tables with questions of their own: their rows are values with methods -------------------------------

    @cached_property
    def libraries(self) -> tuple[LibraryRow, ...]:
        """Libraries, programs and Python parts that a build needs, by the table's order."""
        return self.reader.table("libraries", LibraryFile).library

    @cached_property
    def distros(self) -> DistroFile:
        """Distributions and their package managers."""
        return self.reader.table("distros", DistroFile)

    @cached_property
    def _forks(self) -> ForkFile:
        return self.reader.table("forks", ForkFile)

    @property
    def forks(self) -> tuple[Fork, ...]:
        """Families of trees, in the order in which fingerprints are tried."""
        return self._forks.fork

    @property
    def tree_features(self) -> tuple[Feature, ...]:
        """What a tree may have, and what shows it."""
        return self._forks.feature

    # --- GPUs ---------------------------------------------------------------------------------------------

    def known(self, cc: ComputeCapability) -> bool:
        """Whether this compute capability exists, as far as the table goes."""
        return self._gpu(cc) is not None

    def family(self, cc: ComputeCapability) -> str:
        """``Pascal``; empty where it is not known."""
        row = self._gpu(cc)
        return row.family if row else ""

    def compute_capabilities(self, cuda: Version) -> tuple[ComputeCapability, ...]:
        """What this CUDA release compiles for, ascending."""
        return tuple(sorted(row.compute_capability for row in self._gpus.gpu if cuda in Range.parse(row.cuda)))

    def desktop(self, cc: ComputeCapability) -> bool:
        """Whether it is found outside Jetson boards."""
        row = self._gpu(cc)
        return row is None or not row.jetson

    def toolkits_for(self, cc: ComputeCapability) -> Optional[Range]:
        """CUDA releases that can compile for it; None where it is not known."""
        row = self._gpu(cc)
        return Range.parse(row.cuda) if row else None

    def last_driver_for(self, cc: ComputeCapability) -> Optional[int]:
        """The last driver branch that supports it (580), None where the newest does."""
        row = self._gpu(cc)
        return row.last_driver if row else None

    def jetson_soc(self, token: str) -> Optional[Jetson]:
        """The SoC of a device-tree token: ``tegra234`` or ``nvidia,tegra234``."""
        name = token.strip().lower().rpartition(",")[2]
        return next((row for row in self._gpus.jetson if row.id == name), None)

    def gpu_by_name(self, name: str) -> Optional[ComputeCapability]:
        """A card's compute capability by its product name: the longest name that fits wins; a last resort."""
        best: Optional[tuple[int, ComputeCapability]] = None
        for row in self._gpus.gpu:
            for card in (*row.cards, *row.chips):
                if (best is None or len(card) > best[0]) and _named(card, name):
                    best = (len(card), row.compute_capability)
        return best[1] if best else None

    def _gpu(self, cc: ComputeCapability) -> Optional[Gpu]:
        return next((row for row in self._gpus.gpu if row.id == str(cc)), None)

    # --- toolkits and drivers -----------------------------------------------------------------------------

    def minimum_driver(self, cuda: Version) -> str:
        """The oldest driver that runs what this CUDA release compiles (as SASS): ``525.60.13``; empty: not known."""
        row = self._release(cuda)
        return (row.least_driver or row.driver) if row else ""

    def driver_of(self, cuda: Version) -> str:
        """The driver that came with this CUDA release: it also compiles its PTX at start."""
        row = self._release(cuda)
        return row.driver if row else ""

    def newest_cuda_for_driver(self, release: Version) -> Optional[Version]:
        """The newest CUDA release whose bundled driver is not newer than this one."""
        fitting = [Version(row.id) for row in self._cuda.cuda if Version(row.driver) <= release]
        return max(fitting, default=None)

    def packaged_toolkit(self, distro: str, release: str) -> Optional[Version]:
        """The CUDA release in the distribution's own packages."""
        for row in self._cuda.packaged:
            if row.distro == distro and row.release == release:
                return Version(row.cuda)
        return None

    def releases_in(self, wanted: Range) -> tuple[Version, ...]:
        """Known CUDA releases within a range, ascending."""
        return tuple(sorted(version for version in (Version(row.id) for row in self._cuda.cuda) if version in wanted))

    def cuda_from_wheels(self, arch: str, glibc: Optional[Version]) -> Optional[CudaFromWheels]:
        """What can be laid out from NVIDIA's wheels on such a machine; None where they are not made for it."""
        wheels = tuple(one for one in self._cuda_wheels.wheel if one.arch == arch)
        for row in self._cuda_wheels.release:
            if wheels and glibc is not None and glibc >= Version(row.glibc):
                return CudaFromWheels(id=row.id, cuda=Version(row.cuda), cudnn=Version(row.cudnn), wheels=wheels)
        return None

    def _release(self, cuda: Version) -> Optional[CudaRelease]:
        older = [row for row in self._cuda.cuda if Version(row.id).major == cuda.major and Version(row.id) <= cuda]
        return max(older, key=lambda row: Version(row.id), default=None)

    # --- compilers ----------------------------------------------------------------------------------------

    def max_gcc(self, cuda: Version) -> Optional[int]:
        """The newest gcc major that this CUDA release accepts; its own host_config.h knows better."""
        return self._newest("gcc", cuda)

    def max_clang(self, cuda: Version) -> Optional[int]:
        """The same for clang."""
        return self._newest("clang", cuda)

    def default_gcc(self, distro: str, release: str) -> Optional[int]:
        """The gcc major of a distribution release (by number or codename)."""
        for row in self._compilers.default_gcc:
            if row.distro == distro and release in (row.release, row.codename):
                return row.gcc
        return None

    def _newest(self, which: str, cuda: Version) -> Optional[int]:
        for row in self._compilers.host_compiler:
            text = row.gcc if which == "gcc" else row.clang
            if text and cuda in Range.parse(row.cuda):
                high = Range.parse(text).high
                return high.major - 1 if high else None
        return None

    # --- cuDNN --------------------------------------------------------------------------------------------

    def cudnn_supports(self, cudnn: Version, cuda: Version, cc: Optional[ComputeCapability] = None) -> Optional[bool]:
        """Whether they go together; None where this cuDNN is not in the table."""
        row = self._cudnn_row(cudnn)
        if row is None:
            return None
        if cuda not in Range.parse(row.cuda):
            return False
        if cc is None:
            return True
        coded = self.cudnn_for(cc)
        return cc >= ComputeCapability.parse(row.cc) and (coded is None or cudnn in coded)

    def cudnn_needs(self, cudnn: Version) -> str:
        """What this cuDNN asks for, in words: ``CUDA 11.0 up to …, compute capability 5.0 or newer``."""
        row = self._cudnn_row(cudnn)
        return f"CUDA {Range.parse(row.cuda).words()}, compute capability {row.cc} or newer" if row else ""

    def cudnn_for(self, cc: ComputeCapability) -> Optional[Range]:
        """Releases of cuDNN that hold code for this GPU; None where any will do, or it is not known."""
        row = self._gpu(cc)
        return Range.parse(row.cudnn) if row and row.cudnn else None

    def _cudnn_row(self, cudnn: Version) -> Optional[Cudnn]:
        return next((row for row in self._cudnn.cudnn if cudnn in Range.parse(row.cudnn)), None)


def _named(card: str, name: str) -> bool:
    pattern = re.escape(card).replace(r"\#", "[0-9]").replace("#", "[0-9]")
    return re.search(rf"(?<![0-9A-Za-z]){pattern}(?![0-9A-Za-z])", name, re.IGNORECASE) is not None
