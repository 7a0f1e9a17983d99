"""What git, curl and ssh say, as something to act on. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from caffeup.errors import CaffeupError
from caffeup.source.checkout import without_credentials
from caffeup.source.problems import NoAccess, NotFetched, Unreachable, disk_error

# The first group that matches decides; the order is from the special to the general.
_SAYINGS = (
    ("full", re.compile(r"No space left on device|Disk quota exceeded")),
    (
        "branch",
        re.compile(r"Remote branch .* not found|couldn't find remote ref|not our ref|unadvertised object|did not match any"),
    ),
    (
        "access",
        re.compile(
            r"Authentication failed|could not read (?:Username|Password)|terminal prompts disabled|Permission denied \(|"
            r"Host key verification failed|error: 40[13]\b|Invalid username"
        ),
    ),
    (
        "absent",
        re.compile(
            r"[Rr]epository .* not found|does not appear to be a git repository|does not exist|"
            r"error: 404\b|not found: did you run"
        ),
    ),
    ("damaged", re.compile(r"repository corruption|pack-objects died|bad object|loose object .* is corrupt")),
    ("certificate", re.compile(r"certificate|SSL|TLS", re.IGNORECASE)),
    (
        "unreachable",
        re.compile(
            r"Could not resolve|Failed to connect|Couldn't connect|timed? ?out|"
            r"Connection (?:refused|reset|closed)|Network is unreachable|"
            r"No route to host|unable to access|unable to connect|Proxy|early EOF|the remote end hung up|error: 5\d\d|RPC failed|"
            r"Could not read from remote|Name or service not known|Temporary failure|transfer closed",
            re.IGNORECASE,
        ),
    ),
)

_CAUSE = re.compile(
    r"Could not resolve (?:host(?:name)?|proxy)(?::? [\w.-]+)?|Failed to resolve '[\w.-]+'|Name or service not known|"
    r"Temporary failure in name resolution|Connection (?:refused|reset|closed|timed out)|"
    r"(?:Operation|Connect\w*) timed? ?out|Network is unreachable|No route to host|Couldn't connect to server|"
    r"The requested URL returned error: \d{3}",
    re.IGNORECASE,
)
"""The words of those that name a cause."""


def cannot_reach(shown: str, why: str) -> str:
    """``cannot reach https://…: Could not resolve host: …``."""
    return f"cannot reach {shown}: {why}" if why else f"cannot reach {shown}"


def reason(said: str) -> str:
    """Why a host cannot be reached, in the words of git, curl or ssh; empty where they name no cause."""
    found = _CAUSE.search(said)
    return found.group().strip() if found else ""


def explain(said: Sequence[str], url: str, folder: Path) -> CaffeupError:
    """An error of git as something to act on."""
    shown = without_credentials(url)
    lines = [re.sub(r"//[^/@\s]*@", "//", line) for line in said if not line.startswith("Cloning into")]
    text = "\n".join(lines)
    what = next((name for name, pattern in _SAYINGS if pattern.search(text)), "")
    details = "\n".join(lines[-8:])
    look = (f"git ls-remote {shlex.quote(shown)}",)
    if what == "full":
        return disk_error(OSError(28, details), folder)
    if what == "unreachable":
        return Unreachable(
            cannot_reach(shown, reason(text)),
            details=details,
            advice="Check the network, or set http.proxy or a mirror (url.<base>.insteadOf) in git's configuration.",
            commands=look,
        )
    if what == "certificate":
        return Unreachable(
            f"the certificate of {shown} is not trusted here",
            details=details,
            advice="Install your proxy's certificate (ca-certificates), or name it with git config http.sslCAInfo.",
            commands=look,
        )
    brief = {
        "branch": f"{shown} has no such branch, tag or commit",
        "access": f"{shown} gives no access; it may not exist, or be private",
        "damaged": f"the repository at {shown} is damaged",
        "absent": f"there is no repository at {shown}",
    }.get(what, f"git could not fetch {shown}")
    return (NoAccess if what == "access" else NotFetched)(brief, details=details, commands=look)
