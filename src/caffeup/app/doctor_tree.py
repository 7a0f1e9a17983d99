"""What the doctor says of a tree: what is put into it, what is built, what its tests and checks gave; each with what was seen."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from caffeup.app.planning import Planned
from caffeup.app.session import Session
from caffeup.app.state import FOLDER, State, at_work, load_state
from caffeup.app.treework import MODULE, patch_status, products
from caffeup.app.words import tests_in_short
from caffeup.errors import CaffeupError, PatchFailed
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import PatchState


def tree_findings(session: Session, planned: Planned) -> Iterator[Finding]:
    """Everything but the built code itself, which ``doctor_build`` looks at."""
    root = planned.root
    who = at_work(root)
    if who:
        yield Finding(
            id="tree-at-work",
            severity=Severity.NOTE,
            title="another caffeup works in this tree: what is built changes now",
            evidence=(Evidence(where=str(root / FOLDER / "holder"), text=who),),
        )
        return
    begun = (root / FOLDER / "plan.json").is_file()
    yield from _put_in(session, planned, begun=begun)
    state = load_state(root)
    built = {path.name: path for path in products(planned.plan)}
    if not begun and not built:
        yield Finding(
            id="tree-not-built",
            severity=Severity.NOTE,
            title="nothing is built in this tree yet",
            evidence=(Evidence(where=str(root / planned.plan.build_dir), text="not there"),),
            remedies=(_up(root, "Build it."),),
        )
        return
    yield from _built(planned, state, built)
    if built:
        yield from _tested(root, state)
        yield from _verified(root, state)


def _up(root: Path, text: str) -> Remedy:
    return Remedy(text=text, commands=(f"caffeup up {shlex.quote(str(root))}",), by_caffeup=True)


def _put_in(session: Session, planned: Planned, *, begun: bool) -> Iterator[Finding]:
    """Whether what the plan calls for stands in the tree."""
    try:
        entries = patch_status(session, planned)
    except PatchFailed as error:
        yield Finding(
            id="tree-half-changed",
            severity=Severity.WARNING,
            title=error.brief,
            evidence=(Evidence(where=str(planned.root / FOLDER)),),
            remedies=(_up(planned.root, error.advice),),
        )
        return
    except CaffeupError:  # a conflict of the plan, which is told by itself
        return
    by_state = {state: [one for one in entries if one.state is state] for state in PatchState}
    unfit, absent = by_state[PatchState.CONFLICTING], by_state[PatchState.NEEDED]
    changed = by_state[PatchState.EDITED]
    if unfit or absent:
        many = [*unfit, *absent]
        yield Finding(
            id="tree-patches-absent",
            severity=Severity.PROBLEM if unfit else Severity.WARNING if begun else Severity.NOTE,
            title=f"{len(many)} of what this tree needs here {'is' if len(many) == 1 else 'are'} not in it",
            why="A build puts it in first." if not unfit else "What does not fit stops a build.",
            evidence=tuple(Evidence(where=one.id, text=one.because) for one in many),
            remedies=(Remedy(text="Put it in.", commands=(f"caffeup patch apply {shlex.quote(str(planned.root))}",)),),
        )
    if changed:
        yield Finding(
            id="tree-patches-changed",
            severity=Severity.NOTE,
            title="somebody changed what caffeup put into this tree; it is left as it is",
            evidence=tuple(Evidence(where=", ".join(one.files), text=one.id) for one in changed),
        )
    done = by_state[PatchState.DONE]
    if done and not (unfit or absent):
        title = f"what this tree needs to compile here is in it: {len(done)} {'entry' if len(done) == 1 else 'entries'}"
        yield Finding(
            id="tree-patches",
            severity=Severity.OK,
            title=title,
            evidence=(Evidence(where=str(planned.root / FOLDER / "ledger.json"), text=", ".join(one.id for one in done)),),
        )


def _built(planned: Planned, state: State, built: dict[str, Path]) -> Iterator[Finding]:
    root, plan = planned.root, planned.plan
    wanted = {"caffe": "the program", "libcaffe.so": "the library", **({MODULE: "pycaffe"} if plan.python else {})}
    lacking = [what for name, what in wanted.items() if name not in built]
    done = any(stage.name == "build" for stage in state.stages)
    if not lacking and done:
        seen = tuple(Evidence(where=str(path)) for path in built.values())
        yield Finding(id="tree-built", severity=Severity.OK, title="the tree is built", evidence=seen)
        return
    listed = ", ".join(lacking[:-1]) + (" and " if lacking[1:] else "") + "".join(lacking[-1:])
    title = f"{listed} {'is' if len(lacking) == 1 else 'are'} not built" if lacking else ""
    yield Finding(
        id="tree-not-whole",
        severity=Severity.WARNING,
        title=title or "the last build did not come to its end, or was not caffeup's: what is there may be of an older one",
        evidence=tuple(Evidence(where=what, text=str(built.get(name, "not there"))) for name, what in wanted.items()),
        remedies=(_up(root, "Build what is missing."),),
    )


def _tested(root: Path, state: State) -> Iterator[Finding]:
    report = state.tests
    if report is None or not any(stage.name == "test" for stage in state.stages):
        return
    unknown = report.unknown_failures
    yield Finding(
        id="tree-tests",
        severity=Severity.WARNING if unknown else Severity.OK,
        title=f"Caffe's tests: {tests_in_short(report)}",
        evidence=tuple(Evidence(where=one.name, text=one.text) for one in unknown),
        remedies=(_up(root, "Look at the log of the tests, or run them again."),) if unknown else (),
    )


def _verified(root: Path, state: State) -> Iterator[Finding]:
    done = any(stage.name == "verify" for stage in state.stages)
    bad = [one for one in state.checks if not one.ok]
    if done and not bad:
        seen = tuple(Evidence(where=one.name, text=one.result) for one in state.checks)
        yield Finding(id="tree-verified", severity=Severity.OK, title="what was built was seen working", evidence=seen)
        return
    yield Finding(
        id="tree-not-verified",
        severity=Severity.WARNING,
        title="a check of what was built failed" if bad else "what is built was not seen working yet",
        evidence=tuple(Evidence(where=one.name, text=one.result) for one in bad),
        remedies=(Remedy(text="Check it.", commands=(f"caffeup verify {shlex.quote(str(root))}",)),),
    )
