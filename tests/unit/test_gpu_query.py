"""What is asked of NVIDIA's management library: on a binding that answers as the real one does, errors and gaps included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest

from caffeup import gpu_query
from caffeup.gpu_query import Asker, misread
from caffeup.model.base import from_json
from caffeup.model.gpus import Kind, Reading

MIB = 1 << 20


class NVMLError(Exception):
    def __init__(self, value: int, words: str) -> None:
        super().__init__(words)
        self.value = value


def unsupported(*_arguments: object, **_named: object) -> Any:
    raise NVMLError(3, "Not Supported")


def always(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_named: value


class Binding:
    """pynvml, with one GPU; what is not given is not supported by the card, and what is "absent" not by the driver."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = NVML_CLOCK_SM = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC = 0, 1
    nvmlMemory_v2 = 0x2000028  # noqa: N815

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "nvmlInit": always(None),
            "nvmlDeviceGetCount": always(1),
            "nvmlSystemGetDriverVersion": always("580.65.06"),
            "nvmlSystemGetCudaDriverVersion_v2": always(13000),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetUUID": always("GPU-1"),
            **answers,
        }

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return self.answers.get(name, unsupported)


def asked(binding: Binding) -> Reading:
    """Through JSON, as the process that asks gives it on."""
    return from_json(json.dumps(Asker(binding).answer()), Reading)


def row(pid: int, mib: int | None, **more: int) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else mib * MIB, **more)


def test_a_card_that_tells_nothing_has_no_figures_and_no_zeros() -> None:
    (card,) = asked(Binding()).cards
    for figure in ("memory_used", "fan_percent", "temperature", "power_watts", "persistence", "ecc", "utilisation", "mig"):
        assert getattr(card, figure) is None
    assert card.performance_state == ""
    assert not card.lists_processes


def test_every_figure_of_a_server_card() -> None:
    binding = Binding(
        nvmlDeviceGetName=always(b"NVIDIA H200"),
        nvmlDeviceGetPciInfo=always(SimpleNamespace(busId=b"00000000:17:00.0")),
        nvmlDeviceGetMinorNumber=always(3),
        nvmlDeviceGetCudaComputeCapability=always((9, 0)),
        nvmlDeviceGetMemoryInfo=always(SimpleNamespace(total=143771 * MIB, used=4 * MIB, free=143138 * MIB, reserved=629 * MIB)),
        nvmlDeviceGetUtilizationRates=always(SimpleNamespace(gpu=7, memory=2)),
        nvmlDeviceGetPerformanceState=always(0),
        nvmlDeviceGetPowerUsage=always(76123),
        nvmlDeviceGetEnforcedPowerLimit=always(700000),
        nvmlDeviceGetPersistenceMode=always(1),
        nvmlDeviceGetDisplayActive=always(0),
        nvmlDeviceGetTemperature=always(31),
        nvmlDeviceGetEccMode=always([1, 1]),
        nvmlDeviceGetTotalEccErrors=lambda _handle, kind, _counter: 5 * kind,
        nvmlDeviceGetRemappedRows=always((0, 1, True, False)),
        nvmlDeviceGetComputeMode=always(3),
        nvmlDeviceGetMigMode=always([0, 0]),
        nvmlDeviceGetCurrentClocksThrottleReasons=always(0x40 | 0x1),
        nvmlDeviceGetComputeRunningProcesses_v3=always([]),
    )
    said = asked(binding)
    (card,) = said.cards
    assert (said.release, said.cuda) == ("580.65.06", 13000)
    assert (card.name, card.bus, card.minor, str(card.compute_capability)) == ("NVIDIA H200", "00000000:17:00.0", 3, "9.0")
    assert (card.memory_used, card.memory_reserved) == (4 * MIB, 629 * MIB)
    assert (card.power_watts, card.power_limit_watts, card.performance_state) == (76.123, 700.0, "P0")
    assert (card.persistence, card.display_active, card.mig, card.ecc) == (True, False, False, True)
    assert (card.ecc_corrected, card.ecc_uncorrected, card.repair_pending, card.repair_failed) == (0, 5, True, False)
    assert card.slowed_by == ("thermal slowdown (hardware)",), "idle is no slowdown"
    assert card.compute_mode == "exclusive-process"
    assert card.lists_processes


def test_memory_is_asked_in_the_old_form_where_the_new_one_is_not_known() -> None:
    def memory(_handle: object, version: object = None) -> object:
        if version is not None:
            raise NVMLError(13, "Function Not Found")
        return SimpleNamespace(total=8 * MIB, used=1 * MIB, free=7 * MIB)

    (card,) = asked(Binding(nvmlDeviceGetMemoryInfo=memory)).cards
    assert (card.memory_used, card.memory_reserved) == (1 * MIB, None)


@pytest.mark.parametrize(
    ("code", "words"),
    [(18, "Driver/library version mismatch"), (9, "Driver Not Loaded"), (4, "Insufficient Permissions"), (999, "Unknown Error")],
)
def test_a_library_that_does_not_start_says_why(code: int, words: str) -> None:
    def fails() -> None:
        raise NVMLError(code, words)

    said = asked(Binding(nvmlInit=fails))
    assert (said.error, said.code, said.cards) == (words, code, ())


def test_a_driver_that_comes_back_is_asked_again() -> None:
    tries = []

    def fails_once() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise NVMLError(9, "Driver Not Loaded")

    asker = Asker(Binding(nvmlInit=fails_once))
    assert "error" in asker.answer()
    assert "error" not in asker.answer()
    assert "error" not in asker.answer()
    assert len(tries) == 2, "once it is open it stays so"


def test_a_lost_gpu_leaves_the_others() -> None:
    def handle(index: int) -> int:
        if index == 0:
            raise NVMLError(15, "GPU is lost")
        return index

    first, second = asked(Binding(nvmlDeviceGetCount=always(2), nvmlDeviceGetHandleByIndex=handle)).cards
    assert first.error == "GPU is lost"
    assert (second.error, second.index) == ("", 1)


class TestProcesses:
    def test_lists_are_merged(self) -> None:
        binding = Binding(
            nvmlDeviceGetComputeRunningProcesses_v3=always([row(10, 500), row(11, 700)]),
            nvmlDeviceGetGraphicsRunningProcesses_v3=always([row(11, 700), row(12, 90)]),
            nvmlDeviceGetMPSComputeRunningProcesses_v3=always([row(13, None)]),
        )
        found = {one.pid: one for one in asked(binding).cards[0].listed}
        assert {pid: one.kind for pid, one in found.items()} == {
            10: Kind.COMPUTE, 11: Kind.BOTH, 12: Kind.GRAPHICS, 13: Kind.MPS,
        }  # fmt: skip
        assert found[11].memory_bytes == 700 * MIB
        assert found[13].memory_bytes is None, "unknown is not zero"

    def test_what_the_driver_calls_unknown_is_unknown(self) -> None:
        rows = [SimpleNamespace(pid=5, usedGpuMemory=gpu_query.UNKNOWN_MEMORY, gpuInstanceId=0xFFFFFFFF, computeInstanceId=2)]
        (one,) = asked(Binding(nvmlDeviceGetComputeRunningProcesses_v3=always(rows))).cards[0].listed
        assert (one.memory_bytes, one.gpu_instance, one.compute_instance) == (None, None, 2)

    def test_older_forms(self) -> None:
        second = Binding(nvmlDeviceGetComputeRunningProcesses_v2=always([row(10, 500)]))
        assert [one.pid for one in asked(second).cards[0].listed] == [10]

        def oldest(_handle: object, count: Any, rows: Any) -> int:
            rows[0].pid, rows[0].usedGpuMemory = 77, 3 * MIB
            count._obj.value = 1
            return 0

        first = Binding(_nvmlGetFunctionPointer=None)
        first._nvmlGetFunctionPointer = lambda _name: oldest  # type: ignore[attr-defined]
        first.answers.pop("_nvmlGetFunctionPointer")
        assert [(one.pid, one.memory_bytes) for one in asked(first).cards[0].listed] == [(77, 3 * MIB)]

    def test_a_driver_whose_list_is_misread_lists_none(self) -> None:
        rows = always([row(10, 500)])
        old = Binding(nvmlSystemGetDriverVersion=always("535.54.03"), nvmlDeviceGetComputeRunningProcesses_v3=rows)
        (card,) = asked(old).cards
        assert (card.listed, card.lists_processes) == ((), False)

    def test_the_parts_tell_what_the_whole_does_not(self) -> None:
        binding = Binding(
            nvmlDeviceGetMigMode=always([1, 1]),
            nvmlDeviceGetMaxMigDeviceCount=always(7),
            nvmlDeviceGetMigDeviceHandleByIndex=lambda _handle, index: f"part{index}" if index < 2 else unsupported(),
            nvmlDeviceGetName=always("NVIDIA A100-SXM4-40GB MIG 3g.20gb"),
            nvmlDeviceGetUUID=lambda handle: f"MIG-{handle}",
            nvmlDeviceGetGpuInstanceId=lambda handle: 1 + int(str(handle)[-1]),
            nvmlDeviceGetComputeInstanceId=always(0),
            nvmlDeviceGetMemoryInfo=always(SimpleNamespace(total=20 * MIB, used=1 * MIB, free=19 * MIB, reserved=0)),
            nvmlDeviceGetComputeRunningProcesses_v3=lambda handle: (
                [] if handle == 0 else [row(50, 10, gpuInstanceId=1, computeInstanceId=0)] if handle == "part0" else []
            ),
        )
        (card,) = asked(binding).cards
        assert card.mig
        assert [(one.index, one.uuid, one.gpu_instance, one.memory_free) for one in card.instances] == [
            (0, "MIG-part0", 1, 19 * MIB),
            (1, "MIG-part1", 2, 19 * MIB),
        ]
        assert [(one.pid, one.gpu_instance) for one in card.listed] == [(50, 1)]


@pytest.mark.parametrize(
    ("release", "wrong"),
    [
        ("535.54.03", True),
        ("535.86.10", True),
        ("535.98", False),
        ("535.183.01", False),
        ("580.65.06", False),
        ("", False),
        ("x.y", False),
    ],
)
def test_which_drivers_are_misread(release: str, wrong: bool) -> None:
    assert misread(release) is wrong


def test_the_program_answers_each_line_with_a_line() -> None:
    script = Path(gpu_query.__file__)
    done = subprocess.run([sys.executable, "-I", str(script)], input="\n\n", capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 2
    for said in lines:
        assert said is None or "error" in said or "cards" in said
