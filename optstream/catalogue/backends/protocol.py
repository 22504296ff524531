"""The narrow door to a published folder: what reading, checking, publishing and withdrawing ask of it.

Two kinds of place keep the same promise (docs/object-stores.md): whoever reads the catalogue finds every file
that it lists, whole, also after a crash. A folder of this machine does so with a lock and renames
(`local.py`), an object store with conditional puts (`objects.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from optstream.errors import PublicationError
from optstream.storage.location import Location, StoreUrl, locate

Result = TypeVar("Result")


class Overtaken(Exception):  # noqa: N818
    """Somebody else has replaced the catalogue since this turn read it: the turn must begin again."""


class OtherBytes(PublicationError):  # noqa: N818
    """A file of a published folder has other bytes than its name promises; nothing was overwritten."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} exists with other bytes, and a published file is never overwritten; restore it, or move "
            "it away and publish again"
        )


class Readable(Protocol):
    """What can be read. Names are relative to the published folder, with "/" between their parts."""

    def read(self, name: str, largest: int) -> bytes:
        """The bytes of a file. Raises FileNotFoundError where there is none, and PublicationError, naming
        the rule, for what is no plain file inside the folder, is longer than `largest`, or cannot be read.
        """


class Turn(Readable, Protocol):
    """One publisher's turn: it reads the catalogue, and ends when that is replaced, or not.

    is_alone: nobody else can change the folder meanwhile. Where others can, files that they are about to
    list must be spared, and only `replace_catalogue` says who came first. is_again: a turn before this one
    was overtaken, and may have left files that it wrote.
    """

    is_alone: bool
    is_again: bool

    def prepare(self, *folders: str) -> None:
        """Make ready for writing into these folders, and clear what a crash left half-written."""

    def create_new(self, name: str, data: bytes) -> bool:
        """Write a file under a name that nothing had: whole or not at all, never over another.

        Returns False if it held the same bytes already. Raises PublicationError if it holds others.
        """

    def replace_catalogue(self, data: bytes) -> None:
        """Put a new catalogue in the place of the one that this turn has read last, or where it found none,
        in one step. Raises Overtaken if there is another by now.
        """

    def confirm_catalogue(self) -> None:
        """Make the catalogue that this turn has read durable: who wrote it may have died before it was.

        Raises Overtaken if there is another by now.
        """

    def mark(self, name: str) -> str | None:
        """What tells the file of this name from another that takes its place; None where there is none."""

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Put a file in the place of the one that had this mark, in one step. Raises Overtaken if there is
        another by now.
        """

    def names_in(self, folder: str) -> list[str]:
        """The names of what lies in a folder; none where there is no such folder."""

    def move(self, source: str, target: str) -> None:
        """Move a file whose name is the hash of its bytes; at every moment it is at one of the two names."""

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Remove these files of a folder, and the folder itself once nothing is in it."""

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Give files and folders these modification times, as far as the place can."""


class Place(Readable, Protocol):
    """A published folder."""

    def is_file(self, name: str) -> bool:
        """Whether there is a file of this name."""

    def exists(self, name: str) -> bool:
        """Whether there is anything at this name or below it."""

    def names_below(self, folder: str) -> list[str]:
        """The names of all files below a folder, rising."""

    def change(self, work: Callable[[Turn], Result]) -> Result:
        """Take a turn, and another one each time it is overtaken. Raises OSError where writing fails."""


def open_place(folder: Location | str | Place) -> Place:
    """The place of a published folder: a path, or a URL of an object store; a place is itself.

    Raises ParameterError for a URL that cannot be one, and PublicationError where what reaches such stores
    is not installed.
    """
    if not isinstance(folder, Path | StoreUrl | str):
        return folder
    location = locate(folder)
    if isinstance(location, Path):
        from optstream.catalogue.backends.local import LocalPlace

        return LocalPlace(location)
    from optstream.catalogue.backends.object_store import ObjectPlace
    from optstream.storage.store import open_store

    return ObjectPlace(open_store(location))
