"""What one decision contributes to the plan, and how contributions are put together."""

from __future__ import annotations

from collections.abc import Iterable

from caffeup.model.base import Value
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.plan import Alternative, ConfigLine, Decision, Link


class Part(Value, kw_only=True):
    """The contribution of one decision."""

    decisions: tuple[Decision, ...] = ()
    config: tuple[ConfigLine, ...] = ()
    links: tuple[Link, ...] = ()
    conflicts: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    packages: tuple[str, ...] = ()
    run_paths: tuple[str, ...] = ()
    make_env: tuple[tuple[str, str], ...] = ()


def join(parts: Iterable[Part]) -> Part:
    """All contributions, in order; the same link, note, package or folder stands once."""
    every = tuple(parts)
    return Part(
        decisions=tuple(one for part in every for one in part.decisions),
        config=tuple(one for part in every for one in part.config),
        links=tuple(dict.fromkeys(one for part in every for one in part.links)),
        conflicts=tuple(dict.fromkeys(one for part in every for one in part.conflicts)),
        notes=tuple(dict.fromkeys(one for part in every for one in part.notes)),
        packages=tuple(dict.fromkeys(one for part in every for one in part.packages)),
        run_paths=tuple(dict.fromkeys(one for part in every for one in part.run_paths)),
        make_env=tuple(one for part in every for one in part.make_env),
    )


def decision(key: str, value: str, because: str, *, fact: str = "", rejected: Iterable[Alternative] = ()) -> Decision:
    """A decision; short to write, as there are many."""
    return Decision(key=key, value=value, because=because, fact=fact, rejected=tuple(rejected))


def line(key: str, *words: str, because: str, operator: str = ":=", override: bool = False, raw: bool = False) -> ConfigLine:
    """One line of Makefile.config."""
    return ConfigLine(key=key, value=words, because=because, operator=operator, override=override, raw=raw)


def conflict(
    name: str, title: str, why: str = "", *, remedies: Iterable[Remedy] = (), evidence: Iterable[Evidence] = (), affects: str = ""
) -> Finding:
    """Something that stands in the way."""
    return Finding(
        id=name,
        severity=Severity.PROBLEM,
        title=title,
        why=why,
        evidence=tuple(evidence),
        remedies=tuple(remedies),
        affects=affects,
    )


def note(
    name: str,
    title: str,
    why: str = "",
    *,
    remedies: Iterable[Remedy] = (),
    evidence: Iterable[Evidence] = (),
    affects: str = "",
    severity: Severity = Severity.NOTE,
) -> Finding:
    """Something that the user should know and that stops nothing."""
    return Finding(
        id=name, severity=severity, title=title, why=why, evidence=tuple(evidence), remedies=tuple(remedies), affects=affects
    )


def remedy(text: str, *commands: str, by_caffeup: bool = False) -> Remedy:
    """A way out."""
    return Remedy(text=text, commands=commands, by_caffeup=by_caffeup)
