"""Everything detected about a machine. Each thing found says how; all candidates are kept, also those that lose."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.model.base import SCHEMA, ComputeCapability, Value, Word
from caffeup.model.finding import Finding


class Found(Value, kw_only=True):
    """A thing that was found, and how."""

    via: str
    """The exact source: ``env CUDA_HOME``, ``nvcc --dryrun TOP``, ``glob /usr/local/cuda*``."""
    evidence: str = ""
    """The path or command that shows it."""


class Attempt(Value, kw_only=True):
    """One place where something was looked for."""

    where: str
    outcome: str
    """``not there``, ``unreadable``, ``exit 9: …``, ``no version in it``."""


class Missing(Value, kw_only=True):
    """A thing that was looked for and not found."""

    what: str
    tried: tuple[Attempt, ...] = ()


class Container(Word):
    """What surrounds the system."""

    NONE = "none"
    DOCKER = "docker"
    PODMAN = "podman"
    APPTAINER = "apptainer"
    KUBERNETES = "kubernetes"
    LXC = "lxc"
    OTHER = "other"


class System(Value, kw_only=True):
    """The system itself."""

    distro: str
    """``ID`` of os-release (``debian``, ``ubuntu``, ``fedora``, ``arch`` …), or ``unknown``."""
    distro_like: tuple[str, ...] = ()
    distro_version: str = ""
    distro_codename: str = ""
    arch: str = "x86_64"
    """As ``uname -m`` says: ``x86_64``, ``aarch64``."""
    triplet: str = ""
    """Debian's multiarch folder (``x86_64-linux-gnu``), empty elsewhere."""
    kernel: str = ""
    glibc: Optional[Version] = None
    wsl: int = 0
    """0, or the version of WSL."""
    container: Container = Container.NONE
    jetson: str = ""
    """Board name from the device tree, where it is a Jetson."""
    l4t: str = ""
    cores: int = 1
    """Cores this process may use (affinity and cgroup limits respected)."""
    memory_bytes: int = 0
    memory_available_bytes: int = 0
    disk_available_bytes: int = 0
    """Free where the current folder is."""
    root: bool = False
    sudo: bool = False
    """Whether ``sudo -n`` works."""


class Gpu(Found, kw_only=True):
    """One GPU."""

    index: int
    name: str
    compute_capability: Optional[ComputeCapability] = None
    memory_bytes: Optional[int] = None
    mig: bool = False
    uuid: str = ""


class GpuState(Word):
    """Why there are GPUs, or why there are none."""

    PRESENT = "present"
    NONE = "none"
    """No NVIDIA device on the bus."""
    NO_DRIVER = "no-driver"
    """A device on the bus and no driver for it."""
    DRIVER_SILENT = "driver-silent"
    """A driver that does not answer (other version than its library, after an update, …)."""
    HIDDEN = "hidden"
    """A container that was started without its GPUs, or CUDA_VISIBLE_DEVICES hides them."""


class Driver(Found, kw_only=True):
    """The NVIDIA driver."""

    release: Optional[Version] = None
    """``580.65.06``: the driver's own number."""
    cuda: Optional[Version] = None
    """``13.0``: the newest CUDA it supports. Not a toolkit's version."""


class Graphics(Value, kw_only=True):
    """GPUs and driver."""

    state: GpuState
    gpus: tuple[Gpu, ...] = ()
    driver: Optional[Driver] = None
    tried: tuple[Attempt, ...] = ()


class ToolkitLayout(Word):
    """How a toolkit's files lie."""

    CLASSIC = "classic"
    """One root with bin, include and lib64 (or lib)."""
    DISTRO = "distro"
    """A distribution's packages: headers in /usr/include."""
    WHEELS = "wheels"
    """NVIDIA's pip wheels for CUDA 13: one root."""
    SPLIT_WHEELS = "split-wheels"
    """NVIDIA's pip wheels for CUDA 11 and 12: one folder a package; no nvcc in them."""
    CONDA = "conda"
    LAID_OUT = "laid-out"
    """NVIDIA's wheels with cuDNN in one root in the user's data folder, made by caffeup."""


class Toolkit(Found, kw_only=True):
    """One CUDA toolkit."""

    root: str
    version: Version
    layout: ToolkitLayout = ToolkitLayout.CLASSIC
    nvcc: str = ""
    """The real nvcc (not a wrapper), empty where the toolkit has none."""
    include_dirs: tuple[str, ...] = ()
    """What g++ needs, CCCL's folder included."""
    library_dirs: tuple[str, ...] = ()
    sass: tuple[ComputeCapability, ...] = ()
    """Compute capabilities it can make SASS for, ascending."""
    ptx: tuple[ComputeCapability, ...] = ()
    max_gcc: Optional[int] = None
    """Newest gcc major that its host_config.h accepts."""
    max_clang: Optional[int] = None
    missing: tuple[str, ...] = ()
    """Parts that Caffe needs and this toolkit lacks: ``cublas``, ``curand``, ``cudart``, ``nvcc``."""
    asked: bool = True
    """Whether sass and max_gcc come from the toolkit itself; otherwise from the table of facts."""


class CudnnHeader(Found, kw_only=True):
    """One cudnn.h."""

    directory: str
    version: Version


class CudnnLibrary(Found, kw_only=True):
    """One libcudnn that can be linked or loaded."""

    directory: str
    file: str
    version: Optional[Version] = None
    linkable: bool = True
    """Whether an unversioned ``libcudnn.so`` stands there."""


class Compiler(Found, kw_only=True):
    """One host compiler for C++."""

    kind: str
    """``gcc`` or ``clang``."""
    path: str
    version: Version
    works: bool = True
    """Whether it compiled an empty C++ program with the standard library."""
    target: str = ""


class Program(Found, kw_only=True):
    """One program: make, git, ccache, protoc, pkg-config …"""

    name: str
    path: str
    version: Optional[Version] = None


class Library(Found, kw_only=True):
    """One installed development library (headers and link-time library)."""

    name: str
    """Row of facts/libraries.toml: ``opencv``, ``openblas``, ``hdf5``, ``boost`` …"""
    version: Optional[Version] = None
    include_dirs: tuple[str, ...] = ()
    """Folders that must be added; empty where the compiler looks there anyway."""
    library_dirs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    """Names to give to ``-l``."""
    prefix: str = ""
    """``/usr``, or the root given with --prefix that it comes from."""


class PythonKind(Word):
    """What kind of Python it is."""

    SYSTEM = "system"
    LOCAL = "local"
    PYENV = "pyenv"
    VENV = "venv"
    CONDA = "conda"


class Python(Found, kw_only=True):
    """One Python that pycaffe could be built for."""

    executable: str
    version: Version
    kind: PythonKind
    include: str = ""
    """Folder of Python.h; empty where it is not installed."""
    library: str = ""
    """Name for ``-l``: ``python3.11``, ``python3.6m``; empty where there is no libpython to link."""
    library_dir: str = ""
    numpy: Optional[Version] = None
    numpy_include: str = ""
    boost_python: str = ""
    """Name for ``-l`` of the Boost.Python made for this Python: ``boost_python311``."""
    boost_python_dir: str = ""
    protobuf: Optional[Version] = None
    """The Python runtime of protobuf."""
    skimage: Optional[Version] = None
    six: Optional[Version] = None
    paths: tuple[str, ...] = ()
    """Folders that must be added to its path for what was found of numpy, protobuf, skimage and six (unpacked packages)."""
    own: bool = False
    """Whether caffeup itself runs on it or in its environment; such a one is never chosen."""


class Machine(Value, kw_only=True):
    """Everything detected."""

    schema: int = SCHEMA
    system: System
    graphics: Graphics
    toolkits: tuple[Toolkit, ...] = ()
    cudnn_headers: tuple[CudnnHeader, ...] = ()
    cudnn_libraries: tuple[CudnnLibrary, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    programs: tuple[Program, ...] = ()
    libraries: tuple[Library, ...] = ()
    pythons: tuple[Python, ...] = ()
    missing: tuple[Missing, ...] = ()
    findings: tuple[Finding, ...] = ()
    prefixes: tuple[str, ...] = ()
    """Roots given with --prefix, in order, and last the one with unpacked packages."""
    unpacked: str = ""
    """The one of ``prefixes`` into which caffeup unpacked the distribution's packages; empty: none."""
    wheels_root: str = ""
    """Where CUDA from NVIDIA's wheels lies, or would be laid out; empty: they are not made for such a machine."""
