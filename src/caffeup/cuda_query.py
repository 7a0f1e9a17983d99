"""What the driver's own library says of the GPUs that CUDA shows to a program: the figures of NVIDIA's deviceQuery.

``driver_child`` runs it, with the user's environment: what CUDA_VISIBLE_DEVICES hides is not shown here either.
It imports nothing but the standard library, makes no context, and prints JSON; ``null``: there is no such library.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Optional

LIBRARIES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
ATTRIBUTES = {
    "multiprocessors": 16,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_block": 1,
    "threads_per_multiprocessor": 39,
    "shared_memory_per_block": 8,
    "registers_per_block": 12,
    "warp": 10,
    "copy_engines": 40,
    "integrated": 18,
    "watchdog": 17,
    "ecc": 32,
    "unified_addressing": 41,
    "managed_memory": 83,
    "concurrent_kernels": 31,
    "pci_bus": 33,
    "major": 75,
    "minor": 76,
}
"""By the numbers of CUdevice_attribute."""


def load() -> tuple[Optional[ctypes.CDLL], str]:
    """The library, or why it does not load; empty where it is just not there."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name), ""
        except OSError as error:
            if not (str(error).startswith(name) and "cannot open shared object file" in str(error)):
                return None, str(error)
    return None, ""


def query() -> Optional[dict[str, Any]]:
    """Everything; None where there is no library."""
    cuda, why = load()
    if cuda is None:
        return {"error": why} if why else None
    said: dict[str, Any] = {}
    number = ctypes.c_int(0)
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        said["cuda"] = number.value
    status = cuda.cuInit(0)
    if status:
        return {**said, "error": f"cuInit: {error_name(cuda, status)} ({status})", "code": status}
    count = ctypes.c_int(0)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    said["devices"] = [device(cuda, index) for index in range(count.value)]
    return said


def error_name(cuda: ctypes.CDLL, status: int) -> str:
    """The library's own name for it."""
    name = ctypes.c_char_p()
    try:
        known = cuda.cuGetErrorName(status, ctypes.byref(name)) == 0
    except AttributeError:
        known = False
    return name.value.decode("ascii", "replace") if known and name.value else "CUDA error"


def device(cuda: ctypes.CDLL, index: int) -> dict[str, Any]:
    """One GPU."""
    handle = ctypes.c_int(0)
    cuda.cuDeviceGet(ctypes.byref(handle), index)
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(name, len(name), handle)
    row: dict[str, Any] = {"index": index, "name": name.value.decode("utf-8", "replace")}
    total = ctypes.c_size_t(0)
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(total), handle) == 0:
        row["memory_total"] = total.value
    for key, attribute in ATTRIBUTES.items():
        value = ctypes.c_int(0)
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle) == 0:
            row[key] = value.value
    return row


def main() -> int:
    """Print it."""
    sys.stdout.write(json.dumps(query()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
