"""A published folder of this machine: a lock that a dying process releases, links and renames.

Files are whole or absent, also after a crash: written aside, synced, then named. The folder must be on a file
system with hard links, as local ones are. Names are relative to descriptors (`descriptors.py`).
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from optstream.catalogue.backends.protocol import OtherBytes, Result, Transaction
from optstream.catalogue.layout import CATALOGUE, INCOMING, LOCK
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
    read_plain,
    split,
)
from optstream.storage.lock import publishers_lock


class LocalStorage:
    """`Storage` in a folder of this machine, which others may write meanwhile: every call stays inside."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __str__(self) -> str:
        return str(self._root)

    def read(self, name: str, largest: int) -> bytes:
        """Return the bytes of a plain file, no link."""
        try:
            with open_folder(self._root) as root:
                return read_plain(root, name, largest)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(name) from error
        except OSError as error:
            raise PublicationError(f"{name} cannot be read ({error.strerror}); check permissions") from error

    def is_file(self, name: str) -> bool:
        try:
            with open_folder(self._root) as root:
                return kind_of(root, name) == stat.S_IFREG
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError as error:
            raise _barred(name, error) from error

    def names_below(self, folder: str) -> list[str]:
        """Return all names, links and pipes too: they are strays."""
        try:
            with open_folder(self._root) as root:
                return sorted(names_below(root, folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError as error:
            raise _barred(folder, error) from error

    def change(self, work: Callable[[Transaction], Result]) -> Result:
        """Run `work` once, under the publishers' lock."""
        make_root(self._root)
        with open_folder(self._root) as root, publishers_lock(root, LOCK, self._root / LOCK):
            return work(LocalTransaction(root))


def _barred(name: str, error: OSError) -> PublicationError:
    """What is said where a folder does not let this account in: which, of those that lead to `name`."""
    inner = isinstance(error.filename, str) and error.filename != name
    place = f"{error.filename!r}, of {name}," if inner else name
    return PublicationError(
        f"{place} may not be entered ({error.strerror}): who reads the published folder needs rights to "
        f"list and enter every folder in it; give them back (`chmod {PUBLIC_FOLDER:o}`), or look as its owner"
    )


class LocalTransaction:
    """`Transaction` on a folder of this machine, whose lock and descriptor the caller holds."""

    is_alone = True
    is_again = False

    def __init__(self, root: int) -> None:
        self._root = root
        self._made: set[str] = set()

    def read(self, name: str, largest: int) -> bytes:
        return read_plain(self._root, name, largest)

    def prepare(self, *folders: str) -> None:
        """Make folders that survive a power cut, and that of half-written files, for its owner alone.

        What a crash left there is unlinked, never truncated: it may be the second name of a file that is
        published already.
        """
        for folder in folders:
            self._make(folder)
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
        """Write the file aside, sync it, then link it to its name."""
        self._make(split(name)[0])
        return write_new(self._root, name, data)

    def replace_catalogue(self, data: bytes) -> None:
        replace(self._root, CATALOGUE, data)

    def confirm_catalogue(self) -> None:
        os.fsync(self._root)

    def mark(self, name: str) -> str | None:
        """Return a constant for a file that is there: nobody else can replace it meanwhile."""
        return "here" if kind_of(self._root, name) == stat.S_IFREG else None

    def replace_marked(self, name: str, data: bytes, mark: str | None) -> None:
        """Replace a file in one step; the transaction is alone, so that no other can have taken its place."""
        self._make(split(name)[0])
        replace(self._root, name, data)

    def names_in(self, folder: str) -> list[str]:
        """Return all names in the folder, whatever they are."""
        try:
            with opened(self._root, folder) as descriptor:
                return sorted(os.listdir(descriptor))  # noqa: PTH208 - no path
        except (FileNotFoundError, NotADirectoryError):
            return []

    def move(self, source: str, target: str) -> None:
        """Move the file by rename: one that is at the target is the same, for its name is its hash."""
        (from_folder, old), (to_folder, new) = split(source), split(target)
        self._make(to_folder)
        with opened(self._root, from_folder) as before, opened(self._root, to_folder) as after:
            os.replace(old, new, src_dir_fd=before, dst_dir_fd=after)
            os.fsync(after)
            os.fsync(before)

    def remove(self, folder: str, names: Sequence[str]) -> None:
        """Unlink the files; the folder is removed with its last file, and the day's with its last hour."""
        try:
            with opened(self._root, folder) as descriptor:
                for name in names:
                    with suppress(FileNotFoundError):
                        _unlink(descriptor, folder, name)
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
        """Set the times of what has others: once more would show, as an inode's last change, when a run was
        over.
        """
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


def _unlink(descriptor: int, folder: str, name: str) -> None:
    try:
        os.unlink(name, dir_fd=descriptor)
    except IsADirectoryError:
        raise PublicationError(
            f"{folder}/{name} is a folder, and a file should be there: remove it, and see who made it"
        ) from None


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
