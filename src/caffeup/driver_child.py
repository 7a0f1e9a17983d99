"""The processes in which NVIDIA's libraries are asked about this moment, so that a driver that hangs hangs them alone.

Beside ``host`` and ``stream`` the last owner of programs: the one for NVML stays open and is asked again and again, which
neither of them does.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import msgspec

from caffeup.host import binding
from caffeup.model.base import from_json
from caffeup.model.driver import NO_ANSWER
from caffeup.model.gpus import CudaAnswer, Reading

ANSWER_SECONDS = 20.0
"""A machine with many GPUs and no persistence daemon wakes them one after another."""


class DriverChild:
    """The process that has NVIDIA's library open."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)
        self._child: Optional[subprocess.Popen[bytes]] = None

    @property
    def pid(self) -> int:
        """Its own; 0 where it does not run."""
        return self._child.pid if self._child is not None else 0

    def ask(self) -> Optional[Reading]:
        """One answer; None where there is no such library, an error in it where it gives none."""
        seconds = ANSWER_SECONDS
        try:
            child = self._child or self._start()
            self._child = child
            line = _exchange(child, time.monotonic() + seconds)
        except TimeoutError:
            self.close()
            return Reading(error=f"{NO_ANSWER} within {seconds:.0f} s")
        except OSError as error:
            self.close()
            return Reading(error=f"the library cannot be asked: {error}")
        if not line:
            status = child.wait()
            self.close()
            return Reading(error=f"the process that asked the library ended with {status}")
        try:
            return from_json(line, Optional[Reading])  # type: ignore[arg-type]
        except msgspec.DecodeError as error:
            self.close()
            return Reading(error=f"the library's answer cannot be read: {error}")

    def _start(self) -> subprocess.Popen[bytes]:
        script = str(Path(__file__).with_name("gpu_query.py"))
        return subprocess.Popen(
            [sys.executable, "-I", script, *binding()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**self._env, "LC_ALL": "C"},
            cwd="/",
            start_new_session=True,  # Ctrl-C is ours to hear
            bufsize=0,
        )

    def close(self) -> None:
        """End it; one that hangs in the driver is left to the kernel."""
        child, self._child = self._child, None
        if child is None:
            return
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(OSError):
            child.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=1.0)


def _exchange(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Send a line, read a line; empty where the child has ended, ``TimeoutError`` where it does not answer."""
    if child.stdin is None or child.stdout is None:
        raise ValueError("the child was started without pipes")
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(b"\n")
    out, said = child.stdout.fileno(), bytearray()
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([out], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        data = os.read(out, 1 << 16)
        if not data:
            return b""
        said += data
    return bytes(said)


def ask_cuda(env: Mapping[str, str]) -> Optional[CudaAnswer]:
    """Start CUDA as a program of this user would; None where there is no such library."""
    argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("cuda_query.py"))]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=ANSWER_SECONDS, env=dict(env), cwd="/", check=False)
    except subprocess.TimeoutExpired:
        return CudaAnswer(error=f"{NO_ANSWER} within {ANSWER_SECONDS:.0f} s")
    except OSError as error:
        return CudaAnswer(error=f"the library cannot be asked: {error}")
    try:
        return from_json(done.stdout, Optional[CudaAnswer])  # type: ignore[arg-type]
    except msgspec.DecodeError:
        return CudaAnswer(error=f"the process that started CUDA ended with {done.returncode}")
