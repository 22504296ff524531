"""The interface to a published folder: what reading, checking, publishing and withdrawing need of it.

Two kinds of storage give the same guarantee (docs/data/object-stores.md): whoever reads the catalogue finds
every file that it lists, whole, also after a crash. A local folder gives it with a lock and renames
(`local.py`), an object store with conditional puts (`object_store.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from optstream.errors import PublicationError

Result = TypeVar("Result")


class ConflictError(Exception):
    """Another publisher has replaced the catalogue since this transaction read it: it must begin again."""


class OtherBytes(PublicationError):  # noqa: N818
    """A file of a published folder has other bytes than its name says; nothing was overwritten."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} exists with other bytes, and a published file is never overwritten; restore it, or move "
            "it away and publish again"
        )


class Readable(Protocol):
    """Storage that can be read. Names are relative to the published folder, with "/" between their parts."""

    def read(self, name: str, largest: int) -> bytes:
        """Return the bytes of a file. Raises FileNotFoundError where there is none, and PublicationError,
        naming the rule, for what is no plain file inside the folder, is longer than `largest`, or cannot be
        read.
        """


class Transaction(Readable, Protocol):
    """One publisher's change of the folder: it reads the catalogue and ends when it has replaced it, or not.

    is_alone: nobody else can change the folder meanwhile. Where others can, files that they are about to
    list must be spared, and only `replace_catalogue` says who came first. is_again: a transaction before this
    one met a conflict, and may have left files that it wrote.
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
        """Replace the catalogue that this transaction has read last, or write the first, in one step. Raises
        ConflictError if there is another by now.
        """

    def confirm_catalogue(self) -> None:
        """Make the catalogue that this transaction has read durable: who wrote it may have died before it
        was.

        Raises ConflictError if there is another by now.
        """

    def mark(self, name: str) -> str | None:
        """Return what tells the file of this name from another that replaces it; None where there is none."""

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Replace the file that had this mark, in one step. Raises ConflictError if there is
        another by now.
        """

    def names_in(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder; none where there is no such folder."""

    def move(self, source: str, target: str) -> None:
        """Move a file whose name is the hash of its bytes; at every moment it is at one of the two names."""

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Remove these files of a folder, and the folder itself once nothing is in it."""

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Give files and folders these modification times, as far as the storage can."""


class Storage(Readable, Protocol):
    """A published folder, on a local disk or in an object store."""

    def is_file(self, name: str) -> bool:
        """Return whether there is a file of this name."""

    def exists(self, name: str) -> bool:
        """Return whether there is anything at this name or below it."""

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, rising."""

    def change(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` in a transaction, and again in a new one after each conflict. Raises OSError where
        writing fails.
        """
