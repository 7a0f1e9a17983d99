"""apt without root: its lists and downloads in the user's folder, its configuration the machine's own.

apt itself checks signatures and hashes, and goes through the proxies that are set up for it. Nothing of the system is locked
or written; what is installed is read, since only what is missing is wanted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from caffeup.deps.install import Runner
from caffeup.deps.transaction import Transaction, parse_transaction
from caffeup.errors import CaffeupError, DependencyError, DiskError
from caffeup.facts.distros import DistroFile, Manager
from caffeup.host import Output
from caffeup.model.base import Value

UPDATE_SECONDS = 900.0
SIMULATE_SECONDS = 180.0
DOWNLOAD_SECONDS = 3 * 3600.0
TAIL = 30
_HOOKS = "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n"
"""The system's own: they write into its folders, and fail for anybody but root."""
_URI = re.compile(r"^'([^'\n]+)' ([^\s/]+\.deb) (\d{1,15}) (\w+):([0-9a-f]+)$", re.MULTILINE)
_HASHES = frozenset(("SHA256", "SHA512"))


class Archive(Value, kw_only=True):
    """One package to be unpacked."""

    file: str
    """Its name among the downloads: ``libgflags-dev_2.2.2-2_amd64.deb``."""
    uri: str
    bytes: int
    algorithm: str
    digest: str

    @property
    def name(self) -> str:
        """The package's name."""
        return self.file.partition("_")[0]

    @property
    def version(self) -> str:
        """Its version, without what apt writes for a colon."""
        return self.file.split("_")[1].replace("%3a", ":")


class Wanted(Value, kw_only=True):
    """What has to be unpacked, with all that it depends on and that is not installed."""

    archives: tuple[Archive, ...]
    transaction: Transaction
    packages: tuple[str, ...]
    """The names asked for, without those that nobody here has."""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Apt:
    """apt with a state of its own."""

    def __init__(self, home: Path, manager: Manager, distros: DistroFile, run: Runner) -> None:
        self._home = home
        self._manager = manager
        self._distros = distros
        self._run = run

    @property
    def downloads(self) -> Path:
        """Where packages are downloaded to."""
        return self._home / "archives"

    def prepare(self) -> None:
        """Make its folders; raise ``OSError`` where they cannot be made."""
        for name in ("lists", "archives", "none"):
            (self._home / name / "partial").mkdir(parents=True, exist_ok=True)
        (self._home / "no-hooks.conf").write_text(_HOOKS, encoding="utf-8")

    def want(self, packages: tuple[str, ...], optional: tuple[str, ...]) -> Wanted:
        """Fetch the package lists and ask what these packages need here; raise ``DependencyError``."""
        update = self._update()
        notes = _complaint(update)
        left_out: tuple[str, ...] = ()
        while True:
            output = self._ask(packages)
            text = f"{output.stdout}\n{output.stderr}" if output is not None else ""
            transaction = parse_transaction("apt", text, output.status if output is not None else 1)
            unknown = {
                name for match in re.finditer(self._manager.unknown, text, re.MULTILINE) for name in match.groups() if name
            }
            fewer = tuple(name for name in packages if name not in unknown or name not in optional)
            if unknown and unknown <= set(optional) and 0 < len(fewer) < len(packages):
                left_out, packages = (*left_out, *(name for name in packages if name not in fewer)), fewer
                continue
            if not transaction.understood or unknown:
                raise self._failed(output, "these packages cannot be had", update)
            archives = parse_uris(text)
            if len(archives) != len({*transaction.install, *transaction.upgrade, *transaction.downgrade}):
                raise self._failed(output, "apt does not say where all of these packages are, and what their hashes are", update)
            return Wanted(archives=archives, transaction=transaction, packages=packages, left_out=left_out, notes=notes)

    def download(self, packages: tuple[str, ...], count: int) -> None:
        """Download what is not there yet; apt goes on with what an earlier run had begun."""
        output = self._run(
            (*self._command("archives"), "--download-only", "install", *packages), timeout=DOWNLOAD_SECONDS, packages=count
        )
        if output is None or output.status != 0:
            raise self._failed(output, "these packages could not be downloaded")

    def _update(self) -> Optional[Output]:
        """What apt said. A repository that does not answer, or is not signed, need not be one that is needed."""
        return self._run((*self._command("archives"), "update"), timeout=UPDATE_SECONDS)

    def _ask(self, packages: tuple[str, ...]) -> Optional[Output]:
        """As if nothing were downloaded yet: apt names only what it would still fetch."""
        command = (*self._command("none"), "-o", "Acquire::ForceHash=SHA256", "--print-uris", "install", *packages)
        return self._run(command, timeout=SIMULATE_SECONDS)

    def _command(self, downloads: str) -> tuple[str, ...]:
        settings = (
            f"Dir::State={self._home}",
            f"Dir::State::lists={self._home}/lists",
            f"Dir::Cache={self._home}",
            f"Dir::Cache::archives={self._home}/{downloads}",
            "Debug::NoLocking=true",  # caffeup's own lock is held; the system's would need root
            "Acquire::Languages=none",
            "Acquire::AllowInsecureRepositories=false",
            "Acquire::AllowDowngradeToInsecureRepositories=false",
            "APT::Get::AllowUnauthenticated=false",
            "APT::Keep-Downloaded-Packages=true",
        )
        options = (word for one in settings for word in ("-o", one))
        own = ("-c", f"{self._home}/no-hooks.conf", "-q", "-y", "--no-install-recommends")
        return ("env", *self._manager.env, self._manager.program, *own, *options)

    def _failed(self, output: Optional[Output], brief: str, update: Optional[Output] = None) -> CaffeupError:
        """Why, in apt's words; what the update met comes first, since a package may be unknown for no other reason."""
        if output is None:
            return DependencyError(f"{self._manager.program} is not here", advice="--deps user needs it.")
        lines, before = _lines(output), _lines(update) if _complaint(update) else []
        details = "\n".join((*_complaint(update), *lines[-TAIL:]))
        for heard in (before, lines):
            for trouble in self._distros.trouble:
                said = next((line for line in heard if re.search(trouble.pattern, line)), None)
                if said is not None:
                    kind = DiskError if trouble.id == "disk-full" else DependencyError
                    advice = f"{trouble.advice[:1].upper()}{trouble.advice[1:]}."
                    return kind(f"{brief}: {said.strip()}", details=details, advice=advice)
        return DependencyError(f"{brief} (exit {output.status})", details=details)


def _complaint(update: Optional[Output]) -> tuple[str, ...]:
    """The error of an update that did not fetch all lists; apt itself calls that a warning where the network is down."""
    lines = _lines(update)
    failed = next((line for line in lines if line.startswith(("E:", "W: Failed to fetch"))), "")
    if update is not None and update.status == 0 and not failed:
        return ()
    return (f"apt-get could not fetch all package lists: {failed or (lines[-1] if lines else 'no such program')}",)


def parse_uris(text: str) -> tuple[Archive, ...]:
    """The lines of ``--print-uris``; those without a hash that can be relied on are left out."""
    return tuple(
        Archive(file=file, uri=uri, bytes=int(size), algorithm=algorithm, digest=digest)
        for uri, file, size, algorithm, digest in _URI.findall(text)
        if algorithm in _HASHES and file.count("_") == 2
    )


def _lines(output: Optional[Output]) -> list[str]:
    return [line for line in f"{output.stdout}\n{output.stderr}".splitlines() if line.strip()] if output is not None else []
