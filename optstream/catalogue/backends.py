"""How a published folder, local or in a store, is read and changed: readers find every file that the
catalogue lists, whole, also after a crash (docs/data/object-stores.md).
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from optstream.catalogue.layout import CATALOGUE, INCOMING, LOCK, largest
from optstream.errors import PublicationError
from optstream.storage.folders import (
    HIDDEN_FOLDER,
    PUBLIC_FILE,
    PUBLIC_FOLDER,
    kind_of,
    make_root,
    names_below,
    open_folder,
    opened,
    publishers_lock,
    read_plain,
    split,
)
from optstream.storage.store import Location, Store, StoreUrl, locate, open_store

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


# A folder of this machine: a lock that a dying process releases, links and renames. Files are written aside,
# synced, then named, so they are whole or absent after a crash; the file system must have hard links.
#
# Names of files and folders are relative to the published folder, with "/" between their parts.


class LocalStorage:
    """A published folder of this machine, which others may write meanwhile: every call stays inside."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __str__(self) -> str:
        return str(self._root)

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises PublicationError unless it is plain, readable and not too large."""
        with self._entered(name) as root:
            return read_plain(root, name, largest(name))

    def is_file(self, name: str) -> bool:
        """Return whether there is a file, and no folder, of this name."""
        with suppress(FileNotFoundError), self._entered(name) as root:
            return kind_of(root, name) == stat.S_IFREG
        return False

    def names_below(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, rising; of links and pipes too, which are strays."""
        with suppress(FileNotFoundError), self._entered(folder) as root:
            return sorted(names_below(root, folder))
        return []

    @contextmanager
    def _entered(self, name: str) -> Iterator[int]:
        """The folder's descriptor. Raises PublicationError where a folder on the way to `name` is barred."""
        try:
            with open_folder(self._root) as root:
                yield root
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(name) from error
        except OSError as error:
            inner = isinstance(error.filename, str) and error.filename != name
            place = f"{error.filename!r}, of {name}," if inner else name
            raise PublicationError(
                f"{place} may not be entered ({error.strerror}): who reads the published folder needs rights "
                f"to list and enter every folder in it; give them back (`chmod {PUBLIC_FOLDER:o}`), or look "
                "as its owner"
            ) from error

    def change(self, work: Callable[["Transaction"], Result]) -> Result:
        """Run `work` once in a transaction, under the publishers' lock."""
        make_root(self._root)
        with open_folder(self._root) as root, publishers_lock(root, LOCK, self._root / LOCK):
            return work(LocalTransaction(root))


class LocalTransaction:
    """One publisher's change of a folder of this machine, whose lock and descriptor the caller holds."""

    is_alone = True  # whether no other can be about to list a file
    is_again = False  # whether it met a conflict before, and may have left files that it wrote

    def __init__(self, root: int) -> None:
        self._root = root
        self._made: set[str] = set()

    def read(self, name: str) -> bytes:
        return read_plain(self._root, name, largest(name))

    def prepare(self) -> None:
        """Unlink a crash's leftovers, which may name published files."""
        with opened(self._root, INCOMING, HIDDEN_FOLDER) as incoming:
            if stat.S_IMODE(os.fstat(incoming).st_mode) != HIDDEN_FOLDER:
                with suppress(PermissionError):  # of an older version, or of another owner
                    os.fchmod(incoming, HIDDEN_FOLDER)
            for name in os.listdir(incoming):  # noqa: PTH208 - no path
                with suppress(IsADirectoryError):  # nobody of ours made it, and it is in nobody's way
                    os.unlink(name, dir_fd=incoming)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            with opened(self._root, folder, PUBLIC_FOLDER):
                self._made.add(folder)

    def create_new(self, name: str, data: bytes) -> bool:
        """Write a durable file whole; False if it was there. Raises OtherBytes, never overwrites."""
        self._make(split(name)[0])
        return write_new(self._root, name, data)

    def replace_catalogue(self, data: bytes) -> None:
        """Durably and atomically replace the catalogue that was read last, or write the first."""
        replace(self._root, CATALOGUE, data)

    def confirm_catalogue(self) -> None:
        """Make the catalogue that was read durable: its writer may have died before it was."""
        os.fsync(self._root)

    def mark(self, name: str) -> str | None:
        """Return a mark that differs between a file and its replacement; None without a file."""
        return "here" if kind_of(self._root, name) == stat.S_IFREG else None

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Atomically replace the file that had a mark; None to write a file where there was none."""
        self._make(split(name)[0])
        replace(self._root, name, data)

    def names_in(self, folder: str) -> list[str]:
        """Return the names within a folder; none where there is no such folder."""
        try:
            with opened(self._root, folder) as descriptor:
                return sorted(os.listdir(descriptor))  # noqa: PTH208 - no path
        except (FileNotFoundError, NotADirectoryError):
            return []

    def move(self, source: str, target: str) -> None:
        """Move a file whose name is the hash of its bytes; at every moment it is at one of the two names."""
        (from_folder, old), (to_folder, new) = split(source), split(target)
        self._make(to_folder)
        with opened(self._root, from_folder) as before, opened(self._root, to_folder) as after:
            os.replace(old, new, src_dir_fd=before, dst_dir_fd=after)
            os.fsync(after)
            os.fsync(before)

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Remove files that are there, the folder with its last file, and the day's with its last hour."""
        try:
            with opened(self._root, folder) as descriptor:
                for name in names:
                    try:
                        os.unlink(name, dir_fd=descriptor)
                    except FileNotFoundError:
                        continue
                    except IsADirectoryError:
                        raise PublicationError(
                            f"{folder}/{name} is a folder, and a file should be there: remove it, and see "
                            "who made it"
                        ) from None
                os.fsync(descriptor)
            for name in (folder, split(folder)[0]) if folder.count("/") > 1 else filter(None, (folder,)):
                above, last = split(name)
                with opened(self._root, above) as descriptor, suppress(OSError):
                    # what else is in it is nobody's: `check_files` names it
                    os.rmdir(last, dir_fd=descriptor)
                    os.fsync(descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Set modification times that differ: a second change would show when a run was over."""
        for name, time in times.items():
            folder, last = ("", ".") if name == "." else split(name)
            # a withdrawn day has no files
            with (
                suppress(PermissionError, FileNotFoundError, NotADirectoryError),
                opened(self._root, folder) as above,
            ):
                if os.stat(last, dir_fd=above, follow_symlinks=False).st_mtime != time.timestamp():
                    both = (time.timestamp(), time.timestamp())
                    os.utime(last, both, dir_fd=above, follow_symlinks=False)


def write_new(root: int, name: str, data: bytes) -> bool:
    """Write a file under a name that nothing had; False if it was the same. Raises OtherBytes."""
    folder, last = split(name)
    with opened(root, folder) as target, opened(root, INCOMING) as incoming:
        if _holds(target, last, data):
            os.fsync(target)  # who wrote it may have died before its name was durable
            return False
        _write_aside(incoming, last, data)
        try:
            os.link(last, last, src_dir_fd=incoming, dst_dir_fd=target, follow_symlinks=False)
        except FileExistsError:
            _holds(target, last, data)
            return False
        finally:
            os.unlink(last, dir_fd=incoming)
        os.fsync(target)
    return True


def replace(root: int, name: str, data: bytes) -> None:
    """Put new bytes at a name in one step: a reader opens the old file or the new one, whole."""
    folder, last = split(name)
    with opened(root, folder) as target, opened(root, INCOMING) as incoming:
        _write_aside(incoming, last, data)
        os.replace(last, last, src_dir_fd=incoming, dst_dir_fd=target)
        os.fsync(target)


def _write_aside(incoming: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, PUBLIC_FILE, dir_fd=incoming)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, PUBLIC_FILE)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _holds(folder: int, name: str, data: bytes) -> bool:
    """Return whether there is a file of this name. Raises PublicationError if it has other bytes."""
    try:
        found = read_plain(folder, name, max(len(data), 1))
    except FileNotFoundError:
        return False
    except PublicationError:
        found = None
    if found != data:
        raise OtherBytes(name)
    return True


# An object store: no lock, no rename. A transaction reads the catalogue and its tag, puts files under
# names that nothing had, and replaces the catalogue on the condition that it still has that tag, else it
# raises ConflictError and begins again. No two catalogues of a folder have the same bytes, for what they
# list of a day only moves forward: so a tag, which goes by the bytes, never comes back.

PROBE = ".conditional-puts"
PROBE_TEXT = b"OptStream puts this again before it publishes, to see that the store refuses a second one.\n"
WRONG_TAG = f'"{"0" * 32}"'
MOST_TRANSACTIONS = 100
"""Each conflict means that another publisher succeeded; after so many the caller gets an error."""
MOST_TRIES = 10


class ObjectStorage:
    """A published folder in an object store, read and changed as `LocalStorage`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __str__(self) -> str:
        return str(self._store.url)

    def read(self, name: str) -> bytes:
        """Return the bytes of an object."""
        with self._reading():
            stored = self._store.get(name, largest(name))
        return bounded(stored.data, name)

    def is_file(self, name: str) -> bool:
        with self._reading():
            return self._store.is_object(name)

    def names_below(self, folder: str) -> list[str]:
        with self._reading():
            return self._store.names_below(folder)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise PublicationError(
                f"the published folder {self._store.url} cannot be read ({error.strerror})"
            ) from None

    def change(self, work: Callable[["Transaction"], Result]) -> Result:
        """Run `work` until it meets no conflict. Raises PublicationError for a store without conditions."""
        check_conditions(self._store)
        for number in range(MOST_TRANSACTIONS):
            try:
                return work(ObjectTransaction(self._store, is_again=number > 0))
            except ConflictError:
                learn_how_tags_are_named(self._store)
        raise OSError(errno.EBUSY, "others replaced it every time")


class ObjectTransaction:
    """`LocalTransaction` on an object store. Failed reads and writes raise OSError."""

    is_alone = False

    def __init__(self, store: Store, *, is_again: bool) -> None:
        self._store, self.is_again = store, is_again
        self._tag: str | None = None

    def read(self, name: str) -> bytes:
        """Return the bytes of an object; of the catalogue, the tag is kept for `replace_catalogue`."""
        if name == CATALOGUE:
            self._tag = None
        stored = self._store.get(name, largest(name))
        if name == CATALOGUE:
            self._tag = stored.tag
        return bounded(stored.data, name)

    def prepare(self) -> None:
        """Do nothing: a store has no half-written files."""

    def create_new(self, name: str, data: bytes) -> bool:
        """Put the object on the condition that there is none."""
        for _ in range(MOST_TRIES):
            if self._store.put_new(name, data):
                return True
            try:
                found = self._store.get(name, len(data)).data
            except FileNotFoundError:
                continue
            if found != data:
                raise OtherBytes(name)
            return False
        raise OSError(errno.EBUSY, f"{name} comes and goes")

    def replace_catalogue(self, data: bytes) -> None:
        self.replace_marked(CATALOGUE, data, self._tag)

    def confirm_catalogue(self) -> None:
        """Check that no other catalogue has come; writes that a store confirmed are durable."""
        if self.mark(CATALOGUE) != self._tag:
            raise ConflictError

    def mark(self, name: str) -> str | None:
        try:
            return self._store.get(name).tag
        except FileNotFoundError:
            return None

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Put the object on the condition that its mark is still this one."""
        done = self._store.put_new(name, data) if mark is None else self._store.put_instead(name, data, mark)
        if not done:
            raise ConflictError

    def names_in(self, folder: str) -> list[str]:
        """Return the objects below the folder whose names have no further "/"."""
        below = (name.removeprefix(f"{folder}/") for name in self._store.names_below(folder))
        return [name for name in below if "/" not in name]

    def move(self, source: str, target: str) -> None:
        """Copy the object, then remove the source; where the target has other bytes, both are left."""
        # another publisher may have moved it, or a withdrawal removed it
        with suppress(FileNotFoundError):
            data = self._store.get(source).data
            if self._store.put_new(target, data) or self._store.get(target).data == data:
                self._store.delete(source)

    def remove(self, folder: str, names: Sequence[str]) -> None:
        for name in names:
            self._store.delete(f"{folder}/{name}".lstrip("/"))

    def settle(self, times: Mapping[str, datetime]) -> None:
        """Do nothing: a store has its own times, which nobody can set (docs/data/object-stores.md)."""


Storage = LocalStorage | ObjectStorage
Transaction = LocalTransaction | ObjectTransaction
Readable = Storage | Transaction


def read_if_any(storage: Readable, name: str, check: Callable[[bytes], object] | None = None) -> bytes | None:
    """Return the bytes of a file, None without one; `check` sees them before they are parsed."""
    try:
        data = storage.read(name)
    except FileNotFoundError:
        return None
    if check is not None:
        check(data)
    return data


def bounded(data: bytes, name: str) -> bytes:
    """Return the bytes. Raises PublicationError if there are too many."""
    if len(data) > (most := largest(name)):
        raise PublicationError(f"{name} is larger than {most} bytes; it was not written by this OptStream")
    return data


def check_conditions(store: Store) -> None:
    """Raise PublicationError unless the store refuses puts whose condition does not hold."""
    is_new = store.put_new(PROBE, PROBE_TEXT)
    if (is_new and store.put_new(PROBE, PROBE_TEXT)) or store.put_instead(PROBE, PROBE_TEXT, WRONG_TAG):
        raise PublicationError(
            f"the store of {store.url} does not refuse a put whose condition fails (If-None-Match, "
            "If-Match): two runs could lose each other's days, and nothing was published; use a store that "
            "does, as AWS S3, or a newer version of this one, or publish to a local folder and copy that"
        )


def learn_how_tags_are_named(store: Store) -> None:
    """Find out after a conflict whether the store heeds its tags only without quotes, as Ceph 16 does."""

    def heeds() -> bool:
        return not store.put_instead(PROBE, PROBE_TEXT, WRONG_TAG) and store.put_instead(
            PROBE, PROBE_TEXT, store.get(PROBE).tag
        )

    with suppress(FileNotFoundError):  # somebody removed the probe: nothing is learned
        if not heeds():
            store.bare_tags = True
            store.bare_tags = heeds()


def open_storage(folder: Location | str | Storage) -> Storage:
    """Return the storage of a path or of a URL, or storage as it is; nothing is made yet."""
    if not isinstance(folder, Path | StoreUrl | str):
        return folder
    location = locate(folder)
    if isinstance(location, Path):
        return LocalStorage(location)
    return ObjectStorage(open_store(location))


def change_folder(
    folder: Location | str | Storage, work: Callable[[Transaction], Result], what: str, remedy: str
) -> Result:
    """Change a published folder as `Storage.change`; an OSError becomes a PublicationError."""
    try:
        return open_storage(folder).change(work)
    except OSError as error:
        raise PublicationError(f"{what} cannot be written ({error.strerror}); {remedy}") from error
