"""What lies in the input folder, local or in an object store. Nothing is opened but file lists."""

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from optstream.catalogue.backends import Location, StoreUrl
from optstream.storage.open import open_store

UNREADABLE_IN_A_STORE = frozenset("?#%*[]\\")
"""Marks that readers of URLs take for something else."""


@dataclass(frozen=True)
class Found:
    """An entry of a folder. listed: bytes of an object, as the store lists them; a path is asked."""

    location: Location
    listed: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether it can be read as one."""
        return self.listed is not None if isinstance(self.location, StoreUrl) else self.location.is_file()

    @property
    def size(self) -> int:
        """Bytes of a file. Raises OSError."""
        return self.listed or 0 if isinstance(self.location, StoreUrl) else self.location.stat().st_size

    def leads_out_of(self, root: Location) -> bool:
        """Whether a link leads elsewhere; an object is where it is."""
        if isinstance(self.location, StoreUrl):
            return False
        return not Path(os.path.realpath(self.location)).is_relative_to(os.path.realpath(str(root)))


def names_in(folder: Location) -> list[str]:
    """The names of what lies in it. Raises OSError where it is not there or cannot be listed."""
    if isinstance(folder, StoreUrl):
        names = list(open_store(folder).list_folder())
        if not names:
            raise FileNotFoundError(str(folder))
        return names
    return [entry.name for entry in folder.iterdir()]


def is_anything(place: Location) -> bool:
    """Whether there is a folder or a file of this name. Raises OSError."""
    if isinstance(place, StoreUrl):
        return bool(open_store(place).list_folder())
    return os.path.lexists(place)


def is_folder(place: Location) -> bool:
    """Whether a path is a folder; a store has none, but for what lies in them. Raises OSError."""
    return isinstance(place, StoreUrl) or place.is_dir()


def entries_of(folder: Location, most: int) -> dict[str, Found]:
    """What lies in a folder, one more than `most` at most. Raises OSError where it cannot be listed."""
    if isinstance(folder, StoreUrl):
        listed = itertools.islice(open_store(folder).list_folder().items(), most + 1)
        return {name: Found(folder / name, size) for name, size in listed}
    return {entry.name: Found(entry) for entry in itertools.islice(folder.iterdir(), most + 1)}


def read_small(file: Location, largest: int) -> bytes:
    """A file's bytes, one more than `largest` at most. Raises OSError."""
    if isinstance(file, StoreUrl):
        return open_store(file.parent).get(file.name, largest).data
    with file.open("rb") as found:
        return found.read(largest + 1)
