"""``up``: from a bare machine to a Caffe that works; and again: only what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import msgspec

from caffeup.app.dependencies import install_missing
from caffeup.app.diagnosing import diagnose_failure
from caffeup.app.foreign_plan import require_of_here
from caffeup.app.known_trees import remember_tree
from caffeup.app.laying_out import lay_out_toolkit
from caffeup.app.locking import Locked, write_after
from caffeup.app.missing import without_git
from caffeup.app.obtain import Wanted, look_ahead, obtain, resolve
from caffeup.app.planning import Planned, read_plan
from caffeup.app.rollback import keep, plan_before, way_back
from caffeup.app.session import Session
from caffeup.app.stages import Stages, digest
from caffeup.app.state import FOLDER, LOCK, exclusive, newer_than, source_stamp
from caffeup.app.treework import apply_shown, build_of, environment, keep_plan, products, require_buildable, verify_tree
from caffeup.app.ui import Ui
from caffeup.app.unpacking import with_unpacked
from caffeup.app.words import in_short, plan_in_short, tests_in_short
from caffeup.build.progress import Progress
from caffeup.build.run import Build
from caffeup.build.runtest import run_tests, tests_log
from caffeup.build.stages import make_all, make_distribute, make_pycaffe
from caffeup.build.testbuild import build_tests
from caffeup.errors import BuildFailed, TestsFailed, VerifyFailed
from caffeup.model.base import to_json
from caffeup.model.machine import Machine
from caffeup.model.outcome import PatchEntry, PatchState, Report, StageOutcome, TestReport
from caffeup.model.plan import Plan, Request
from caffeup.model.tree import Tree
from caffeup.patch import engine
from caffeup.render import render_config
from caffeup.source.catalogue import known_failure

SOURCES = "files of the tree were written, or removed"
SHOWN = 3

_BUILDS = frozenset(("build", "pycaffe", "verify"))
"""Stages after which a lock may say something else."""


class Up:
    """One run. Every stage is a method; what a later one needs is returned by an earlier one."""

    def __init__(self, session: Session, ui: Ui, request: Request, locked: Optional[Locked] = None) -> None:
        self._session = session
        self._ui = ui
        self._request = locked.request(request) if locked is not None else request
        self._locked = locked
        self._stages = Stages(ui)

    def preview(self) -> Planned:
        """The plan, for the tree that is here or for what is known of the one that would be fetched. Touches nothing."""
        machine = self._session.machine(self._request.prefixes, self._request.python, self._request.cuda)
        wanted = look_ahead(self._session, self._ui, self._request)
        tree = self._session.tree(wanted.folder) if wanted.here else wanted.assumed
        machine, plan = with_unpacked(self._session, machine, tree, self._session.plan(machine, tree, self._request))
        if wanted.needs_git and not _has_git(machine):
            plan = without_git(plan)
        ahead = [word for word, absent in (("the tree is", not wanted.here), ("the packages are", bool(plan.packages))) if absent]
        if ahead:
            self._ui.say(f"the plan is what can be known before {' and '.join(ahead)} here; it is made again then")
        return Planned(wanted.folder, machine, tree, plan, wanted.unreached)

    def run(self) -> Report:
        """Everything."""
        machine = self._detect()
        wanted = resolve(self._request, self._session.facts)
        if not wanted.here:
            machine = self._before_fetching(machine, wanted)
        root = obtain(self._session, self._ui, self._stages, self._request, wanted)
        return self._in_tree(root, machine)

    def run_in(self, root: Path, plan_file: str = "") -> Report:
        """The stages from configure on, in a tree that is here; by a plan made earlier where one is named."""
        machine = self._detect()
        plan = read_plan(plan_file) if plan_file else None
        if plan is not None:
            require_of_here(plan, machine)
            plan = msgspec.structs.replace(plan, tree=str(root))
        return self._in_tree(root, machine, plan)

    def _detect(self) -> Machine:
        with self._stages.step("detect") as say:
            machine = self._session.machine(self._request.prefixes, self._request.python, self._request.cuda)
            say(in_short(machine))
        if self._locked is not None:
            self._locked.require_kind(machine)
        return machine

    def _before_fetching(self, machine: Machine, wanted: Wanted) -> Machine:
        """Say what is in the way before anything is downloaded; a missing git is installed first."""
        plan = self._session.plan(machine, wanted.assumed, self._request)
        self._refuse_or_go_on(plan)
        if wanted.needs_git and not _has_git(machine):
            return install_missing(self._session, self._ui, self._stages, machine, plan, only=("git",))
        return machine

    def _refuse_or_go_on(self, plan: Plan) -> None:
        if plan.conflicts:
            self._ui.show_plan(msgspec.structs.replace(plan, conflicts=()))
        require_buildable(plan)

    def _in_tree(self, root: Path, machine: Machine, plan: Optional[Plan] = None) -> Report:
        tree = self._session.tree(root)  # before anything is written into what may be no Caffe tree at all
        with exclusive(root):
            self._stages.remember_in(root)
            if self._locked is None:
                self._stages.update(request=msgspec.structs.replace(self._request, yes=False))
            self._tell_driver(machine)
            recovered = engine.recover(str(root))
            for path in recovered.kept:
                self._ui.say(f"kept as somebody changed it after a run that was cut short: {path}")
            planned = self._plan(root, machine, tree, plan)
            try:
                return self._make(planned)
            except BuildFailed as error:
                found = diagnose_failure(self._session, error, planned.machine, planned.tree)
                error.findings = (*error.findings, *found)
                error.commands = (*error.commands, *way_back(root))
                raise

    def _plan(self, root: Path, machine: Machine, tree: Tree, given: Optional[Plan]) -> Planned:
        plan = given or self._session.plan(machine, tree, self._request)
        if given is None:
            machine, plan = with_unpacked(self._session, machine, tree, plan)
        if plan.packages and given is None:
            machine = install_missing(self._session, self._ui, self._stages, machine, plan)
            plan = self._session.plan(machine, tree, self._request)
        self._refuse_or_go_on(plan)
        if plan.lay_out:
            machine = lay_out_toolkit(self._session, self._ui, self._stages, machine, plan)
            plan = given or self._session.plan(machine, tree, self._request)
            self._refuse_or_go_on(plan)
        with self._stages.step("plan") as say:
            say(plan_in_short(plan, tree))
        if self._stages.state.stages == ():
            self._ui.show_plan(plan)
        return Planned(root, machine, tree, plan)

    def _make(self, planned: Planned) -> Report:
        root, plan = planned.root, planned.plan
        if self._locked is not None:
            self._locked.require(self._session, planned)
            self._stages.update(request=msgspec.structs.replace(self._request, yes=False))
        before = plan_before(root)
        key = self._configure(planned)
        build = build_of(self._session, plan, planned.machine)
        parts = {
            "what caffeup puts into the tree changed": key,
            SOURCES: source_stamp(root),
            "another compiler": plan.compiler,
            "another environment for make": digest(to_json(plan.make_env)),
        }
        built = digest(*parts.values())
        self._stages.once(
            "build",
            built,
            lambda: self._build(build, before),
            still_there=lambda: _library(plan) is not None,
            parts=parts,
            more=lambda part: _newer(root, plan) if part == SOURCES else "",
        )
        tests = self._test(build, planned.tree, built)
        module = root / "python" / "caffe" / "_caffe.so"
        if plan.python:
            self._stages.once(
                "pycaffe",
                built,
                lambda: make_pycaffe(build, self._progress("pycaffe", plan), self._ui.say),
                still_there=module.is_file,
            )
        else:
            self._stages.skip("pycaffe", "no Python to build it for")
        if self._request.distribute:
            self._stages.once(
                "distribute", built, lambda: make_distribute(build, self._ui.progress("distribute")), still_there=lambda: True
            )
        return self._verify(planned, built, tests)

    def _configure(self, planned: Planned) -> str:
        """Makefile.config, links, shims, files and edits; the key tells one such state of the tree from another."""
        root, plan = planned.root, planned.plan
        text = render_config(plan)
        with self._stages.step("configure") as say:
            before = engine.preview(str(root), plan, self._session.facts, text)
            left = sum(entry.state is PatchState.EDITED for entry in before)
            if all(entry.state in {PatchState.DONE, PatchState.NOT_APPLICABLE, PatchState.EDITED} for entry in before):
                say("nothing to do" + (f"; {left} left as somebody changed them (caffeup patch status)" if left else ""))
            else:
                say(_patched_in_short(apply_shown(self._session, planned, self._ui)))
        keep_plan(plan)
        return digest((root / FOLDER / "ledger.json").read_text(encoding="utf-8"))

    def _progress(self, title: str, plan: Plan) -> Progress:
        """A display that says which of the long steps it is, since each counts its own time."""
        tests = ("build tests", "test") if self._request.tests else ()
        steps = ("build", *tests, *(("pycaffe",) if plan.python else ()), "verify")
        return self._ui.progress(f"{title} (step {steps.index(title) + 1} of {len(steps)})")

    def _build(self, build: Build, before: Optional[Plan]) -> StageOutcome:
        keep(build.path, before)
        for later in ("test", "pycaffe", "verify"):
            self._stages.forget(later)
        return make_all(build, self._progress("build", build.plan), self._ui.say)

    def _test(self, build: Build, tree: Tree, built: str) -> Optional[TestReport]:
        if not self._request.tests:
            self._stages.skip("test", "--no-tests")
            return None
        if "tests" not in tree.features:
            self._stages.skip("test", "this tree has none")
            return None

        def work() -> StageOutcome:
            programs = build_tests(build, self._progress("build tests", build.plan))
            report = run_tests(
                build,
                programs,
                self._progress("test", build.plan),
                known=lambda name: known_failure(tree.fork, name, self._session.facts, gpu=build.plan.gpu),
            )
            self._stages.update(tests=report)
            return StageOutcome(name="test", state="done", summary=tests_in_short(report), log=tests_log(build))

        self._stages.once("test", digest(built, build.plan.test_filter), work, still_there=lambda: True)
        return self._stages.state.tests

    def _verify(self, planned: Planned, built: str, tests: Optional[TestReport]) -> Report:
        def work() -> StageOutcome:
            checks = verify_tree(self._session, planned, self._ui)
            self._stages.update(checks=checks)
            bad = [check for check in checks if not check.ok]
            if bad:
                raise VerifyFailed(
                    f"It was built, but {len(bad)} of {len(checks)} checks failed.",
                    details="\n".join(f"{check.name}: {check.result}" for check in bad),
                    findings=tuple(check.finding for check in bad if check.finding is not None),
                    commands=way_back(planned.root),
                )
            return StageOutcome(name="verify", state="done", summary=f"{len(checks)} checks passed")

        driver = self._stages.state.driver if planned.plan.gpu else ""
        self._stages.once("verify", digest(built, planned.plan.python, driver), work, still_there=lambda: True)
        self._lock(planned)
        root = planned.root
        remember_tree(self._session.host.env, root)
        return Report(
            tree=str(root),
            stages=tuple(self._stages.outcomes),
            tests=tests,
            checks=self._stages.state.checks,
            binaries=tuple(str(path) for path in products(planned.plan)),
            environment=tuple((name, ":".join(folders)) for name, folders in environment(planned.plan)),
        )

    def _tell_driver(self, machine: Machine) -> None:
        """A new driver changes nothing that is built; that it runs what is built is checked again."""
        driver = machine.graphics.driver
        now = str(driver.release) if driver is not None and driver.release is not None else ""
        before = self._stages.state.driver
        if before and now and before != now:
            self._ui.say(f"driver {before} → {now}: nothing is built anew for it; what is built is checked again")
        if now != before:
            self._stages.update(driver=now or before)

    def _lock(self, planned: Planned) -> None:
        """Hold what was built against the lock, or write one; where nothing was done there is nothing to write."""
        if self._locked is not None:
            with self._stages.step("lock") as say:
                self._locked.require_built(planned.plan)
                say(f"everything is as {self._locked.path} says")
        elif not (planned.root / LOCK).exists() or any(
            one.state == "done" for one in self._stages.outcomes if one.name in _BUILDS
        ):
            with self._stages.step("lock") as say:
                say(write_after(self._session, planned))


def require_tests(report: Report) -> None:
    """Raise ``TestsFailed`` for failures that are not known of this tree; everything else is done by then."""
    unknown = report.tests.unknown_failures if report.tests is not None else ()
    if not unknown:
        return
    log = next((stage.log for stage in report.stages if stage.name == "test"), "")
    raise TestsFailed(
        f"{len(unknown)} {'test' if len(unknown) == 1 else 'tests'} failed that this tree is not known to fail.",
        details="\n".join(f"{case.name}: {case.state}: {case.text}" for case in unknown),
        advice="Everything else is done; the library and pycaffe can be used. To leave the tests out:",
        commands=(f"caffeup up {report.tree} --no-tests",),
        log=log,
    )


def _has_git(machine: Machine) -> bool:
    return any(program.name == "git" for program in machine.programs)


def _library(plan: Plan) -> Optional[Path]:
    return next(iter(sorted((Path(plan.tree) / plan.build_dir / "lib").glob("libcaffe.so*"))), None)


def _newer(root: Path, plan: Plan) -> str:
    """Which files made it stale: ``: src/caffe/net.cpp, src/caffe/blob.cpp and 3 more``."""
    library = _library(plan)
    names = newer_than(root, library) if library is not None else ()
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f": {', '.join(names[:SHOWN])}{more}" if names else ""


def _patched_in_short(entries: tuple[PatchEntry, ...]) -> str:
    """``for 10 fixes: Makefile.config, 6 edits, 1 new file, 24 headers (caffeup patch status)``."""
    many = {kind: sum(len(one.files) for one in entries if one.kind == kind) for kind in ("file", "shim", "library")}
    many["edit"] = sum(one.kind == "edit" for one in entries)
    fixes = len({one.fix for one in entries if one.fix})
    words = ["Makefile.config"] if any(one.kind == "config" for one in entries) else []
    for kind, one, more in (
        ("edit", "edit", "edits"),
        ("file", "new file", "new files"),
        ("shim", "header", "headers"),
        ("library", "stand-in for a library", "stand-ins for libraries"),
    ):
        words += [f"{many[kind]} {one if many[kind] == 1 else more}"] if many[kind] else []
    for_what = f"for {fixes} {'fix' if fixes == 1 else 'fixes'}: " if fixes else ""
    return f"{for_what}{', '.join(words)} (caffeup patch status)"
