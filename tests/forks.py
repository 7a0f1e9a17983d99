"""Which forks work where: builds trees as a user does, keeps what came of it, and writes docs/forks.md from that.

    python tests/forks.py run COLUMN NAME=TREE[@COMMIT] … [-- options of `caffeup up`]
    python tests/forks.py keep COLUMN NAME=TREE[@COMMIT] … [-- the options it was built with]
    python tests/forks.py render

``run`` builds a copy of the tree in a temporary folder; ``keep`` takes a tree that was built. COLUMN names the kind of machine and
build (``cpu``, ``cuda13-cudnn9`` …); one file a column and tree stays in docs/forks/.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from caffeup.app.state import FOLDER, load_state
from caffeup.facts.load import load_facts
from caffeup.model.base import Value, from_json, to_json
from caffeup.model.outcome import TestReport
from caffeup.model.plan import Plan

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "forks"
PAGE = ROOT / "docs" / "forks.md"
_COMMIT = re.compile(r"^[0-9a-f]{7,40}$")


class Failure(Value, kw_only=True):
    """One test that did not pass."""

    name: str
    text: str
    known: str = ""


class Result(Value, kw_only=True):
    """What came of one tree in one column."""

    column: str
    fork: str
    commit: str
    machine: str = ""
    options: tuple[str, ...] = ()
    fixes: tuple[str, ...] = ()
    status: int
    problem: str = ""
    """The first words of caffeup where it did not end well."""
    whole: bool = False
    """Whether the times are of a build from nothing."""
    seconds: tuple[tuple[str, float], ...] = ()
    passed: int = 0
    tests: int = 0
    failures: tuple[Failure, ...] = ()
    checks: tuple[tuple[str, bool], ...] = ()


def run(column: str, name: str, tree: Path, commit: str, options: tuple[str, ...]) -> Result:
    """Build a copy of the tree; what came of it."""
    with tempfile.TemporaryDirectory(prefix="caffeup-forks-") as within:
        copy = Path(shutil.copytree(tree, Path(within, f"caffe-{name}"), symlinks=True))
        done = subprocess.run(
            [sys.executable, "-m", "caffeup", "up", str(copy), "--yes", *options],
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        sys.stderr.write(done.stderr)
        words = done.stderr.replace(str(copy), f"caffe-{name}").splitlines()
        blank = Result(
            column=column,
            fork=name,
            commit=commit,
            options=_named(options),
            status=done.returncode,
            problem=_problem(words),
            whole=True,
        )
        return of_tree(blank, copy)


def of_tree(result: Result, root: Path) -> Result:
    """The same with what caffeup keeps in this tree: plan, times, tests, checks."""
    kept = root / FOLDER / "plan.json"
    if kept.is_file():
        plan = from_json(kept.read_text(encoding="utf-8"), Plan)
        result = msgspec.structs.replace(result, machine=_machine(plan), fixes=tuple(fix.id for fix in plan.fixes))
    state = load_state(root)
    tests = state.tests or TestReport(total=0, passed=0)
    return msgspec.structs.replace(
        result,
        seconds=tuple((one.name, round(one.outcome.seconds, 1)) for one in state.stages if one.outcome.state == "done"),
        passed=tests.passed,
        tests=tests.total,
        failures=tuple(Failure(name=case.name, text=case.text[:200], known=case.known) for case in tests.failures),
        checks=tuple((check.name, check.ok) for check in state.checks),
    )


def _named(options: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(named(word) for word in options)


def named(text: str) -> str:
    """Absolute paths by their last part: where a machine keeps its things is its own matter."""
    return re.sub(r"(?<![\w.~])/(?:[\w.+@~-]+/)*([\w.+@~-]+)", r"\1", text)


def _machine(plan: Plan) -> str:
    wanted = ("compiler", "toolkit", "cudnn", "opencv", "python")
    told = {one.key: one.value for one in plan.decisions if one.key in wanted}
    return named("; ".join(f"{key} {told[key]}" for key in wanted if told.get(key)))


def _problem(lines: list[str]) -> str:
    """caffeup's own first words on what is wrong, and the first problem they name."""
    begun = next((index for index, line in enumerate(lines) if line.startswith("caffeup: ")), len(lines))
    said = [line.strip() for line in lines[begun:] if line.strip()]
    named = next((line for line in said if line.startswith("problem: ")), "")
    return " ".join([*(line.removeprefix("caffeup: ") for line in said[:1]), named.removeprefix("problem: ")]).strip()


def render(results: list[Result]) -> str:
    """The page, from all results."""
    columns = sorted({one.column for one in results})
    order = [row.id for row in load_facts().forks]
    forks = sorted({one.fork for one in results}, key=lambda name: (order.index(name) if name in order else len(order), name))
    found = {(one.fork, one.column): one for one in results}
    lines = [
        "# Which forks work where",
        "",
        "Written by `tests/forks.py` from real runs of `caffeup up`; nobody edits it. A cell tells the tests that passed of",
        "those that were run, and how long a run from nothing took; the lists below tell what was applied, and what failed and why.",
        "",
        "| tree | " + " | ".join(columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for fork in forks:
        cells = [_cell(found[fork, column]) if (fork, column) in found else "not run" for column in columns]
        lines.append(f"| {fork} | " + " | ".join(cells) + " |")
    for column in columns:
        lines += ["", f"## {column}", ""]
        for fork in forks:
            if (fork, column) in found:
                lines += _details(found[fork, column])
    return "\n".join(lines) + "\n"


def _cell(one: Result) -> str:
    if one.problem:
        return f"no: {one.problem}".replace("|", "\\|")
    took = f", {sum(seconds for _, seconds in one.seconds) / 60:.1f} min" if one.whole else ""
    tests = f"{one.passed} of {one.tests}" if one.tests else "built, tests not run"
    bad = [name for name, ok in one.checks if not ok]
    return tests + took + (f"; checks that failed: {', '.join(bad)}" if bad else "")


def _details(one: Result) -> list[str]:
    commit = one.commit[:10] if _COMMIT.match(one.commit) else one.commit
    lines = [f"**{one.fork}** {commit}: {one.machine or 'no plan'}" + (f"; `{' '.join(one.options)}`" if one.options else ""), ""]
    lines.append(f"- applied: {', '.join(f'`{fix}`' for fix in one.fixes) or 'nothing'}")
    if one.whole and one.seconds:
        lines.append("- seconds: " + ", ".join(f"{name} {seconds:g}" for name, seconds in one.seconds))
    if one.problem:
        lines.append(f"- exit code {one.status}: {one.problem}")
    reasons: dict[str, list[str]] = {}
    for case in one.failures:
        reasons.setdefault(case.known or f"not known of this tree: {case.text}", []).append(case.name)
    for why, names in reasons.items():
        shown = ", ".join(f"`{name}`" for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        lines.append(f"- failed: {shown}: {why}")
    return [*lines, ""]


def main(words: list[str]) -> int:
    """Run and keep, or write the page."""
    if words[:1] == ["render"]:
        results = [from_json(path.read_text(encoding="utf-8"), Result) for path in sorted(RESULTS.glob("*.json"))]
        PAGE.write_text(render(results), encoding="utf-8")
        return 0
    if len(words) < 3 or words[0] not in {"run", "keep"}:
        sys.stderr.write(__doc__ or "")
        return 2
    trees: list[str] = words[2:]
    options: tuple[str, ...] = ()
    if "--" in trees:
        cut = trees.index("--")
        trees, options = trees[:cut], tuple(trees[cut + 1 :])
    for given in trees:
        name, _, rest = given.partition("=")
        tree, _, commit = rest.partition("@")
        if words[0] == "run":
            result = run(words[1], name, Path(tree), commit, options)
        else:
            result = of_tree(Result(column=words[1], fork=name, commit=commit, options=_named(options), status=0), Path(tree))
        (RESULTS / f"{name}.{words[1]}.json").write_text(to_json(result) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
