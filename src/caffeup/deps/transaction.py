"""What package managers say they would do, as a value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

from caffeup.model.base import Value

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = r"([0-9][0-9.,]*)\s*([kKMGT]?)(i?)[Bb]?"


class Transaction(Value, kw_only=True):
    """Packages by what would be done to them."""

    understood: bool = False
    """Whether the output was what this manager prints; otherwise nothing may follow from it."""
    install: tuple[str, ...] = ()
    upgrade: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    downgrade: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    """Packages that somebody held at their version and that would change all the same."""
    download_bytes: Optional[int] = None
    disk_bytes: Optional[int] = None
    """More space used afterwards; negative: less."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.understood and not self.touched

    @property
    def touched(self) -> tuple[str, ...]:
        """Every package that would change."""
        return (*self.install, *self.upgrade, *self.remove, *self.downgrade, *self.held)


def parse_transaction(manager: str, text: str, status: int) -> Transaction:
    """Read the output of a manager's ``simulate`` command; ``KeyError`` for another manager."""
    readers = {"apt": _apt, "dnf": _dnf, "zypper": _zypper, "pacman": _pacman}
    return readers[manager](text, status)


def size(number: str, unit: str, binary: str, *, decimal: bool) -> Optional[int]:
    """Bytes; a plain ``M`` is decimal or binary as the manager has it."""
    scale = _BINARY if binary or not decimal else _DECIMAL
    try:
        return int(float(number.replace(",", "")) * scale[unit.lower()])
    except (ValueError, OverflowError):
        return None


def _sized(pattern: str, text: str, *, decimal: bool) -> Optional[int]:
    match = re.search(pattern.replace("SIZE", _SIZE), text)
    return size(match.group(1), match.group(2), match.group(3), decimal=decimal) if match else None


def _listed(text: str, headings: Sequence[str]) -> tuple[str, ...]:
    """Words of the indented lines below a heading that one of the patterns matches."""
    found: list[str] = []
    within = False
    for line in text.splitlines():
        if line[:1].isspace():
            if within:
                found += [word.rstrip("*") for word in line.split()]
        else:
            within = any(re.match(heading, line) for heading in headings)
    return tuple(dict.fromkeys(found))


def _apt(text: str, status: int) -> Transaction:
    # apt-get's own headings, and those of apt 3.
    counts = re.search(r"(\d{1,9}) upgraded, (\d{1,9}) newly installed, (?:(\d{1,9}) downgraded, )?(\d{1,9}) to remove", text)
    modern = re.search(r"Upgrading: (\d{1,9}), Installing: (\d{1,9}),(?: Downgrading: (\d{1,9}),)? Removing: (\d{1,9})", text)
    remove = _listed(text, (r"The following packages will be REMOVED:", r"REMOVING:"))
    downgrade = _listed(text, (r"The following packages will be DOWNGRADED:", r"DOWNGRADING:"))
    count = counts or modern
    understood = status == 0 and count is not None
    if count is not None and (int(count.group(4)) != len(remove) or int(count.group(3) or 0) != len(downgrade)):
        understood = False
    freed = re.search(r"After this operation, .* will be freed|Freed space:", text) is not None
    disk = _sized(r"After this operation, SIZE", text, decimal=True)
    if disk is None:
        disk = _sized(r"(?:Space needed|Freed space): +SIZE", text, decimal=True)
    return Transaction(
        understood=understood,
        install=_listed(text, (r"The following NEW packages will be installed:", r"Installing(?: dependencies)?:")),
        upgrade=_listed(text, (r"The following packages will be upgraded:", r"Upgrading:\s*$")),
        remove=remove,
        downgrade=downgrade,
        held=_listed(text, (r"The following held packages will be changed:", r"Changing held packages:")),
        download_bytes=_sized(r"Need to get SIZE", text, decimal=True) or _sized(r"Download size: +SIZE", text, decimal=True),
        disk_bytes=-disk if freed and disk is not None else disk,
    )


def _dnf(text: str, status: int) -> Transaction:
    """Tables with a name a row, in dnf 4 and 5; ``replacing`` below a row is a removal."""
    del status  # 1 whenever it was told to assume no
    groups: dict[str, list[str]] = {"install": [], "upgrade": [], "remove": [], "downgrade": []}
    headings = (
        (r"(Installing|Reinstalling)[a-z ]*:\s*$", "install"),
        (r"Upgrading[a-z ]*:\s*$", "upgrade"),
        (r"(Removing|Replacing|Obsoleting)[a-z ]*:\s*$", "remove"),
        (r"Downgrading[a-z ]*:\s*$", "downgrade"),
    )
    group: Optional[str] = None
    last = ""
    for line in text.splitlines():
        replaced = re.match(r"\s+replacing\s+(\S+)", line)
        if re.match(r"Transaction [Ss]ummary", line):
            break
        if replaced is not None:
            if replaced.group(1).partition(".")[0] != last:  # dnf 5 lists so the old version of the package itself
                groups["remove"].append(replaced.group(1))
        elif re.match(r" \S", line) and group is not None:
            last = line.split()[0]
            groups[group].append(last)
        elif line[:1].strip():
            group = next((name for heading, name in headings if re.match(heading, line)), None)
    needed = _sized(r"Installed size: SIZE", text, decimal=False)
    return Transaction(
        understood=re.search(r"^Transaction [Ss]ummary|^\s*Nothing to do", text, re.MULTILINE) is not None,
        install=tuple(dict.fromkeys(groups["install"])),
        upgrade=tuple(dict.fromkeys(groups["upgrade"])),
        remove=tuple(dict.fromkeys(groups["remove"])),
        downgrade=tuple(dict.fromkeys(groups["downgrade"])),
        download_bytes=_sized(r"(?:Total download size: |Need to download )SIZE", text, decimal=False),
        disk_bytes=needed if needed is not None else _sized(r"After this operation, SIZE extra", text, decimal=False),
    )


def _zypper(text: str, status: int) -> Transaction:
    start = r"The following (?:\d+ )?(?:NEW )?packages? (?:is|are) going to be "
    return Transaction(
        understood=status == 0 and re.search(r"going to be|Nothing to do|download size", text) is not None,
        install=_listed(text, (start + r"(?:installed|reinstalled):",)),
        upgrade=_listed(text, (start + r"upgraded:",)),
        remove=_listed(text, (start + r"REMOVED:",)),
        downgrade=_listed(text, (start + r"downgraded:",)),
        download_bytes=_sized(r"download size: +SIZE", text, decimal=False),
        disk_bytes=_sized(r"additional SIZE will be used", text, decimal=False)
        or _sized(r"install size change: +\|? *SIZE", text, decimal=False),
    )


def _pacman(text: str, status: int) -> Transaction:
    """Lines ``name version bytes`` as the print format asks; it lists no removals: it fails where it would need one."""
    rows = re.findall(r"^(\S+) (\S+) (\d{1,18})$", text, re.MULTILINE)
    return Transaction(
        understood=status == 0,
        install=tuple(name for name, _, _ in rows),
        remove=tuple(re.findall(r"^:: .*\bRemove (\S+?)\? ", text, re.MULTILINE)),
        downgrade=tuple(re.findall(r"^warning: downgrading package (\S+)", text, re.MULTILINE)),
        download_bytes=sum(int(number) for _, _, number in rows) if rows else None,
    )
