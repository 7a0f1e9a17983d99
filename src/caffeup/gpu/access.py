"""Whether this user may use what CUDA needs: device nodes, the toolkit's folder, the cache for compiled code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.gpus import Card, Node
from caffeup.model.machine import Container, System

LOGIN = "Log in again afterwards: groups are given at login."


def node_paths(cards: Sequence[Card], system: System) -> tuple[str, ...]:
    """The device nodes that a CUDA program opens."""
    if system.wsl == 2:
        return ("/dev/dxg",)
    if system.jetson:
        return ("/dev/nvmap", "/dev/nvhost-gpu", "/dev/nvgpu/igpu0/ctrl")
    numbers = [card.minor for card in cards if card.minor is not None]
    return ("/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{number}" for number in numbers))


def device_nodes(nodes: Sequence[Node], system: System) -> Iterator[Finding]:
    """One finding for each kind of fault; ok where there is none."""
    there = [one for one in nodes if one.there]
    if system.jetson:
        nodes = there  # each release of its system has other ones
    barred = [one for one in there if not (one.readable and one.writable)]
    missing = [one for one in nodes if not one.there]
    if barred:
        yield _barred(barred)
    if missing:
        yield _missing(missing, system)
    if there and not barred and not missing:
        yield Finding(
            id="gpu-device-nodes", severity=Severity.OK, title="the GPU's device nodes can be used", evidence=_seen(there)
        )


def _barred(nodes: Sequence[Node]) -> Finding:
    """The group that owns them, or where only root may use them, a group for them."""
    group = nodes[0].group
    if group not in ("", "root") and "rw" in nodes[0].mode[4:7]:
        remedy = Remedy(text=f"Join the group {group}. {LOGIN}", commands=(f'sudo usermod -aG {group} "$USER"',))
    else:
        remedy = Remedy(
            text=(
                "Let the driver give them to the group video: the line `options nvidia NVreg_DeviceFileGID=<the group's number> "
                "NVreg_DeviceFileMode=0660` in a file of your own in /etc/modprobe.d, a restart, and this user in that group. "
                "On a machine of others this is for who runs it: they may have closed the GPUs on purpose."
            ),
            commands=("getent group video", 'sudo usermod -aG video "$USER"'),
        )
    return Finding(
        id="gpu-device-nodes",
        severity=Severity.PROBLEM,
        title="this user may not use the GPU's device nodes",
        why="CUDA then finds no GPU, and cuDNN's first call ends with CUDNN_STATUS_NOT_INITIALIZED or INTERNAL_ERROR.",
        evidence=_seen(nodes),
        remedies=(remedy,),
    )


def _missing(nodes: Sequence[Node], system: System) -> Finding:
    names = ", ".join(one.path for one in nodes)
    if system.wsl == 2:
        remedy = Remedy(text="Update WSL from Windows, and Windows' NVIDIA driver.", commands=("wsl.exe --update",))
    elif system.container is not Container.NONE:
        remedy = Remedy(
            text="Start the container with its GPUs: docker run --gpus all …, podman run --device nvidia.com/gpu=all …"
        )
    else:
        remedy = Remedy(
            text="NVIDIA's own helper, which needs no root where the driver was installed as a whole, makes them.",
            commands=("nvidia-modprobe -c 0 -u",),
        )
    return Finding(
        id="gpu-device-nodes-missing",
        severity=Severity.PROBLEM,
        title=f"{names} {'is' if len(nodes) == 1 else 'are'} not there",
        why="Without them CUDA does not start: CUDA_ERROR_UNKNOWN or NO_DEVICE, while nvidia-smi may still show the GPU.",
        evidence=tuple(Evidence(where=one.path, text="not there") for one in nodes),
        remedies=(remedy,),
    )


def toolkit_folders(nodes: Sequence[Node]) -> Iterator[Finding]:
    """Whether the folders of CUDA can be read by this user."""
    there = [one for one in nodes if one.there]
    closed = [one for one in there if not one.readable]
    if closed:
        yield Finding(
            id="cuda-folder-closed",
            severity=Severity.PROBLEM,
            title="this user may not read CUDA's folder",
            why="Neither nvcc nor the libraries can be reached; at run time the loader skips them and takes others, or none.",
            evidence=_seen(closed),
            remedies=(
                Remedy(
                    text="Without root: CUDA from NVIDIA's wheels, in a folder of your own.",
                    commands=("caffeup up --cuda wheels",),
                    by_caffeup=True,
                ),
                Remedy(text=f"Or ask who runs the machine for the right to read it, by its group ({closed[0].group})."),
            ),
        )
    elif there:
        yield Finding(id="cuda-folder", severity=Severity.OK, title="CUDA's folder can be read", evidence=_seen(there))


def code_cache(node: Node) -> Iterator[Finding]:
    """The folder where the driver keeps what it compiled."""
    if not node.there or (node.readable and node.writable):
        return
    yield Finding(
        id="cuda-cache-closed",
        severity=Severity.WARNING,
        title=f"{node.path} belongs to {node.owner}: CUDA cannot keep compiled code there",
        why="A program that was once run with sudo made it. Kernels are then compiled at each start, and some cuDNN calls fail.",
        evidence=_seen((node,)),
        remedies=(Remedy(text="Use another folder.", commands=('export CUDA_CACHE_PATH="$HOME/.cache/nv-compute"',)),),
    )


def _seen(nodes: Sequence[Node]) -> tuple[Evidence, ...]:
    return tuple(Evidence(where=one.path, text=f"{one.mode} {one.owner} {one.group}") for one in nodes)
