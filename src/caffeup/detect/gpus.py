"""GPUs and driver: NVML, then libcuda, then nvidia-smi; a Jetson's device tree; and why there is none."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.detect.parse.nvidia import (
    SMI_FIELDS,
    SMI_NEW_FIELDS,
    cuda_of_number,
    parse_proc_version,
    parse_smi_cuda,
    parse_smi_rows,
    visible,
)
from caffeup.detect.parse.system import parse_device_tree
from caffeup.detect.parse.versions import parse_version
from caffeup.facts.tables import Facts
from caffeup.host import Host, Output
from caffeup.model.base import ComputeCapability, Value
from caffeup.model.driver import NO_ANSWER, DriverAnswer
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Attempt, Container, Driver, Gpu, GpuState, Graphics, System

PCI = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
DISPLAY = "0x03"
PROC_VERSION = "/proc/driver/nvidia/version"
VISIBLE = "CUDA_VISIBLE_DEVICES"


class Answer(Value):
    """What one source gave."""

    gpus: tuple[Gpu, ...] = ()
    driver: Optional[Driver] = None
    tried: tuple[Attempt, ...] = ()


def probe_graphics(host: Host, facts: Facts, system: System) -> tuple[Graphics, tuple[Finding, ...]]:
    """GPUs that CUDA would show, the driver, and the state; findings say what hides or silences them."""
    answer = _ask(host, facts, system)
    driver = _completed(answer.driver, host, facts)
    if not answer.gpus:
        state = _why_none(host, system, driver)
        graphics = Graphics(state=state, driver=driver, tried=answer.tried)
        return graphics, _state_findings(graphics, system)
    setting = host.env.get(VISIBLE)
    shown = visible(answer.gpus, setting)
    state = GpuState.PRESENT if shown else GpuState.HIDDEN
    tried = answer.tried
    if setting is not None:
        tried += (Attempt(where=f"env {VISIBLE}={setting}", outcome=f"{len(shown)} of {len(answer.gpus)} GPUs visible"),)
    graphics = Graphics(state=state, gpus=shown, driver=driver, tried=tried)
    return graphics, _visibility_findings(answer.gpus, shown, setting)


def _ask(host: Host, facts: Facts, system: System) -> Answer:
    """The first source that names GPUs; what all of them said until then."""
    tried: tuple[Attempt, ...] = ()
    driver: Optional[Driver] = None
    for source in (_from_jetson, _from_nvml, _from_libcuda, _from_smi):
        answer = source(host, facts, system)
        tried += answer.tried
        driver = driver or answer.driver
        if answer.gpus:
            return Answer(gpus=answer.gpus, driver=driver, tried=tried)
        if any(one.outcome.startswith(NO_ANSWER) for one in answer.tried):
            break  # a driver that hangs for one hangs for all
    return Answer(driver=driver, tried=tried)


# --- sources ----------------------------------------------------------------------------------------------


def _from_jetson(host: Host, facts: Facts, system: System) -> Answer:
    """A Jetson's GPU is part of its chip: NVML is not there or knows little, the device tree names the chip."""
    if not system.jetson:
        return Answer()
    where = "/proc/device-tree/compatible"
    for token in parse_device_tree(host.read_bytes(where) or b""):
        soc = facts.jetson_soc(token)
        if soc is not None:
            gpu = Gpu(
                via="device tree",
                evidence=f"{where}: {token}",
                index=0,
                name=system.jetson,
                compute_capability=soc.compute_capability,
            )
            return Answer(gpus=(gpu,))
    return Answer(tried=(Attempt(where=where, outcome="no chip in it that is known"),))


def _from_nvml(host: Host, facts: Facts, system: System) -> Answer:
    del system
    return _from_library("NVML", "libnvidia-ml.so.1", host.nvml(), facts)


def _from_libcuda(host: Host, facts: Facts, system: System) -> Answer:
    """Second, because it takes longer and knows less; it is asked for all GPUs, whatever the environment hides."""
    del system
    return _from_library("libcuda", "libcuda.so.1", host.libcuda(), facts)


def _from_library(via: str, name: str, said: Optional[DriverAnswer], facts: Facts) -> Answer:
    if said is None:
        return Answer(tried=(Attempt(where=f"{via} ({name})", outcome="not there"),))
    where = f"{via} ({said.library or name})"
    driver = _driver(via, said.library or name, said.release, cuda_of_number(said.cuda), facts)
    gpus = tuple(
        Gpu(
            via=via,
            evidence=said.library or name,
            index=index,
            name=device.name,
            compute_capability=ComputeCapability(*device.compute_capability)
            if device.compute_capability
            else facts.gpu_by_name(device.name),
            memory_bytes=device.memory_bytes,
            mig=device.mig,
            uuid=device.uuid,
        )
        for index, device in enumerate(said.devices)
    )
    outcome = said.error or ("" if gpus else "no devices")
    return Answer(gpus=gpus, driver=driver, tried=(Attempt(where=where, outcome=outcome),) if outcome else ())


def _from_smi(host: Host, facts: Facts, system: System) -> Answer:
    places = host.which("nvidia-smi") or (host.which("/usr/lib/wsl/lib/nvidia-smi") if system.wsl else ())
    if not places:
        return Answer(tried=(Attempt(where="nvidia-smi", outcome="not there"),))
    program = places[0]
    fields: tuple[str, ...] = (*SMI_FIELDS, *SMI_NEW_FIELDS)
    output = _query(host, program, fields)
    if output is not None and "not a valid field" in output.stdout + output.stderr:
        fields = SMI_FIELDS
        output = _query(host, program, fields)
    if output is None or output.status:
        return Answer(tried=(Attempt(where=program, outcome=_outcome(output)),))
    rows = parse_smi_rows(output.stdout, fields)
    gpus = tuple(
        Gpu(
            via="nvidia-smi",
            evidence=program,
            index=index,
            name=row.name,
            compute_capability=row.compute_capability or facts.gpu_by_name(row.name),
            memory_bytes=row.memory_bytes,
            mig=row.mig,
            uuid=row.uuid,
        )
        for index, row in enumerate(rows)
    )
    if not gpus:
        return Answer(tried=(Attempt(where=program, outcome="no devices"),))
    banner = host.run((program,), timeout=5.0)
    cuda = parse_smi_cuda(banner.stdout) if banner is not None else None
    return Answer(gpus=gpus, driver=_driver("nvidia-smi", program, rows[0].release, cuda, facts))


def _query(host: Host, program: str, fields: tuple[str, ...]) -> Optional[Output]:
    return host.run((program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"), timeout=5.0)


def _outcome(output: Optional[Output]) -> str:
    if output is None:
        return "not there"
    if output.status == 124:
        return f"{NO_ANSWER} within 5 s"
    words = (output.stdout.strip() or output.stderr.strip()).splitlines()
    return f"exit {output.status}: {words[0].strip() if words else ''}".rstrip(": ")


def _driver_of_module(host: Host, facts: Facts) -> Optional[Driver]:
    """The loaded kernel module's own word, where the libraries say nothing."""
    words = parse_proc_version(host.read_text(PROC_VERSION) or "")
    return _driver("kernel module", PROC_VERSION, words, None, facts) if words else None


def _completed(driver: Optional[Driver], host: Host, facts: Facts) -> Optional[Driver]:
    """What libcuda knows is the newest CUDA, not the driver's release: that is the module's to say."""
    if driver is not None and driver.release is not None:
        return driver
    module = _driver_of_module(host, facts)
    if driver is None or module is None:
        return driver or module
    return Driver(via=f"{driver.via}; {module.via}", evidence=module.evidence, release=module.release, cuda=driver.cuda)


def _driver(via: str, where: str, words: str, cuda: Optional[Version], facts: Facts) -> Optional[Driver]:
    """The driver; its evidence keeps NVIDIA's own spelling, because as a version 580.65.06 becomes 580.65.6."""
    release = parse_version(words)
    if release is None and cuda is None:
        return None
    if cuda is None and release is not None:
        cuda = facts.newest_cuda_for_driver(release)
    return Driver(via=via, evidence=f"{where}: {words}" if words else where, release=release, cuda=cuda)


# --- why there is none ------------------------------------------------------------------------------------


def _on_bus(host: Host) -> tuple[str, ...]:
    """Display controllers of NVIDIA (their sound and bridge chips are no GPUs)."""
    found = []
    for vendor in host.glob(f"{PCI}/*/vendor"):
        device = vendor.rpartition("/")[0]
        if (host.read_text(vendor) or "").strip() == NVIDIA and (host.read_text(f"{device}/class") or "").startswith(DISPLAY):
            found.append(device)
    return tuple(found)


def _why_none(host: Host, system: System, driver: Optional[Driver]) -> GpuState:
    nodes = bool(host.glob("/dev/nvidia[0-9]*"))
    module = driver is not None or host.exists(PROC_VERSION) or host.exists("/dev/nvidiactl")
    on_bus = bool(_on_bus(host))
    contained = system.container is not Container.NONE
    if system.jetson:
        return GpuState.DRIVER_SILENT
    if system.wsl == 2:
        return GpuState.DRIVER_SILENT if host.exists("/usr/lib/wsl/lib/libcuda.so.1") else GpuState.NONE
    if contained and not nodes and (on_bus or module):
        return GpuState.HIDDEN
    if module or nodes:
        return GpuState.DRIVER_SILENT
    return GpuState.NO_DRIVER if on_bus else GpuState.NONE


def _state_findings(graphics: Graphics, system: System) -> tuple[Finding, ...]:
    evidence = tuple(Evidence(where=one.where, text=one.outcome) for one in graphics.tried)
    if graphics.state is GpuState.NO_DRIVER:
        remedy = Remedy(text="Install NVIDIA's driver with the distribution's own tool, then restart.")
        return (_finding("gpu-no-driver", "An NVIDIA GPU is on the bus and no driver is loaded for it", evidence, remedy),)
    if graphics.state is GpuState.DRIVER_SILENT:
        remedy = Remedy(text="Restart; where that does not help, install the driver again.", commands=("nvidia-smi",))
        why = "Usual after an update of the driver: the loaded module and the libraries are of two releases."
        return (_finding("gpu-driver-silent", "An NVIDIA driver is there and does not answer", evidence, remedy, why),)
    if graphics.state is GpuState.HIDDEN:
        return (_finding("gpu-hidden", "This container was started without its machine's GPU", evidence, _unhide(system)),)
    return ()


def _unhide(system: System) -> Remedy:
    options = {Container.APPTAINER: "apptainer … --nv", Container.PODMAN: "podman run --device nvidia.com/gpu=all …"}
    option = options.get(system.container, "docker run --gpus all …")
    return Remedy(text=f"Start the container with its GPUs: {option}")


def _finding(name: str, title: str, evidence: tuple[Evidence, ...], remedy: Remedy, why: str = "") -> Finding:
    return Finding(id=name, severity=Severity.WARNING, title=title, why=why, evidence=evidence, remedies=(remedy,))


def _visibility_findings(gpus: tuple[Gpu, ...], shown: tuple[Gpu, ...], setting: Optional[str]) -> tuple[Finding, ...]:
    if setting is None or len(shown) == len(gpus):
        return ()
    names = ", ".join(f"{gpu.index}: {gpu.name}" for gpu in gpus)
    finding = Finding(
        id="gpu-visible-devices",
        severity=Severity.NOTE if shown else Severity.WARNING,
        title=f"{VISIBLE} shows {len(shown)} of {len(gpus)} GPUs",
        why=""
        if len({gpu.name for gpu in gpus}) < 2
        else "CUDA counts the fastest GPU first unless CUDA_DEVICE_ORDER=PCI_BUS_ID; NVML counts by bus.",
        evidence=(Evidence(where=f"env {VISIBLE}", text=setting), Evidence(where=gpus[0].via, text=names)),
        remedies=(Remedy(text="To use all of them, unset it.", commands=(f"unset {VISIBLE}",)),),
    )
    return (finding,)
