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
    """A file of a published folder has other bytes than its name says; nothing was overwritten.

    Args:
        name: Of the file, relative to the published folder.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} exists with other bytes, and a published file is never overwritten; restore it, or move "
            "it away and publish again"
        )


class Readable(Protocol):
    """Storage that can be read. Names are relative to the published folder, with "/" between their parts."""

    def read(self, name: str, largest: int) -> bytes:
        """Return the bytes of a file.

        Args:
            name: Relative to the published folder.
            largest: The most bytes that it may have.

        Returns:
            The whole content.

        Raises:
            FileNotFoundError: There is no such file.
            PublicationError: It is no plain file inside the folder, is longer than `largest`, or cannot be
                read; names the rule. In a transaction on an object store, what cannot be read is an OSError.
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
        """Make ready for writing, and clear what a crash left half-written.

        Args:
            folders: Relative to the published folder; made where they are missing, durable.
        """

    def create_new(self, name: str, data: bytes) -> bool:
        """Write a file under a name that nothing had: whole or not at all, never over another.

        Args:
            name: Relative to the published folder.
            data: The whole content.

        Returns:
            False if the name held the same bytes already, else True; either way the file is durable.

        Raises:
            PublicationError: The name holds other bytes (`OtherBytes`).
        """

    def replace_catalogue(self, data: bytes) -> None:
        """Replace the catalogue that this transaction has read last, or write the first, in one step.

        Args:
            data: The new catalogue, durable when this returns.

        Raises:
            ConflictError: There is another catalogue by now.
        """

    def confirm_catalogue(self) -> None:
        """Make the catalogue that this transaction has read durable.

        Who wrote it may have died before it was.

        Raises:
            ConflictError: There is another catalogue by now.
        """

    def mark(self, name: str) -> str | None:
        """Return what tells the file of this name from another that replaces it.

        Args:
            name: Relative to the published folder.

        Returns:
            The mark; None where there is no such file.
        """

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Replace the file that had a mark, in one step.

        Args:
            name: Relative to the published folder.
            data: The new content.
            mark: What `mark` returned; None to write a file where there was none.

        Raises:
            ConflictError: There is another file by now.
        """

    def names_in(self, folder: str) -> list[str]:
        """Return the names of what lies in a folder.

        Args:
            folder: Relative to the published folder.

        Returns:
            Names within the folder; none where there is no such folder.
        """

    def move(self, source: str, target: str) -> None:
        """Move a file whose name is the hash of its bytes; at every moment it is at one of the two names.

        Args:
            source: Its name now, relative to the published folder.
            target: Its name afterwards.
        """

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Remove files of a folder, and the folder itself once nothing is in it.

        Args:
            folder: Relative to the published folder.
            names: Within that folder; one that is gone already is no error.
        """

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Give files and folders modification times, as far as the storage can.

        Args:
            times: By names relative to the published folder, "." for itself; instants with a time zone.
        """


class Storage(Readable, Protocol):
    """A published folder, on a local disk or in an object store."""

    def is_file(self, name: str) -> bool:
        """Return whether there is a file of this name.

        Args:
            name: Relative to the published folder.

        Returns:
            False also for a folder.
        """

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all files below a folder.

        Args:
            folder: Relative to the published folder.

        Returns:
            Names relative to the published folder, rising.
        """

    def change(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` in a transaction, and again in a new one after each conflict.

        Args:
            work: Reads the catalogue, writes files, and replaces the catalogue at the end, or not.

        Returns:
            What `work` returns.

        Raises:
            OSError: The folder cannot be written, its lock is held for too long, or every transaction met a
                conflict.
            PublicationError: The store does not refuse a put whose condition fails.
            Exception: Whatever `work` raises.
        """
