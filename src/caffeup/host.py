"""The only owner of programs, environment and file reads for detection.

Everything that looks at the machine goes through a ``Host``, so that a machine can be recorded into a
folder (``caffeup.recording``) and played back in tests, and so that nothing else in caffeup depends on where it runs.
"""
# ruff: noqa: PTH110, PTH112, PTH113, PTH116, PTH207 - a Host speaks of paths as text, and a Path would drop "..", "." and a last "/"

from __future__ import annotations

import glob as globbing
import os
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import IO, Optional, Protocol

import msgspec

from caffeup.model.base import Value, from_json
from caffeup.model.driver import NO_ANSWER, DriverAnswer

RAN_OUT_OF_TIME = 124
NOT_EXECUTABLE = 126
FILES = {"nvml": "libnvidia-ml.so.1", "libcuda": "libcuda.so.1"}
LOADER_CACHE = "/etc/ld.so.cache"
LOADER_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/lib/wsl/lib")
DRIVER_SECONDS = 15.0
"""A machine with many GPUs and no persistence daemon wakes them one after another."""
OUTPUT_LIMIT = 4 << 20
TEXT_LIMIT = 8 << 20
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class Output(Value):
    """What a program gave. ``status`` is its exit code; 124: ran out of time; 126: not executable."""

    status: int
    stdout: str = ""
    stderr: str = ""


class Own(Value):
    """What only the running process can say of itself and of the kernel below it."""

    uid: int = 1000
    cores: int = 1
    """Cores in this process's affinity mask."""
    arch: str = "x86_64"
    kernel: str = ""
    glibc: str = ""
    """``2.36``; empty where the C library is another one."""
    executable: str = ""
    """The Python that runs caffeup."""
    prefix: str = ""
    """The environment it runs in."""
    base_prefix: str = ""
    """The installation that environment was made from."""
    disk_available_bytes: int = 0
    """Free where the current folder is."""


class Host(Protocol):
    """The machine as seen by the probes. None means "not there"; nothing here raises for an absent thing."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment, as it was when the host was made."""
        ...

    @property
    def own(self) -> Own:
        """The running process."""
        ...

    def read_text(self, path: str) -> Optional[str]:
        """The file as text (undecodable bytes replaced); None where it is absent or unreadable."""
        ...

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        """At most ``limit`` bytes from the start of the file."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder (links followed)."""
        ...

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder (links followed)."""
        ...

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Sorted absolute paths that match."""
        ...

    def real_path(self, path: str) -> Optional[str]:
        """The path with all links resolved; None where nothing stands there."""
        ...

    def which(self, name: str) -> tuple[str, ...]:
        """All executables of that name on PATH, in PATH's order; for a path: itself, where it is executable."""
        ...

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        """Run a program with LC_ALL=C, no terminal, from the root folder; None where there is no such program."""
        ...

    def nvml(self) -> Optional[DriverAnswer]:
        """What NVIDIA's management library says; None where there is no such library."""
        ...

    def libcuda(self) -> Optional[DriverAnswer]:
        """What NVIDIA's driver library says; None where there is no such library."""
        ...


def path_folders(env: Mapping[str, str], variable: str = "PATH") -> tuple[str, ...]:
    """The absolute folders of a search path, each once; an empty entry, which means the current folder, is left out."""
    text = env.get(variable, DEFAULT_PATH if variable == "PATH" else "")
    folders = (folder.rstrip("/") or "/" for folder in text.split(":") if folder.startswith("/") and "\0" not in folder)
    return tuple(dict.fromkeys(folders))


class RealHost:
    """The machine that caffeup runs on."""

    def __init__(self, env: Optional[Mapping[str, str]] = None) -> None:
        self._env = MappingProxyType(dict(os.environ if env is None else env))
        self._own = _own()

    @property
    def env(self) -> Mapping[str, str]:
        """The environment, as it was when the host was made."""
        return self._env

    @property
    def own(self) -> Own:
        """The running process, as it was when the host was made."""
        return self._own

    def read_text(self, path: str) -> Optional[str]:
        """The file as text; None where it is absent or unreadable."""
        data = self.read_bytes(path, TEXT_LIMIT)
        return None if data is None else data.decode("utf-8", "replace")

    def read_bytes(self, path: str, limit: int = 1 << 20) -> Optional[bytes]:
        """At most ``limit`` bytes; only of a regular file, because a pipe or a device could wait for ever."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return None
            with Path(path).open("rb") as file:
                return file.read(limit)
        except (OSError, ValueError):
            return None

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder."""
        return os.path.isdir(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Sorted absolute paths that match."""
        try:
            return tuple(sorted(globbing.glob(pattern)))
        except (OSError, ValueError):
            return ()

    def real_path(self, path: str) -> Optional[str]:
        """The path with all links resolved."""
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError):
            return None
        return real if os.path.exists(real) else None

    def which(self, name: str) -> tuple[str, ...]:
        """All executables of that name."""
        paths = (name,) if "/" in name else tuple(f"{folder.rstrip('/')}/{name}" for folder in path_folders(self._env))
        return tuple(path for path in paths if _is_program(path))

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0, stdin: str = "") -> Optional[Output]:
        """Run a program; all of its processes are ended when the time is over."""
        return _run(argv, env={**self._env, "LC_ALL": "C", "LANGUAGE": "C"}, timeout=timeout, stdin=stdin)

    def nvml(self) -> Optional[DriverAnswer]:
        """Ask in a process of its own: a driver that hangs must not hang caffeup."""
        return self._ask_driver("nvml")

    def libcuda(self) -> Optional[DriverAnswer]:
        """Ask in a process of its own."""
        return self._ask_driver("libcuda")

    def _ask_driver(self, library: str) -> Optional[DriverAnswer]:
        if not _loadable(FILES[library], self._env):
            return None
        script = str(Path(__file__).with_name("driver_query.py"))
        options = ("-I",) if library == "nvml" else ("-I", "-S")  # only pynvml is not in the standard library
        # All GPUs are asked for: what the environment hides is a finding of its own.
        env = {name: value for name, value in self._env.items() if name != "CUDA_VISIBLE_DEVICES"}
        output = _run((sys.executable, *options, script, library, *binding()), env=env, timeout=DRIVER_SECONDS, stdin="")
        if output is None or output.status == RAN_OUT_OF_TIME:
            return DriverAnswer(error=f"{NO_ANSWER} within {DRIVER_SECONDS:.0f} s" if output else "Python could not be started")
        try:
            return from_json(output.stdout, Optional[DriverAnswer])  # type: ignore[arg-type]
        except msgspec.DecodeError:
            return DriverAnswer(error=f"exit {output.status}: {_last_line(output.stderr)}".rstrip(": "))


def binding() -> tuple[str, ...]:
    """The folder of pynvml: -I leaves out the user's own packages and PYTHONPATH, where it may have been found."""
    spec = find_spec("pynvml")
    return (str(Path(spec.origin).parent),) if spec is not None and spec.origin else ()


def _own() -> Own:
    uname = os.uname()
    return Own(
        uid=os.geteuid(),
        cores=len(os.sched_getaffinity(0)),
        arch=uname.machine,
        kernel=uname.release,
        glibc=_glibc(),
        executable=sys.executable or "",
        prefix=sys.prefix,
        base_prefix=sys.base_prefix,
        disk_available_bytes=_free_bytes(),
    )


def _loadable(name: str, env: Mapping[str, str]) -> bool:
    """Whether the loader can know the library at all: no process need be started where it does not."""
    folders = (*path_folders(env, "LD_LIBRARY_PATH"), *LOADER_FOLDERS)
    if any(os.path.exists(f"{folder}/{name}") for folder in folders):
        return True
    try:
        return name.encode() in Path(LOADER_CACHE).read_bytes()
    except OSError:
        return os.path.exists(f"/usr/lib/{os.uname().machine}-linux-gnu/{name}")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _glibc() -> str:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return ""
    return version if name == "glibc" else ""


def _free_bytes() -> int:
    try:
        return shutil.disk_usage(".").free
    except OSError:
        return 0


def _is_program(path: str) -> bool:
    try:
        return os.path.isfile(path) and os.access(path, os.X_OK)
    except ValueError:
        return False


def _run(argv: tuple[str, ...], *, env: Mapping[str, str], timeout: float, stdin: str) -> Optional[Output]:
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd="/",
            start_new_session=True,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        if "/" in argv[0] and os.path.exists(argv[0]):  # a script whose interpreter is not there
            return Output(status=NOT_EXECUTABLE, stderr=f"{argv[0]}: {error.strerror}")
        return None
    except OSError as error:
        return Output(status=NOT_EXECUTABLE, stderr=f"{argv[0]}: {error.strerror}")
    except (ValueError, IndexError):  # a NUL in an argument, or no arguments
        return None
    if process.stdin is not None:
        threading.Thread(target=_feed, args=(process.stdin, stdin.encode("utf-8", "replace")), daemon=True).start()
    return _collect(process, time.monotonic() + timeout)


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError, ValueError), pipe:
        pipe.write(data)


def _collect(process: subprocess.Popen[bytes], deadline: float) -> Output:
    """Read both pipes to their end, to a limit; a grandchild that keeps them open is waited for a moment only."""
    held: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    ended: Optional[float] = None
    with selectors.DefaultSelector() as selector:
        for name in held:
            selector.register(getattr(process, name), selectors.EVENT_READ, name)
        while selector.get_map() and time.monotonic() < deadline:
            for key, _ in selector.select(timeout=0.1):
                data = os.read(key.fd, 1 << 16)
                if data:
                    held[key.data] += data[: max(0, OUTPUT_LIMIT - len(held[key.data]))]
                else:
                    selector.unregister(key.fileobj)
            if ended is None and process.poll() is not None:
                ended = time.monotonic()
            if ended is not None and time.monotonic() > ended + 0.3:
                break
    status = _end(process, deadline)
    texts = {name: bytes(data).decode("utf-8", "replace") for name, data in held.items()}
    return Output(status=status, stdout=texts["stdout"], stderr=texts["stderr"])


def _end(process: subprocess.Popen[bytes], deadline: float) -> int:
    """Exit code, after ending whatever is left of the process's group."""
    try:
        status = process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        status = RAN_OUT_OF_TIME
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1.0)  # one in an uninterruptible wait in a driver does not even die of SIGKILL
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return status
