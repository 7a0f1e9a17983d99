"""A lock as TOML: sorted, one line a key, so that a diff shows what changed. Pure."""

from __future__ import annotations

import hashlib
import json
import re

import msgspec

from caffeup.errors import LockUnfit
from caffeup.model.base import from_toml
from caffeup.model.lock import FORMAT, TABLES, Lock, Setting

LARGEST = 1 << 20
"""A lock is a few kilobytes."""
_HEAD = """\
# What this Caffe was built of, written by caffeup; `caffeup up --locked` builds exactly this.
# Do not edit it: `caffeup lock update` writes it anew, `caffeup lock diff` compares it.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ODD = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would reach a terminal as more than a letter."""


def write(lock: Lock) -> str:
    """The text; the same lock always gives the same."""
    return "\n".join((*_head(sealed(lock)), *_tables(lock)))


def sealed(lock: Lock) -> Lock:
    """The lock with its digest."""
    return msgspec.structs.replace(lock, digest=digest(lock))


def digest(lock: Lock) -> str:
    """Hash of everything but the digest itself."""
    text = "\n".join((*_head(msgspec.structs.replace(lock, digest="")), *_tables(lock)))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def read(data: bytes, name: str) -> Lock:
    """Read a lock strictly; raise ``LockUnfit`` saying why for one that no caffeup of this form wrote."""
    try:
        lock = from_toml(data.decode(), Lock)
    except RecursionError:
        raise LockUnfit(f"{name} is no lock of caffeup.", details="nested too deeply") from None
    except (msgspec.MsgspecError, ValueError) as error:
        raise LockUnfit(f"{name} is no lock of caffeup.", details=_plain(str(error))) from error
    if lock.format != FORMAT:
        raise LockUnfit(f"{name} is a lock of form {lock.format}; this caffeup knows {FORMAT}.")
    odd = next((key for key, value in flat(lock).items() if _ODD.search(key) or _ODD.search(value)), None)
    if odd is not None:
        raise LockUnfit(f"{name} holds control characters.", details=_plain(odd))
    if lock.digest != digest(lock):
        raise LockUnfit(
            f"{name} was changed since caffeup wrote it: its digest is another.",
            advice="Take it again from where it was written, or write one of what is built here.",
            commands=("caffeup lock update",),
        )
    return lock


def flat(lock: Lock) -> dict[str, str]:
    """Every key with its table, and its value as text."""
    return {f"{table}.{key}": told(value) for table in TABLES for key, value in sorted(getattr(lock, table).items())}


def told(value: Setting) -> str:
    """A value in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else ", ".join(value)


def _head(lock: Lock) -> list[str]:
    values = (("format", str(lock.format)), ("caffeup", _value(lock.caffeup)), ("digest", _value(lock.digest)))
    return [_HEAD.rstrip("\n"), *(f"{key} = {value}" for key, value in values)]


def _tables(lock: Lock) -> list[str]:
    lines: list[str] = []
    for table in TABLES:
        rows = getattr(lock, table)
        if rows:
            lines += ["", f"[{table}]", *(f"{_key(key)} = {_value(rows[key])}" for key in sorted(rows))]
    return [*lines, ""]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):  # JSON's escapes are TOML's, but for the one character that JSON leaves as it is
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(_value(one) for one in value)}]"


def _plain(text: str) -> str:
    return _ODD.sub("?", text)
