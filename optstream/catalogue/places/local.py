"""A published folder of this machine: a lock that a dying process lets go of, links and renames."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from optstream.catalogue.durable import clear, exclusive, make_folder, move, replace, sync_folder, write_new
from optstream.catalogue.layout import CATALOGUE, INCOMING, LOCK, inside
from optstream.catalogue.places.place import Result, Turn
from optstream.catalogue.untrusted import read_bounded


class LocalPlace:
    """See `Place`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str, largest: int) -> bytes:
        """A plain file, which must still be inside the folder when links are followed."""
        path = self._root / name if name == CATALOGUE else inside(self._root, name)
        return read_bounded(path, name, largest)

    def is_file(self, name: str) -> bool:
        return inside(self._root, name).is_file()

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def names_below(self, folder: str) -> list[str]:
        """Links and pipes too: they are strays."""
        found = (path for path in (self._root / folder).rglob("*") if not path.is_dir())
        return sorted(path.relative_to(self._root).as_posix() for path in found)

    def change(self, work: Callable[[Turn], Result]) -> Result:
        """Work once, under the publishers' lock."""
        make_folder(self._root)
        with exclusive(self._root / LOCK):
            return work(LocalTurn(self._root))


class LocalTurn:
    """See `Turn`. The caller holds the lock."""

    is_alone = True
    is_again = False

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[Path] = set()

    @property
    def _incoming(self) -> Path:
        return inside(self._root, INCOMING)

    def read(self, name: str, largest: int) -> bytes:
        return LocalPlace(self._root).read(name, largest)

    def prepare(self, *folders: str) -> None:
        """Folders that survive a power cut; half-written files are unlinked, never truncated."""
        for needed in (self._incoming, *(inside(self._root, folder) for folder in folders)):
            make_folder(needed)
            self._made.add(needed)
        clear(self._incoming)

    def create_new(self, name: str, data: bytes) -> bool:
        """Written aside, synced, linked."""
        folder = inside(self._root, name).parent
        if folder not in self._made:
            make_folder(folder)
        return write_new(self._root / name, data, self._incoming)

    def replace_catalogue(self, data: bytes) -> None:
        replace(self._root / CATALOGUE, data, self._incoming)

    def confirm_catalogue(self) -> None:
        sync_folder(self._root)

    def mark(self, name: str) -> str | None:
        """Nobody else can replace it meanwhile."""
        return "here" if inside(self._root, name).is_file() else None

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        replace(inside(self._root, name), data, self._incoming)

    def names_in(self, folder: str) -> list[str]:
        """Whatever they are."""
        path = inside(self._root, folder)
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def move(self, source: str, target: str) -> None:
        """By rename."""
        make_folder((self._root / target).parent)
        move(self._root / source, self._root / target)

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Unlinked; the folder goes with its last file."""
        path = inside(self._root, folder)
        if not path.is_dir():
            return
        for name in names:
            (path / name).unlink(missing_ok=True)
        sync_folder(path)
        with suppress(OSError):  # what else is in it is nobody's: `check_files` names it
            path.rmdir()
            sync_folder(path.parent)

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Files and folders of another owner keep their own: the system lets nobody else set them."""
        for name, time in times.items():
            # a withdrawn day has no files
            with suppress(PermissionError, FileNotFoundError):
                os.utime(self._root / name, (time.timestamp(), time.timestamp()))
