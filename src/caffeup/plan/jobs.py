"""How many compilers run at once: as many as cores, and no more than memory holds."""

from __future__ import annotations

from caffeup.model.base import Value
from caffeup.model.finding import Finding
from caffeup.plan.case import Case
from caffeup.plan.part import Part, conflict, decision, note, remedy

_GIB = 1 << 30
_CXX, _NVCC = 1.0, 2.0
"""GiB that one compiler takes, as seen with Caffe's own sources; nvcc with several compute capabilities."""


class Jobs(Value, kw_only=True):
    """The decision."""

    jobs: int
    part: Part = Part()


def choose_jobs(case: Case, *, gpu: bool, targets: int) -> Jobs:
    """From --jobs, else from cores and memory."""
    asked = case.request.jobs
    if asked is not None and asked < 1:
        ways = (remedy("give a number from 1 on", case.again("--jobs", "1")),)
        return Jobs(jobs=1, part=Part(conflicts=(conflict("jobs-wrong", f"--jobs {asked} makes no sense", remedies=ways),)))
    system = case.machine.system
    each = _NVCC if gpu and targets > 1 else 1.5 if gpu else _CXX
    memory = system.memory_available_bytes or system.memory_bytes
    fitting = max(int(memory / _GIB / each), 1) if memory else system.cores
    if asked is not None:
        notes: tuple[Finding, ...] = ()
        if asked > fitting:
            title = f"{asked} compilers at once may need {asked * each:.0f} GiB, {memory / _GIB:.1f} are free"
            notes = (note("jobs-memory", title, "A compiler that finds no memory is killed, and the build fails."),)
        return Jobs(jobs=asked, part=Part(decisions=(decision("jobs", str(asked), "asked for with --jobs"),), notes=notes))
    jobs = max(min(system.cores, fitting), 1)
    because = f"{system.cores} cores"
    if fitting < system.cores:
        because = f"{memory / _GIB:.1f} GiB are free, about {each:g} a compiler, though there are {system.cores} cores"
    return Jobs(jobs=jobs, part=Part(decisions=(decision("jobs", str(jobs), because),)))
