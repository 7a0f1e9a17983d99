"""Why a run failed, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from caffeup.app.running import Memory, Outcome
from caffeup.cli import show
from caffeup.cli.called import as_typed, prompted
from caffeup.model.suspect import Suspect


def outcome(one: Outcome, status: int) -> Iterator[str]:
    """What its output says, then what this machine adds."""
    if one.findings:
        yield from show.findings(one.findings)
    else:
        yield f"caffeup: exit code {status}; no error that caffeup can see stands in the output."
    if one.suspects:
        yield ""
        yield "what could be behind it, looked at here in turn"
        for suspect in one.suspects:
            yield from _suspect(suspect)
    if one.memory is not None:
        yield ""
        yield from _memory(one.memory)


def _suspect(one: Suspect) -> Iterator[str]:
    yield from show.table([(str(one.verdict), f"{one.title}: {one.seen}  [{one.id}]")], like=[("ruled out", "")])
    for remedy in one.remedies:
        yield f"             mend  {as_typed(remedy.text)}"
        yield from (f"               {prompted(command)}" for command in remedy.commands)


def _memory(one: Memory) -> Iterator[str]:
    yield "the GPU's memory when it failed"
    yield from (f"  {line}" for line in (*one.free, *one.held, one.needs, one.fits) if line)
    if not one.free:
        yield "  the driver does not tell it here"
