"""Whether CUDA starts for a program of this user, by the driver's own library: what deviceQuery tells, and why it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from caffeup.model.driver import NO_ANSWER
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import CudaAnswer, CudaDevice

WHERE = "libcuda.so.1, cuInit"
_REMEDIES = {
    3: Remedy(text="The driver is being unloaded: restart the machine.", commands=("caffeup gpu",)),
    34: Remedy(
        text="A stub of libcuda, made for linking, comes before the driver's: take its folder out of LD_LIBRARY_PATH.",
        commands=("echo $LD_LIBRARY_PATH",),
    ),
    46: Remedy(text="The GPU is taken whole, or its compute mode bars it.", commands=("caffeup gpu",)),
    100: Remedy(
        text="The driver shows CUDA no GPU: CUDA_VISIBLE_DEVICES, a container without GPUs, or the device nodes.",
        commands=("echo $CUDA_VISIBLE_DEVICES", "caffeup gpu"),
    ),
    101: Remedy(text="CUDA_VISIBLE_DEVICES names a GPU that is not there.", commands=("echo $CUDA_VISIBLE_DEVICES",)),
    802: Remedy(
        text="GPUs that are joined by NVSwitch need NVIDIA's fabric manager, of the driver's release, before CUDA starts.",
        commands=("systemctl status nvidia-fabricmanager", "sudo systemctl start nvidia-fabricmanager"),
    ),
    803: Remedy(text="The driver's module and libcuda are of two releases: restart the machine."),
    804: Remedy(
        text="A libcuda for forward compatibility (cuda-compat) is loaded, which only server GPUs run: take it out of the way.",
        commands=("echo $LD_LIBRARY_PATH",),
    ),
    999: Remedy(
        text="Most often nvidia-uvm is not loaded, or its device node is missing or closed; after sleep, it hangs.",
        commands=("ls -l /dev/nvidia-uvm", "nvidia-modprobe -c 0 -u"),
    ),
}


def cuda_starts(answer: Optional[CudaAnswer]) -> Iterator[Finding]:
    """A problem where it does not start, or its library is not there (None); otherwise each GPU's figures."""
    if answer is None:
        yield Finding(
            id="cuda-library-missing",
            severity=Severity.PROBLEM,
            title="the driver's libcuda.so.1 is not there: CUDA cannot start",
            why="NVML, which shows the GPUs, comes in another package, and containers may be given it alone.",
            evidence=(Evidence(where="libcuda.so.1", text="not there"),),
            remedies=(
                Remedy(text="In a container: start it with NVIDIA_DRIVER_CAPABILITIES=compute,utility."),
                Remedy(
                    text="Elsewhere: install the driver's package with libcuda (Debian: libcuda1; Ubuntu: libnvidia-compute-…)."
                ),
            ),
        )
        return
    if answer.error:
        other = Remedy(
            text="Restart the machine." if answer.error.startswith(NO_ANSWER) else "See what the driver says.",
            commands=("caffeup gpu",),
        )
        yield Finding(
            id="cuda-does-not-start",
            severity=Severity.PROBLEM,
            title=f"CUDA does not start here: {answer.error}",
            why="Every program with CUDA fails at its first call, whatever it was built with.",
            evidence=(Evidence(where=WHERE, text=answer.error),),
            remedies=(_REMEDIES.get(answer.code, other),),
        )
        return
    if not answer.devices:
        yield Finding(
            id="cuda-shows-nothing",
            severity=Severity.PROBLEM,
            title="CUDA starts and shows no GPU",
            evidence=(Evidence(where="libcuda.so.1, cuDeviceGetCount", text="0"),),
            remedies=(_REMEDIES[100],),
        )
    for device in answer.devices:
        yield _device(device)
        if device.watchdog:
            yield Finding(
                id="cuda-watchdog",
                severity=Severity.NOTE,
                title=f"device {device.index} ({device.name}) ends kernels that run for some seconds",
                why="A display runs on it: the launch timed out (6 vs. 0) is its watchdog. Caffe's kernels are short, as a rule.",
                evidence=(Evidence(where="libcuda.so.1", text="kernel execution timeout: yes"),),
            )


def _device(device: CudaDevice) -> Finding:
    capability = f"compute capability {device.major}.{device.minor}" if device.major is not None else "unknown capability"
    title = f"CUDA starts; device {device.index} is {device.name}, {capability}"
    return Finding(
        id="cuda-device",
        severity=Severity.OK,
        title=title,
        evidence=tuple(Evidence(where="deviceQuery", text=one) for one in figures(device)),
    )


def figures(device: CudaDevice) -> Iterator[str]:
    """What deviceQuery prints, a few to a line."""
    rows: tuple[tuple[tuple[Optional[int], str], ...], ...] = (
        (
            (_scaled(device.memory_total, 1 << 20), "{} MiB memory"),
            (device.multiprocessors, "{} multiprocessors"),
            (_scaled(device.clock_khz, 1000), "{} MHz"),
        ),
        (
            (_scaled(device.memory_clock_khz, 1000), "memory {} MHz"),
            (device.memory_bus_bits, "{} bit bus"),
            (_scaled(device.l2_bytes, 1 << 10), "{} KiB L2"),
        ),
        (
            (_scaled(device.shared_memory_per_block, 1 << 10), "{} KiB shared memory"),
            (device.registers_per_block, "{} registers"),
            (device.threads_per_block, "{} threads a block"),
            (device.threads_per_multiprocessor, "{} a multiprocessor"),
            (device.warp, "warp {}"),
        ),
        ((device.copy_engines, "{} copy engines"),),
    )
    for row in rows:
        words = [form.format(value) for value, form in row if value is not None]
        if words:
            yield ", ".join(words)
    has = (
        ("ECC", device.ecc),
        ("unified addressing", device.unified_addressing),
        ("managed memory", device.managed_memory),
        ("concurrent kernels", device.concurrent_kernels),
        ("integrated", device.integrated),
        ("watchdog", device.watchdog),
    )
    known = [f"{name} {'yes' if value else 'no'}" for name, value in has if value is not None]
    if known:
        yield ", ".join(known)


def _scaled(value: Optional[int], step: int) -> Optional[int]:
    return None if value is None else value // step
