"""Removes files and folders, keeps what is not asked for, and remembers what could not be removed."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from caffeup.errors import DiskError

_SHOWN = 5


class Removal:
    """One clean-up of a tree."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.refused: list[tuple[Path, str]] = []
        """Paths that could not be removed, and why."""

    def whole(self, path: Path) -> tuple[str, ...]:
        """Remove a file, a link or a folder with all that is in it; in words."""
        before = len(self.refused)
        if path.is_symlink() or path.is_file():
            self._unlink(path)
        elif path.is_dir():
            shutil.rmtree(path, onerror=self._refuse)
        return () if len(self.refused) > before else (f"removed {path}",)

    def of(self, folder: Path, paths: Iterable[Path]) -> tuple[str, ...]:
        """Remove these of a folder, and it too where nothing else lies in it; in words, with what else there is."""
        before = len(self.refused)
        for path in list(dict.fromkeys(paths)):
            self._unlink(path)
        for place, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                Path(place).rmdir()
        if not folder.exists():
            return (f"removed {folder}",)
        if len(self.refused) > before:
            return ()
        return tuple(_left(folder))

    def quietly(self, paths: Iterable[Path]) -> None:
        """Remove files that are worth no word, and their folders where nothing else lies there."""
        for path in list(paths):
            self._unlink(path)
            with suppress(OSError):
                path.parent.rmdir()

    def require_done(self) -> None:
        """Raise ``DiskError`` where something could not be removed."""
        if not self.refused:
            return
        shown = [f"{path}: {why}" for path, why in self.refused[:_SHOWN]]
        more = len(self.refused) - _SHOWN
        folders = dict.fromkeys(path.parent for path, _ in self.refused[:_SHOWN])
        raise DiskError(
            f"{len(self.refused)} {'path' if len(self.refused) == 1 else 'paths'} could not be removed.",
            details="\n".join([*shown, *([f"and {more} more"] if more > 0 else [])]),
            advice="Make the folders writable for you, then run the same command again: it goes on where it stopped.",
            commands=tuple(f"chmod u+rwx {shlex.quote(str(folder))}" for folder in folders),
        )

    def _unlink(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.refused.append((path, error.strerror or str(error)))

    def _refuse(self, _call: object, path: str, raised: tuple[type, BaseException, object]) -> None:
        error = raised[1]
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            self.refused.append((Path(path), error.strerror or str(error)))


def _left(folder: Path) -> Iterable[str]:
    names = []
    for place, folders, files in os.walk(folder):
        linked = [name for name in folders if Path(place, name).is_symlink()]
        names += [os.path.relpath(Path(place, name), folder) for name in (*files, *linked)]
    names.sort()
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    yield f"removed what was built in {folder}; kept what no build makes: {shown}"
