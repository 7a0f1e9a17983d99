"""CUDA from NVIDIA's wheels as a stage: told before, with consent, and looked for afterwards."""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path
from typing import Optional

from caffeup.app.session import Session
from caffeup.app.stages import Stages
from caffeup.app.ui import Ui
from caffeup.build.progress import Status
from caffeup.deps.alone import begun, is_empty, remove_all
from caffeup.deps.cuda_wheels import lay_out
from caffeup.detect.laid_out import MARK
from caffeup.errors import DependencyError, UsageError
from caffeup.facts.cuda_wheels import CudaFromWheels, CudaWheel
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.machine import Machine
from caffeup.model.plan import Plan
from caffeup.plan.wheels import WHEELS, size
from caffeup.source.index import Pinned, download, pythons, runner
from caffeup.source.progress import Progress, silent

_QUICK = 2.0
"""Seconds that it may take without a word about its progress."""


def lay_out_toolkit(session: Session, ui: Ui, stages: Stages, machine: Machine, plan: Plan) -> Machine:
    """Lay out what the plan wants, and detect again; raise ``DependencyError`` where that is not consented to."""
    release = session.facts.cuda_from_wheels(machine.system.arch, machine.system.glibc)
    if release is None or not machine.wheels_root:
        raise UsageError("The plan wants CUDA from NVIDIA's wheels, which are not made for this machine.")
    with stages.step("cuda", f"CUDA {release.cuda} from NVIDIA's wheels …") as say:
        ui.say(
            f"CUDA {release.cuda} and cuDNN {release.cudnn} from NVIDIA's wheels, under NVIDIA's licence, into "
            f"{machine.wheels_root}:\n  {size(release.download_bytes)} to download, {size(release.disk_bytes)} on the disk, "
            "once for all trees"
        )
        if not ui.ask("Download and lay out?"):
            raise DependencyError(
                "CUDA was not laid out: no consent was given",
                advice="Say yes, install a CUDA toolkit yourself, or build without the GPU (--cpu).",
                commands=(shlex.join(["caffeup", "up", plan.request.source, "--cuda", WHEELS, "--yes"]),),
            )
        _lay_out(session, ui, release, Path(machine.wheels_root))
        say(f"CUDA {release.cuda} and cuDNN {release.cudnn} in {machine.wheels_root}")
    return session.machine(machine.prefixes, plan.request.python, plan.request.cuda)


def _lay_out(session: Session, ui: Ui, release: CudaFromWheels, root: Path) -> None:
    run, asked = runner(session.host, Path("/")), pythons(session.host)

    def fetch(wheel: CudaWheel, into: Path, progress: Progress) -> Path:
        wanted = Pinned(name=wheel.name, version=wheel.version, file=wheel.id, sha256=wheel.sha256, binary=True)
        return download(wanted, into, run=run, python=asked, progress=progress)

    shown, began = ui.progress("cuda"), time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        elapsed = time.monotonic() - began
        if elapsed > _QUICK:
            share = round(100 * done / total) if total else 0
            shown.show(Status(done=share, total=100 if total else None, current=f"% {what}" if total else what, elapsed=elapsed))

    try:
        lay_out(release, root, fetch=fetch, free_bytes=lambda folder: shutil.disk_usage(folder).free, progress=show)
    finally:
        shown.close()


def cuda_home(session: Session) -> Optional[Path]:
    """The folder with all that was laid out, or begun; None where there is nothing."""
    from caffeup.detect.laid_out import FOLDER  # noqa: PLC0415
    from caffeup.detect.places import data_folder  # noqa: PLC0415

    data = data_folder(session.host)
    home = Path(data) / FOLDER
    return home if data and not is_empty(home) else None


def remove_cuda(home: Path) -> str:
    """Remove all of it; say so."""
    remove_all(home, MARK, silent)
    return f"removed {home}"


def half_laid_out(session: Session) -> tuple[Finding, ...]:
    """What a run that was ended left: it takes space until it is gone on with."""
    home = cuda_home(session)
    left = begun(home) if home is not None else ()
    if not left:
        return ()
    return (
        Finding(
            id="cuda-wheels-begun",
            severity=Severity.NOTE,
            title="CUDA from NVIDIA's wheels was begun to be laid out, and is not whole",
            why="Nothing uses it. The next run that needs it goes on where the last one ended.",
            evidence=tuple(Evidence(where=str(path)) for path in left),
            remedies=(
                Remedy(text="go on", commands=("caffeup up --cuda wheels",), by_caffeup=True),
                Remedy(text="or remove it", commands=("caffeup clean --cuda",), by_caffeup=True),
            ),
        ),
    )
