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
        """Return the whole content of a file of at most `largest` bytes.

        Raises FileNotFoundError where there is none; PublicationError, which names the rule, where it is no
        plain file inside the folder, is longer, or cannot be read. In a transaction on an object store, what
        cannot be read is an OSError.
        """


class Transaction(Readable, Protocol):
    """One publisher's change of the folder: it reads the catalogue and ends when it has replaced it, or not.

    Attributes:
        is_alone: Whether nobody else can change the folder meanwhile. Where others can, files that they are
            about to list must be spared, and only `replace_catalogue` says who came first.
        is_again: Whether a transaction before this one met a conflict, and may have left files that it wrote.
    """

    is_alone: bool
    is_again: bool

    def prepare(self, *folders: str) -> None:
        """Make ready for writing: make missing folders, durable, and clear what a crash left half-written."""

    def create_new(self, name: str, data: bytes) -> bool:
        """Write a durable file, whole or not at all, never over another; False if it was there already.

        Raises OtherBytes where the name holds other bytes.
        """

    def replace_catalogue(self, data: bytes) -> None:
        """Atomically replace the catalogue that this transaction has read last, or write the first, durably.

        Raises ConflictError where there is another catalogue by now.
        """

    def confirm_catalogue(self) -> None:
        """Make the catalogue that this transaction has read durable: its writer may have died before it was.

        Raises ConflictError where there is another catalogue by now.
        """

    def mark(self, name: str) -> str | None:
        """Return what tells the file of this name from another that replaces it; None where there is none."""

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Atomically replace the file that had a mark; None to write a file where there was none.

        Raises ConflictError where there is another file by now.
        """

    def names_in(self, folder: str) -> list[str]:
        """Return the names within a folder; none where there is no such folder."""

    def move(self, source: str, target: str) -> None:
        """Move a file whose name is the hash of its bytes; at every moment it is at one of the two names."""

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Remove files of a folder, also those that are gone already, and the folder once it is empty."""

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Give files and folders ("." for itself) modification times, as far as the storage can."""


class Storage(Readable, Protocol):
    """A published folder, on a local disk or in an object store."""

    def is_file(self, name: str) -> bool:
        """Return whether there is a file, and no folder, of this name."""

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, relative to the published one, rising."""

    def change(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` in a transaction, and again in a new one after each conflict.

        Raises OSError where the folder cannot be written, its lock is held for too long, or every transaction
        met a conflict; PublicationError where the store does not refuse a put whose condition fails; whatever
        `work` raises.
        """
