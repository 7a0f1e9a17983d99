"""README.zh-CN.md says what README.md says: the same blocks, tables, commands and links, section by section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LEAD = "Translate README.zh-CN.md anew: "


def sections(name: str) -> list[str]:
    """The text by its second-level headings, those within blocks not counted."""
    text = (ROOT / name).read_text(encoding="utf-8")
    marked = BLOCK.sub(lambda block: block[0].replace("\n## ", "\n\0## "), text)
    return [part.replace("\0", "") for part in re.split(r"^## ", marked, flags=re.MULTILINE)]


def pairs() -> list[tuple[str, str, str]]:
    """Each section's title in English, its text, and its translation."""
    ours, theirs = sections("README.md"), sections("README.zh-CN.md")
    theirs += [""] * (len(ours) - len(theirs))
    return [(one.partition("\n")[0].strip(), one, other) for one, other in zip(ours, theirs)]


PAIRS = pairs()


def codes(text: str) -> list[str]:
    return sorted(" ".join(code.split()) for code in re.findall(r"`([^`]+)`", BLOCK.sub("", text)))


def rows(text: str) -> list[list[str]]:
    """The rows of the tables, each by the code, the numbers and the addresses in its cells."""
    found = [line for line in BLOCK.sub("", text).splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in found]
    return [["; ".join(sorted(re.findall(r"`[^`]+`|\d[\d.]*|\]\([^)]+\)", cell))) for cell in row] for row in cells]


def test_there_are_as_many_sections() -> None:
    assert len(sections("README.md")) == len(sections("README.zh-CN.md")), LEAD + "a section is missing, or one too many"


@pytest.mark.parametrize(("title", "ours", "theirs"), PAIRS, ids=[title for title, _, _ in PAIRS])
def test_a_section_is_translated_whole(title: str, ours: str, theirs: str) -> None:
    blocks, others = BLOCK.findall(ours), BLOCK.findall(theirs)
    for number, block in enumerate(blocks):
        other = others[number] if number < len(others) else None
        assert other == block, f"{LEAD}block {number + 1} of {title!r} differs, which begins with {block[1].splitlines()[0]!r}"
    assert len(others) == len(blocks), f"{LEAD}{title!r} has a block too many"
    for number, (row, other_row) in enumerate(zip(rows(ours), rows(theirs))):
        assert other_row == row, f"{LEAD}row {number + 1} of the tables of {title!r}"
    assert len(rows(theirs)) == len(rows(ours)), f"{LEAD}rows of the tables of {title!r}"
    assert codes(theirs) == codes(ours), f"{LEAD}commands in the sentences of {title!r}"
    mine, yours = (sorted(re.findall(r"\]\(([^)]+)\)", text)) for text in (ours, theirs))
    assert [one for one in yours if one != "README.md"] == mine, f"{LEAD}links of {title!r}"


def test_the_sentences_are_chinese() -> None:
    text = BLOCK.sub("", (ROOT / "README.zh-CN.md").read_text(encoding="utf-8"))
    for paragraph in re.split(r"\n{2,}", text):
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)|[|#\[\]-]", "", paragraph)
        words = re.findall(r"[A-Za-z]{2,}", plain)
        assert len(re.findall(r"[\u4e00-\u9fff]", plain)) >= len(words) / 2 or len(words) <= 2, paragraph
