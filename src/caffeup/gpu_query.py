"""Asks NVIDIA's management library for every figure of every GPU, at each line that comes in; ``driver_child`` runs it.

It imports nothing of caffeup, so that it starts fast and can be run by its path. A line of JSON is the answer to a line;
``null`` means that there is no such library. The library stays open between questions: to open it wakes the GPUs.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Callable, Optional

NVML = ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1")
NO_INSTANCE = 0xFFFFFFFF
UNKNOWN_MEMORY = 0xFFFFFFFFFFFFFFFF
MISREAD = ((535, 43), (535, 98))
"""These drivers fill the list of processes in another form than all others; what is read of it is nonsense."""
COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
SLOWDOWNS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}
"""Reasons for lower clocks that cost speed; being idle and clocks set by somebody are none."""


class FirstForm(ctypes.Structure):
    """A process as drivers before 450 list it."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


def text(value: Any) -> str:
    """What the binding gives as bytes or text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def quiet(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """The call's value, or None: most cards lack some figure, and old libraries and bindings some function."""
    try:
        return call(*arguments, **named)
    except Exception:  # noqa: BLE001 - the binding's errors derive from Exception itself, one class per code
        return None


class Asker:
    """The library, opened once."""

    def __init__(self, pynvml: Any) -> None:
        self.nvml = pynvml
        self._open = False
        self._misread = False

    def answer(self) -> dict[str, Any]:
        """Everything now."""
        said: dict[str, Any] = {"library": NVML[0]}
        try:
            if not self._open:
                self.nvml.nvmlInit()
                self._open = True
            count = self.nvml.nvmlDeviceGetCount()
        except self.nvml.NVMLError as failure:
            return {**said, "error": text(failure), "code": int(getattr(failure, "value", 0))}
        release = text(quiet(self.nvml.nvmlSystemGetDriverVersion) or "")
        self._misread = misread(release)
        said["release"] = release
        said["cuda"] = quiet(self.nvml.nvmlSystemGetCudaDriverVersion_v2) or 0
        said["cards"] = [self.card(index) for index in range(count)]
        return said

    def card(self, index: int) -> dict[str, Any]:
        """One GPU; with ``error`` where it does not answer."""
        try:
            handle = self.nvml.nvmlDeviceGetHandleByIndex(index)
            self.nvml.nvmlDeviceGetUUID(handle)
        except self.nvml.NVMLError as failure:
            return {"index": index, "error": text(failure)}
        figures = {"index": index, **self._identity(handle), **self._memory(handle), **self._condition(handle)}
        figures.update(self._errors(handle))
        figures.update(self._processes(handle))
        return {name: value for name, value in figures.items() if value is not None}

    def _identity(self, handle: Any) -> dict[str, Any]:
        nvml = self.nvml
        pci = quiet(nvml.nvmlDeviceGetPciInfo, handle)
        capability = quiet(nvml.nvmlDeviceGetCudaComputeCapability, handle)
        mode = quiet(nvml.nvmlDeviceGetMigMode, handle)
        return {
            "name": text(quiet(nvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"),
            "uuid": text(quiet(nvml.nvmlDeviceGetUUID, handle) or ""),
            "bus": text(pci.busId) if pci is not None else "",
            "minor": quiet(nvml.nvmlDeviceGetMinorNumber, handle),
            "compute_capability": None if capability is None else list(capability),
            "compute_mode": COMPUTE_MODES.get(quiet(nvml.nvmlDeviceGetComputeMode, handle), ""),
            "mig": None if mode is None else bool(mode[0]),
            "instances": self._instances(handle) if mode and mode[0] else [],
        }

    def _memory(self, handle: Any) -> dict[str, Any]:
        """In the second form, where ``used`` leaves out what the driver keeps for itself, as nvidia-smi shows it."""
        nvml = self.nvml
        memory = quiet(nvml.nvmlDeviceGetMemoryInfo, handle, version=getattr(nvml, "nvmlMemory_v2", None))
        memory = memory or quiet(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is None:
            return {}
        reserved = getattr(memory, "reserved", None)
        return {
            "memory_total": int(memory.total),
            "memory_used": int(memory.used),
            "memory_free": int(memory.free),
            "memory_reserved": None if reserved is None else int(reserved),
        }

    def _instances(self, handle: Any) -> list[dict[str, Any]]:
        nvml = self.nvml
        found = []
        for index in range(quiet(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            part = quiet(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
            if part is None:
                continue
            row = {
                "index": index,
                "name": text(quiet(nvml.nvmlDeviceGetName, part) or ""),
                "uuid": text(quiet(nvml.nvmlDeviceGetUUID, part) or ""),
                "gpu_instance": quiet(nvml.nvmlDeviceGetGpuInstanceId, part),
                "compute_instance": quiet(nvml.nvmlDeviceGetComputeInstanceId, part),
            }
            memory = self._memory(part)
            memory.pop("memory_reserved", None)
            found.append({name: value for name, value in {**row, **memory}.items() if value is not None})
        return found

    def _condition(self, handle: Any) -> dict[str, Any]:
        nvml = self.nvml
        rates = quiet(nvml.nvmlDeviceGetUtilizationRates, handle)
        state = quiet(nvml.nvmlDeviceGetPerformanceState, handle)
        power = quiet(nvml.nvmlDeviceGetPowerUsage, handle)
        limit = quiet(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        persistence = quiet(nvml.nvmlDeviceGetPersistenceMode, handle)
        display = quiet(nvml.nvmlDeviceGetDisplayActive, handle)
        mask = quiet(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        return {
            "fan_percent": quiet(nvml.nvmlDeviceGetFanSpeed, handle),
            "temperature": quiet(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            "temperature_slowdown": quiet(
                nvml.nvmlDeviceGetTemperatureThreshold, handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
            ),
            "performance_state": "" if state is None or not 0 <= state <= 15 else f"P{state}",
            "power_watts": None if power is None else power / 1000,
            "power_limit_watts": None if limit is None else limit / 1000,
            "persistence": None if persistence is None else bool(persistence),
            "display_active": None if display is None else bool(display),
            "utilisation": None if rates is None else int(rates.gpu),
            "memory_utilisation": None if rates is None else int(rates.memory),
            "clock_mhz": quiet(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "clock_max_mhz": quiet(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
            "slowed_by": [name for bit, name in SLOWDOWNS.items() if mask & bit],
        }

    def _errors(self, handle: Any) -> dict[str, Any]:
        nvml = self.nvml
        mode = quiet(nvml.nvmlDeviceGetEccMode, handle)
        rows = quiet(nvml.nvmlDeviceGetRemappedRows, handle)
        pages = quiet(nvml.nvmlDeviceGetRetiredPagesPendingStatus, handle)
        pending = [bool(one) for one in (rows and rows[2], pages) if one is not None]
        counts = {
            "ecc_corrected": (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC),
            "ecc_uncorrected": (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
            "ecc_uncorrected_ever": (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC),
        }
        return {
            "ecc": None if mode is None else bool(mode[0]),
            **{name: quiet(nvml.nvmlDeviceGetTotalEccErrors, handle, *which) for name, which in counts.items()},
            "repair_pending": any(pending) if pending else None,
            "repair_failed": bool(rows[3]) if rows else None,
        }

    def _processes(self, handle: Any) -> dict[str, Any]:
        if self._misread:
            return {"lists_processes": False}
        lists = {kind: self._listed(handle, kind) for kind in ("Compute", "Graphics", "MPSCompute")}
        parts = (quiet(self.nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0) if lists["Compute"] == [] else 0
        for index in range(parts):  # who may not see the whole GPU's list may see those of its parts
            part = quiet(self.nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
            lists["Compute"] = [*(lists["Compute"] or ()), *((part and self._listed(part, "Compute")) or ())]
        merged: dict[tuple[Any, ...], dict[str, Any]] = {}
        for kind, word in (("Compute", "compute"), ("Graphics", "graphics"), ("MPSCompute", "mps")):
            for row in lists[kind] or ():
                key = (row["pid"], row.get("gpu_instance"), row.get("compute_instance"))
                known = merged.get(key)
                if known is None:
                    merged[key] = {**row, "kind": word}
                elif {known["kind"], word} == {"compute", "graphics"}:
                    known["kind"] = "compute+graphics"
        return {"listed": list(merged.values()), "lists_processes": lists["Compute"] is not None}

    def _listed(self, handle: Any, kind: str) -> Optional[list[dict[str, Any]]]:
        """The list in the newest form that this driver knows; None where it gives none."""
        base = f"nvmlDeviceGet{kind}RunningProcesses"
        for name in (f"{base}_v3", f"{base}_v2"):
            rows = quiet(getattr(self.nvml, name, None) or self._absent, handle)
            if rows is not None:
                return [self._row(one) for one in rows if one.pid]
        rows = quiet(self._first_form, base, handle)
        return None if rows is None else [self._row(one) for one in rows if one.pid]

    @staticmethod
    def _absent(_handle: Any) -> None:
        return None

    def _first_form(self, name: str, handle: Any) -> Optional[list[FirstForm]]:
        call = self.nvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - the binding has no public way to the oldest form
        rows = (FirstForm * 512)()
        count = ctypes.c_uint(len(rows))
        return list(rows[: count.value]) if call(handle, ctypes.byref(count), rows) == 0 else None

    @staticmethod
    def _row(one: Any) -> dict[str, Any]:
        memory = one.usedGpuMemory
        row: dict[str, Any] = {"pid": int(one.pid)}
        if memory is not None and memory != UNKNOWN_MEMORY:
            row["memory_bytes"] = int(memory)
        for field, name in (("gpuInstanceId", "gpu_instance"), ("computeInstanceId", "compute_instance")):
            value = getattr(one, field, None)
            if value is not None and value != NO_INSTANCE:
                row[name] = int(value)
        return row


def misread(release: str) -> bool:
    """Whether this driver's list of processes cannot be read with today's binding."""
    parts = release.split(".")
    try:
        number = (int(parts[0]), int(parts[1]))
    except (ValueError, IndexError):
        return False
    return MISREAD[0] <= number < MISREAD[1]


def load() -> Any:
    """The binding, with its library; None where there is no library; a text where one does not load."""
    errors = []
    for name in NVML:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            break
        except OSError as error:
            if not (str(error).startswith(name) and "cannot open shared object file" in str(error)):
                errors.append(str(error))
    else:
        return errors[0] if errors else None
    try:
        import pynvml  # noqa: PLC0415 - takes longest, and is of no use without its library
    except ImportError:
        return "Python module pynvml is not installed"
    return pynvml


def main() -> int:
    """Answer each line until there are no more."""
    sys.path += sys.argv[1:2]  # the folder of the binding, last: nothing in it may stand before the standard library
    found = load()
    asker = None if found is None or isinstance(found, str) else Asker(found)
    for _ in sys.stdin:
        said = {"error": found} if isinstance(found, str) else asker.answer() if asker is not None else None
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
