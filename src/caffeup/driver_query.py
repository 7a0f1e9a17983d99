"""Asks one of NVIDIA's libraries about the GPUs and prints the answer as JSON: run by ``host`` as a process of its own.

It imports nothing of caffeup, so that it starts fast and can be run by its path:
``python -I driver_query.py nvml`` or ``libcuda``. ``null`` means that there is no such library.
"""

from __future__ import annotations

import ctypes
import json
import sys
import uuid
from typing import Any, Callable, Optional

NVML = "libnvidia-ml.so.1"
WSL = "/usr/lib/wsl/lib/"
ATTRIBUTE_MAJOR = 75
ATTRIBUTE_MINOR = 76
ERROR_NAMES = {
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
"""Of libraries before cuGetErrorName could be asked without a context."""


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _quiet(call: Callable[..., Any], *arguments: Any) -> Any:
    """The call's value, or None: no single figure is worth losing the others (Tegra and MIG support few of them)."""
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - the binding's errors derive from Exception itself, one class per code
        return None


def nvml() -> Optional[dict[str, Any]]:
    """Through pynvml; None where its library is not there, which is told before pynvml is loaded: that takes longest."""
    library, error = _load(NVML)
    if library is None:
        return {"error": error} if error else None
    try:
        import pynvml  # noqa: PLC0415 - may be absent, and only one of the two libraries needs it
    except ImportError:
        return {"error": "Python module pynvml is not installed"}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as failure:
        return {"library": NVML, "error": _text(failure)}
    count = _quiet(pynvml.nvmlDeviceGetCount) or 0
    devices = [_quiet(_nvml_device, pynvml, index) for index in range(count)]
    answer: dict[str, Any] = {
        "library": NVML,
        "release": _text(_quiet(pynvml.nvmlSystemGetDriverVersion) or ""),
        "cuda": _quiet(pynvml.nvmlSystemGetCudaDriverVersion_v2) or _quiet(pynvml.nvmlSystemGetCudaDriverVersion) or 0,
        "devices": [device for device in devices if device is not None],
    }
    lost = count - len(answer["devices"])
    if lost:
        answer["error"] = f"{lost} of {count} devices did not answer"
    return answer


def _nvml_device(pynvml: Any, index: int) -> dict[str, Any]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    device: dict[str, Any] = {"name": _text(_quiet(pynvml.nvmlDeviceGetName, handle) or "NVIDIA GPU")}
    capability = _quiet(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    if capability is not None:
        device["compute_capability"] = list(capability)
    memory = _quiet(pynvml.nvmlDeviceGetMemoryInfo, handle)
    if memory is not None:
        device["memory_bytes"] = int(memory.total)
    mode = _quiet(pynvml.nvmlDeviceGetMigMode, handle)
    device["mig"] = bool(mode and mode[0])
    device["uuid"] = _text(_quiet(pynvml.nvmlDeviceGetUUID, handle) or "")
    return device


def _load(name: str) -> tuple[Optional[ctypes.CDLL], str]:
    """The library, or why it does not load; empty where it is just not there."""
    try:
        return ctypes.CDLL(name), ""
    except OSError as error:
        text = str(error)
        absent = text.startswith(name) and "cannot open shared object file" in text
        return None, "" if absent else text


def _load_libcuda() -> tuple[Optional[ctypes.CDLL], str]:
    for name in ("libcuda.so.1", WSL + "libcuda.so.1"):
        cuda, error = _load(name)
        if cuda is not None or error:
            return cuda, error or name
    return None, ""


def libcuda() -> Optional[dict[str, Any]]:
    """Through the driver's own library; None where there is none."""
    cuda, name = _load_libcuda()
    if cuda is None:
        return {"error": name} if name else None
    answer: dict[str, Any] = {"library": name}
    number = ctypes.c_int(0)
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        answer["cuda"] = number.value
    status = cuda.cuInit(0)
    if status:
        answer["error"] = _cuda_error(status)
        return answer
    count = ctypes.c_int(0)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    answer["devices"] = [_cuda_device(cuda, index) for index in range(count.value)]
    return answer


def _cuda_error(status: int) -> str:
    return f"cuInit: {ERROR_NAMES.get(status, 'CUDA error')} ({status})"


def _cuda_device(cuda: ctypes.CDLL, index: int) -> dict[str, Any]:
    handle = ctypes.c_int(0)
    cuda.cuDeviceGet(ctypes.byref(handle), index)
    buffer = ctypes.create_string_buffer(256)
    cuda.cuDeviceGetName(buffer, len(buffer), handle)
    device: dict[str, Any] = {"name": _text(buffer.value) or "NVIDIA GPU"}
    numbers = [ctypes.c_int(0), ctypes.c_int(0)]
    codes = [
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, handle)
        for number, attribute in zip(numbers, (ATTRIBUTE_MAJOR, ATTRIBUTE_MINOR))
    ]
    if codes == [0, 0]:
        device["compute_capability"] = [number.value for number in numbers]
    total = ctypes.c_size_t(0)
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(total), handle) == 0:
        device["memory_bytes"] = total.value
    device["uuid"] = _cuda_uuid(cuda, handle)
    return device


def _cuda_uuid(cuda: ctypes.CDLL, handle: ctypes.c_int) -> str:
    """As nvidia-smi writes it; empty in drivers before CUDA 9.2, which have no such call."""
    data = (ctypes.c_ubyte * 16)()
    try:
        status = cuda.cuDeviceGetUuid(data, handle)
    except AttributeError:
        return ""
    return "" if status else f"GPU-{uuid.UUID(bytes=bytes(data))}"


def main(argv: list[str]) -> int:
    """Print the answer of the library named in ``argv``; behind it the folder of pynvml, where it is known."""
    sys.path += argv[2:3]  # last: nothing in it may stand before the standard library
    answer = {"nvml": nvml, "libcuda": libcuda}[argv[1]]()
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
