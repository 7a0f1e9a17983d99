"""Anchored edits: what patches/edits/<id>.toml says, worked out on the text of a tree, and never on line numbers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

import msgspec

from caffeup.model.base import Value, Word, from_toml
from caffeup.model.finding import Evidence, Finding, Remedy, Severity
from caffeup.model.outcome import PatchState

_GROUP = re.compile(rb"\\([1-9])")


class Missing(Word):
    """What it means that an anchor is not found."""

    CONFLICT = "conflict"
    SKIP = "skip"
    """The file has no such place: there is nothing to do."""


class Spot(Value, kw_only=True):
    """One place to change: an anchor, and what to do there."""

    files: tuple[str, ...]
    """Globs inside the tree."""
    anchor: str = ""
    """Literal text; it may have several lines."""
    regex: str = ""
    """Or a regular expression (Python's, ``^`` and ``$`` at each line)."""
    hits: int = 1
    """How often it must stand in one file; 0: once or more, and each is changed."""
    before: Optional[str] = None
    """Whole lines to put before the anchor's first line …"""
    after: Optional[str] = None
    """… or after its last line …"""
    replace: Optional[str] = None
    """… or what takes the anchor's place (``\\1`` is a group of the regular expression)."""
    done: str = ""
    """Regular expression that stands in a file where there is nothing left to do."""
    unless: str = ""
    """A hit stays as it is where this regular expression stands in the file too (``\\1`` is what the hit's group is) …"""
    where: str = ""
    """… or where this one stands in none of the files of ``where_in``."""
    where_in: tuple[str, ...] = ()
    """Globs inside the tree."""
    unless_there: str = ""
    """… or where this one stands in any of them."""
    missing: Missing = Missing.CONFLICT


class EditSpec(Value, kw_only=True):
    """One edit: patches/edits/<id>.toml."""

    title: str
    why: str
    since: str
    """The version of the library that made it necessary."""
    whom: str
    """The trees it is for."""
    source: tuple[str, ...]
    compiles: bool = True
    """Whether the touched files must compile afterwards."""
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class Edited:
    """What an edit comes to on the files of one tree."""

    state: PatchState
    because: str
    files: Mapping[str, bytes]
    """New contents, of the files that change."""
    matched: tuple[str, ...] = ()
    """All files it concerns, changed or not."""
    findings: tuple[Finding, ...] = ()


def parse_edit(text: bytes | str) -> EditSpec:
    """Read an edit; ``ValueError`` with the reason for one that is not well-formed."""
    try:
        spec = from_toml(text, EditSpec)
        for spot in spec.spots:
            _check(spot)
    except (msgspec.MsgspecError, re.error) as error:
        raise ValueError(str(error)) from error
    return spec


def _check(spot: Spot) -> None:
    if bool(spot.anchor) == bool(spot.regex):
        raise ValueError("a spot has either an anchor or a regex")
    if sum(part is not None for part in (spot.before, spot.after, spot.replace)) != 1:
        raise ValueError("a spot has one of before, after and replace")
    if bool(spot.where or spot.unless_there) != bool(spot.where_in):
        raise ValueError("a spot has where or unless_there together with where_in, or none of them")
    re.compile(spot.regex)
    re.compile(spot.done)
    groups = re.compile(spot.regex).groups
    for pattern in (spot.unless, spot.where, spot.unless_there):
        re.compile(_GROUP.sub(b"x", pattern.encode()))
        if any(int(one) > groups for one in _GROUP.findall(pattern.encode())):
            raise ValueError(f"the regex has no such group: {pattern}")


class Text:
    """A file's bytes, searched as if its lines ended in LF, and changed in its own line ends."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._ends = [match.start() for match in re.finditer(rb"\r\n", data)]
        self.plain = data.replace(b"\r\n", b"\n")
        self._plain_ends = [end - index for index, end in enumerate(self._ends)]
        self.crlf = len(self._ends) * 2 > data.count(b"\n")

    def offset(self, plain: int) -> int:
        """Where an offset of the LF text is in the file."""
        return plain + bisect_right(self._plain_ends, plain - 1)

    def own(self, text: bytes) -> bytes:
        """The text with this file's line ends."""
        return text.replace(b"\n", b"\r\n") if self.crlf else text

    def line(self, plain: int) -> int:
        """Number of the line, from 1."""
        return self.plain.count(b"\n", 0, plain) + 1

    def line_start(self, plain: int) -> int:
        """Offset of the start of the line."""
        return self.plain.rfind(b"\n", 0, plain) + 1

    def line_end(self, plain: int) -> int:
        """Offset after the line's end."""
        found = self.plain.find(b"\n", plain)
        return len(self.plain) if found < 0 else found + 1


def work_out(
    spec: EditSpec,
    name: str,
    files: Mapping[str, bytes],
    matches: Mapping[int, tuple[str, ...]],
    beside: Optional[Mapping[int, tuple[bytes, ...]]] = None,
) -> Edited:
    """Apply the edit to the files' bytes.

    For each spot, ``matches`` has the paths that its globs hit, ``beside`` the contents of its ``where_in``.
    """
    contents = dict(files)
    findings: list[Finding] = []
    done: list[str] = []
    concerned = tuple(dict.fromkeys(path for index in range(len(spec.spots)) for path in matches[index]))
    for index, spot in enumerate(spec.spots):
        for path in matches[index]:
            outcome = _apply(spot, name, path, contents[path], (beside or {}).get(index, ()))
            if isinstance(outcome, Finding):
                findings.append(outcome)
            elif outcome is None:
                done.append(path)
            else:
                contents[path] = outcome
    changed = {path: data for path, data in contents.items() if data != files[path]}
    if findings:
        return Edited(PatchState.CONFLICTING, findings[0].title, {}, concerned, tuple(findings))
    if changed:
        return Edited(PatchState.NEEDED, f"{', '.join(changed)}: {spec.title}", changed, concerned)
    if done:
        return Edited(PatchState.DONE, f"{done[0]} has it already", {}, concerned)
    return Edited(PatchState.NOT_APPLICABLE, "there is no such place in this tree", {}, concerned)


def _apply(spot: Spot, name: str, path: str, data: bytes, beside: tuple[bytes, ...]) -> bytes | Finding | None:
    """The new bytes, None where it is done already, the same bytes where there is nothing to do, or why it cannot be."""
    text = Text(data)
    if spot.done and re.search(spot.done.encode(), text.plain, re.MULTILINE):
        return None
    pattern = re.compile(spot.regex.encode() if spot.regex else re.escape(spot.anchor.encode()), re.MULTILINE)
    hits = [hit for hit in pattern.finditer(text.plain) if _concerned(spot, hit, text.plain, beside)]
    if not hits and spot.missing is Missing.SKIP:
        return data
    if not hits or (spot.hits and len(hits) != spot.hits):
        return _misfit(spot, name, path, text, hits)
    pieces: list[bytes] = []
    position = 0
    for hit in hits:
        start, end, put = _place(spot, text, hit)
        pieces += [data[position : text.offset(start)], text.own(put)]
        position = text.offset(end)
    return b"".join((*pieces, data[position:]))


def _concerned(spot: Spot, hit: re.Match[bytes], plain: bytes, beside: tuple[bytes, ...]) -> bool:
    """Whether the rest of the file, and the files beside it, call for a change at this hit."""

    def stands_in(pattern: str, text: bytes) -> bool:
        named = (int(one) for one in _GROUP.findall(pattern.encode()))
        if any((hit.group(one) or b"") not in text for one in named):  # saves nearly all searches of a whole tree
            return False
        told = _GROUP.sub(lambda one: re.escape(hit.group(int(one[1])) or b""), pattern.encode())
        return re.search(told, text.replace(b"\r\n", b"\n"), re.MULTILINE) is not None

    def stands_there(pattern: str) -> bool:
        return any(stands_in(pattern, text) for text in beside)

    if spot.unless and stands_in(spot.unless, plain):
        return False
    if spot.where and not stands_there(spot.where):
        return False
    return not (spot.unless_there and stands_there(spot.unless_there))


def _place(spot: Spot, text: Text, hit: re.Match[bytes]) -> tuple[int, int, bytes]:
    """Start and end of what is taken out, and what is put in."""
    if spot.replace is not None:
        put = hit.expand(spot.replace.encode()) if spot.regex else spot.replace.encode()
        return hit.start(), hit.end(), put
    if spot.before is not None:
        start = text.line_start(hit.start())
        return start, start, _whole_lines(spot.before)
    last = max(hit.start(), hit.end() - 1)
    end = text.line_end(last)
    lines = _whole_lines(spot.after or "")
    return end, end, lines if text.plain[:end].endswith(b"\n") else b"\n" + lines


def _whole_lines(lines: str) -> bytes:
    """Never a part of one: what stood there would go on in the edit's last line, perhaps in its comment."""
    return (lines if lines.endswith("\n") or not lines else f"{lines}\n").encode()


def _misfit(spot: Spot, name: str, path: str, text: Text, hits: list[re.Match[bytes]]) -> Finding:
    what = (spot.regex or spot.anchor).strip().splitlines()[0]
    lines = tuple(text.line(hit.start()) for hit in hits)
    if hits:
        title = f"{path}: the place for the edit {name} is ambiguous: lines {', '.join(map(str, lines))}"
        why = f"{what!r} must stand there {spot.hits} time(s); it stands there {len(hits)} times."
    else:
        title = f"{path}: the place for the edit {name} was not found"
        why = f"{what!r} does not stand there. The file differs from every tree that caffeup knows."
    return Finding(
        id="patch-anchor-ambiguous" if hits else "patch-anchor-missing",
        severity=Severity.PROBLEM,
        title=title,
        why=why,
        affects=name,
        evidence=tuple(Evidence(where=path, line=line, text=what) for line in lines) or (Evidence(where=path),),
        remedies=(Remedy(text="Make the change by hand; caffeup then sees that it is done.", commands=(f"$EDITOR {path}",)),),
    )
