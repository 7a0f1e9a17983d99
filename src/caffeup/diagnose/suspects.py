"""What could be behind CUDNN_STATUS_INTERNAL_ERROR and its kind: one look a function, values in, a verdict out.

The number alone says nothing: cuDNN gives it for whatever goes wrong inside. What was found to be behind it in reports
is gone through in the order in which it is cheap to be sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

import msgspec
from packaging.version import Version

from caffeup.model.base import ComputeCapability, Value
from caffeup.model.finding import Confidence, Finding, Remedy, Severity
from caffeup.model.gpus import Snapshot
from caffeup.model.suspect import Suspect, Verdict

HANDLES = 3
"""That Caffe's layer makes for each group."""
MANY_GROUPS = 32
ENOUGH = 1 << 30
"""Bytes that the context, cuBLAS and cuDNN's own kernels take before a net has anything."""


class Grouped(Value, kw_only=True):
    """A convolution with groups that a net leaves to cuDNN."""

    layer: str
    groups: int


def of_findings(name: str, title: str, findings: Sequence[Finding], *, clear: str = "") -> Suspect:
    """What the doctor found, as a cause: a fault is one, ok rules it out; ``clear``: what it means that nothing was found."""
    bad = [one for one in findings if one.severity in {Severity.WARNING, Severity.PROBLEM}]
    if bad:
        seen = "; ".join(_told(one) for one in bad)
        return _suspect(name, title, Verdict.FOUND, seen, *(remedy for one in bad for remedy in one.remedies))
    if findings or clear:
        return _suspect(name, title, Verdict.RULED_OUT, "; ".join(map(_told, findings)) or clear)
    return _suspect(name, title, Verdict.OPEN, "there was nothing to look at")


def _told(finding: Finding) -> str:
    seen = ", ".join(f"{one.where} {one.text}".strip() for one in finding.evidence)
    return f"{finding.title} ({seen})" if seen else finding.title


def code_for_card(cards: Sequence[tuple[str, ComputeCapability]], lacking: Optional[Sequence[str]], held: str) -> Suspect:
    """Whether the library holds code for the cards; ``lacking``: those for which a part of it has none."""
    title = "no code for this GPU in libcaffe.so"
    if lacking is None or not cards:
        return _suspect(
            "code-for-gpu", title, Verdict.OPEN, "no libcaffe.so was found to look into" if cards else "no GPU is known"
        )
    if lacking:
        remedy = Remedy(text="build it for this GPU", commands=("caffeup up --arch native",), by_caffeup=True)
        return _suspect("code-for-gpu", title, Verdict.FOUND, f"nothing for {', '.join(lacking)}; it holds {held}", remedy)
    names = ", ".join(f"{name} ({cc})" for name, cc in cards)
    return _suspect("code-for-gpu", title, Verdict.RULED_OUT, f"{held} for {names}")


def driver(release: Optional[Version], runtime: Optional[Version], least: str) -> Suspect:
    """Whether the driver is new enough for the CUDA run time that is loaded."""
    title = "a driver that is older than the CUDA run time"
    if release is None or runtime is None or not least:
        lacking = "the driver's release" if release is None else "the CUDA run time that is loaded"
        return _suspect("driver-too-old", title, Verdict.OPEN, f"{lacking} is not known")
    seen = f"driver {release}; CUDA {runtime} needs {least} or newer"
    if release < Version(least):
        remedy = Remedy(text="update the driver, or build with an older toolkit", commands=("caffeup plan --explain cuda",))
        return _suspect("driver-too-old", title, Verdict.FOUND, seen, remedy)
    return _suspect("driver-too-old", title, Verdict.RULED_OUT, seen)


def cudnn_pair(header: Optional[Version], library: Optional[Version], file: str) -> Suspect:
    """Whether the cuDNN that is loaded is the one that was compiled with."""
    title = "a cuDNN library of another version than its header"
    if header is None or library is None:
        lacking = "the header that it was compiled with" if header is None else "the library that is loaded"
        return _suspect("cudnn-disagree", title, Verdict.OPEN, f"{lacking} is not known")
    seen = f"header {header}, library {library} ({file})"
    if header.release[0] != library.release[0] or library.release[: len(header.release)] < header.release[: len(library.release)]:
        remedy = Remedy(text="build again, with a header and a library that agree", commands=("caffeup up",), by_caffeup=True)
        return _suspect("cudnn-disagree", title, Verdict.FOUND, seen, remedy)
    return _suspect("cudnn-disagree", title, Verdict.RULED_OUT, seen)


def memory(snapshot: Optional[Snapshot], holders: Sequence[str]) -> Suspect:
    """Whether the GPU was full at that moment."""
    title = "no memory left on the GPU"
    cards = [gpu.card for gpu in snapshot.gpus] if snapshot is not None else []
    known = [(card.index, card.memory_free) for card in cards if card.memory_free is not None]
    if not known:
        return _suspect("gpu-memory-at-start", title, Verdict.OPEN, "the driver does not tell how much is free")
    seen = "; ".join(f"GPU {index}: {free / (1 << 30):.1f} GiB free" for index, free in known)
    full = [index for index, free in known if free < ENOUGH]
    if full and len(full) == len(known):
        remedy = Remedy(text=f"free some: {'; '.join(holders)}" if holders else "see who holds it", commands=("caffeup gpu",))
        return _suspect("gpu-memory-at-start", title, Verdict.FOUND, f"{seen} at the moment of the error", remedy)
    if full:
        remedy = Remedy(text="use a GPU that has room", commands=("caffeup gpu free --need 2GiB",))
        return _suspect("gpu-memory-at-start", title, Verdict.OPEN, f"{seen}; which of them was used is not known", remedy)
    return _suspect("gpu-memory-at-start", title, Verdict.RULED_OUT, f"{seen} at the moment of the error")


def groups(found: Optional[Sequence[Grouped]], where: str) -> Suspect:
    """Whether the net leaves convolutions with many groups to cuDNN: three handles and streams for each group."""
    title = "convolutions with many groups through cuDNN, which take three handles a group"
    if found is None:
        return _suspect("cudnn-handles", title, Verdict.OPEN, "no net was found in the output or among the arguments")
    many = [one for one in found if one.groups >= MANY_GROUPS]
    total = sum(one.groups for one in found) * HANDLES
    if many:
        first = many[0]
        seen = f"{where}: {len(many)} layers, {first.layer} has {first.groups} groups: {total} handles"
        text = "write engine: CAFFE into convolution_param of these layers, or build with caffeup's depthwise layer"
        return _suspect("cudnn-handles", title, Verdict.FOUND, seen, Remedy(text=text, commands=("caffeup up",), by_caffeup=True))
    return _suspect("cudnn-handles", title, Verdict.RULED_OUT, f"{where}: {total} handles for groups")


def ranked(suspects: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """What is found first, then what is open, then what is ruled out; else in the order of the looks."""
    order = list(Verdict)
    return tuple(sorted(suspects, key=lambda one: order.index(one.verdict)))


def decided(found: Sequence[Finding], looked: Sequence[Suspect]) -> tuple[Finding, ...]:
    """A cause that is so here first; those that were ruled out are left out where others remain."""
    verdicts = {one.id: one for one in looked}
    so = [_confirmed(one, verdicts[one.id]) for one in found if _verdict(one, verdicts) is Verdict.FOUND]
    rest = [one for one in found if _verdict(one, verdicts) is not Verdict.FOUND]
    kept = [one for one in rest if _verdict(one, verdicts) is not Verdict.RULED_OUT]
    return (*so, *(kept if so or kept else rest))


def _verdict(finding: Finding, verdicts: Mapping[str, Suspect]) -> Optional[Verdict]:
    return verdicts[finding.id].verdict if finding.id in verdicts else None


def _confirmed(finding: Finding, suspect: Suspect) -> Finding:
    return msgspec.structs.replace(
        finding, confidence=Confidence.LIKELY, confidence_because=f"others read the same, but here is: {suspect.seen}"
    )


def _suspect(name: str, title: str, verdict: Verdict, seen: str, *remedies: Remedy) -> Suspect:
    return Suspect(id=name, title=title, verdict=verdict, seen=seen, remedies=remedies)
