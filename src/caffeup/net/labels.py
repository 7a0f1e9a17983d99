"""The names of a detector's classes: a label map of Caffe's, or a text with one name a line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Optional

import msgspec

from caffeup.errors import UsageError
from caffeup.net.text import Document, printable, quoted

BACKGROUND = "background"


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Names by their number."""

    names: tuple[str, ...]
    shown: tuple[str, ...] = ()
    """What is shown in their place; as many, or none."""
    as_text: bool = False
    """Whether they came as lines."""
    headless: bool = False
    """Whether those lines began behind the background."""


def from_map(document: Document, classes: int) -> Labels:
    """A label map; ``UsageError`` where it does not name each of so many classes once."""
    names: dict[int, tuple[str, str]] = {}
    for item in document.root.blocks("item"):
        number = item.integer("label", -1)
        name = item.string("name")
        if number in names or number < 0:
            raise UsageError(
                f"{document.name} gives the label {number} twice, or none.", details=str(document.evidence(item.start))
            )
        names[number] = (name, item.string("display_name", name))
    if sorted(names) != list(range(classes)):
        raise UsageError(f"{document.name} names {len(names)} classes, and the net has {classes}.")
    return Labels(names=tuple(names[one][0] for one in range(classes)), shown=tuple(names[one][1] for one in range(classes)))


def from_lines(text: str, name: str, classes: int) -> Labels:
    """One name a line; the background may be left out."""
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    headless = len(lines) == classes - 1
    if headless:
        lines = [BACKGROUND, *lines]
    if len(lines) != classes:
        raise UsageError(f"{printable(name, 400)} names {len(lines)} classes, and the net has {classes}.")
    return Labels(names=tuple(lines), as_text=True, headless=headless)


def chosen(wanted: Sequence[str], labels: Optional[Labels], classes: int, background: int) -> tuple[int, ...]:
    """Numbers of the classes to keep, in the order in which they are named; the background comes first by itself."""
    found: list[int] = [background] if background >= 0 else []
    for word in (one.strip() for one in wanted):
        if not word:
            continue
        number = _number(word, labels, classes)
        if number == background:
            continue
        if number in found:
            raise UsageError(f"{printable(word)} is named twice.")
        found.append(number)
    if len(found) == int(background >= 0):
        raise UsageError("No class is left.", advice="Give --keep person,car.")
    return tuple(found)


def _number(word: str, labels: Optional[Labels], classes: int) -> int:
    names = [*(labels.names if labels else ())]
    for known in (names, [*(labels.shown if labels else ())]):
        matches = [number for number, name in enumerate(known) if name == word]
        matches = matches or [number for number, name in enumerate(known) if name.lower() == word.lower()]
        if len(matches) == 1:
            return matches[0]
    if word.isascii() and word.isdigit():
        if int(word) < classes:
            return int(word)
        raise UsageError(f"There is no class {printable(word)}: the net has {classes}, from 0 on.")
    if labels is None:
        raise UsageError(f"The number of {printable(word)!r} is not known.", advice="Give --labels FILE, or numbers.")
    every = [*names, *labels.shown]
    near = list(dict.fromkeys(difflib.get_close_matches(word, every, n=3, cutoff=0.5)))
    raise UsageError(f"There is no class {printable(word)!r}.", advice=f"Perhaps: {printable(', '.join(near or every), 300)}")


def written(labels: Labels, kept: Sequence[int]) -> str:
    """The labels of the classes that are kept, as they came."""
    names = [labels.names[number] for number in kept]
    if labels.as_text:
        return "".join(f"{name}\n" for name in (names[1:] if labels.headless else names))
    shown = [labels.shown[number] if labels.shown else name for number, name in zip(kept, names)]
    return "".join(
        f"item {{\n  name: {quoted(name)}\n  label: {number}\n  display_name: {quoted(display)}\n}}\n"
        for number, (name, display) in enumerate(zip(names, shown))
    )
