"""Folders and files below a folder that others may write, by descriptors: no link is ever followed.

Lemma: every call here that changes something names a single part below a descriptor of a folder that was
reached from the published folder's own descriptor by opening one part after the other without following
links (`O_NOFOLLOW`). Such a folder was, when its last part was opened, below the published folder; moving it
elsewhere afterwards needs a right to write where it goes, which who may write the published folder alone does
not have. So who swaps a folder for a link can make a call fail, and cannot make it reach a file outside.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from optstream.errors import PublicationError

# Folders by their descriptors, and names in them that are durable.

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """The descriptor of a folder, closed afterwards; links on the way to it are followed."""
    descriptor = os.open(folder, FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    with open_folder(folder) as descriptor:
        os.fsync(descriptor)


PUBLIC_FOLDER, PUBLIC_FILE = 0o755, 0o644
"""Modes in a published folder, whatever the umask: readers may read, only its owner may write."""
HIDDEN_FOLDER = 0o700
DEEPEST = 8  # so deep folders are looked into; ours are two deep. Each holds a descriptor meanwhile


@contextmanager
def opened(root: int, folder: str, mode: int | None = None) -> Iterator[int]:
    """The descriptor of a folder below `root`; mode: make missing folders, durable. Raises for a link."""
    descriptor = os.dup(root)
    try:
        for part in parts_of(folder):
            inner = _made(descriptor, part, mode) if mode is not None else _entered(descriptor, part)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a relative name. Raises PublicationError for one that leads up, or is absolute."""
    parts = PurePosixPath(name).parts
    if ".." in parts or "/" in parts:
        raise PublicationError(f"{name} leads outside the published folder")
    return parts


def split(name: str) -> tuple[str, str]:
    """Return a file's folder and its own name."""
    *folder, last = parts_of(name)
    return "/".join(folder), last


def make_root(folder: Path) -> None:
    """Create the published folder, and missing parents, with a public mode; a power cut leaves them."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    # The folder itself always: who made it may have died before its name was durable.
    for path in reversed(missing or [folder]):
        with open_folder(path.parent) as above:
            if path in missing:
                os.close(_made(above, path.name, PUBLIC_FOLDER))
            else:
                os.fsync(above)


def _entered(above: int, part: str) -> int:
    try:
        return os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except NotADirectoryError:
        refuse_link(above, part)
        raise


def _made(above: int, part: str, mode: int) -> int:
    """Enter a folder, made first where it is missing; its name is durable."""
    is_new = True
    try:
        os.mkdir(part, mode, dir_fd=above)
    except FileExistsError:
        is_new = False
    descriptor = _entered(above, part)
    try:
        if is_new:  # past the umask, and with the bits that the file system adds, such as a group's
            added = stat.S_IMODE(os.fstat(descriptor).st_mode) & ~0o777
            os.fchmod(descriptor, added | mode)
        os.fsync(above)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_link(above: int, part: str) -> None:
    """Raise PublicationError if this is a link."""
    with suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(part, dir_fd=above, follow_symlinks=False).st_mode):
            raise PublicationError(
                f"{part} is a link, which may lead outside the published folder, and is not followed; "
                "remove it, and see who made it"
            )


def kind_of(root: int, name: str) -> int | None:
    """Return what kind of file has this name (`stat.S_IFMT`); None if there is none. Raises for links."""
    folder, last = split(name)
    try:
        with opened(root, folder) as above:
            refuse_link(above, last)
            return stat.S_IFMT(os.stat(last, dir_fd=above, follow_symlinks=False).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_plain(root: int, name: str, largest: int) -> bytes:
    """Return the bytes of a file below `root`, which anyone may have written; PublicationError unless it is a
    plain file, no pipe or link, of at most `largest` bytes that can be read."""
    folder, last = split(name)
    try:
        with opened(root, folder) as above:
            refuse_link(above, last)
            descriptor = os.open(
                last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above
            )
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise PublicationError(f"{name} is not a plain file; put back what OptStream wrote")
                data = file.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(name) from error
    except IsADirectoryError as error:
        raise PublicationError(f"{name} is not a plain file; put back what OptStream wrote") from error
    except OSError as error:
        raise PublicationError(f"{name} cannot be read ({error.strerror}); check its permissions") from error
    if len(data) > largest:
        raise PublicationError(f"{name} is larger than {largest} bytes; it was not written by this OptStream")
    return data


def names_below(root: int, folder: str) -> Iterator[str]:
    """Yield the names of all below a folder, links and pipes too; of folders only those deeper than ours."""

    def barred(error: OSError) -> None:
        if isinstance(error, PermissionError):  # what vanished meanwhile is no error
            raise error

    try:
        for path, folders, files, descriptor in os.fwalk(folder, onerror=barred, dir_fd=root):
            if path.count("/") >= DEEPEST:
                yield from (f"{path}/{name}" for name in folders)
                folders.clear()
            for name in folders:
                with suppress(FileNotFoundError):
                    if not stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                        yield f"{path}/{name}"
            yield from (f"{path}/{name}" for name in files)
    except FileNotFoundError:
        return


# The publishers' lock of a local folder. Anyone who can open a file, even read-only, can hold `flock` on it:
# so the file belongs to its owner alone (0600), and only one user publishes in a folder.

LONGEST_WAIT = 120.0  # seconds. A turn writes files that are ready; a month of them takes seconds
PAUSE = 0.02
_GIVEN_UP: dict[tuple[int, int], float] = {}
"""Locks that this process failed to get, by device and inode: until when it does not wait for them again."""


@contextmanager
def publishers_lock(root: int, name: str, place: Path) -> Iterator[None]:
    """Hold the lock `name` of the folder `root`, in messages `place`; OSError after `LONGEST_WAIT`. A process
    that dies releases it."""
    until = time.monotonic() + LONGEST_WAIT
    while True:
        descriptor = _opened(root, name, place)
        try:
            _wait(descriptor, place, until)
            if _is_still(descriptor, root, name):
                yield
                return
        finally:
            os.close(descriptor)


def _opened(root: int, name: str, place: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=root)
    except PermissionError as error:
        words = f"its lock {place} is another user's: publish as that user"
        raise PermissionError(error.errno, words, str(place)) from None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        words = f"its lock {place} is a link, which is not followed: remove it, and see who made it"
        raise OSError(error.errno, words, str(place)) from None
    with suppress(PermissionError):  # an older version let readers open it
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    return descriptor


def _wait(descriptor: int, place: Path, until: float) -> None:
    found = os.fstat(descriptor)
    lock = found.st_dev, found.st_ino
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _GIVEN_UP.pop(lock, None)
            return
        except BlockingIOError:
            now = time.monotonic()
            if now >= until or now < _GIVEN_UP.get(lock, now):
                _GIVEN_UP[lock] = now + LONGEST_WAIT
                words = (
                    f"its lock {place} was held for {LONGEST_WAIT:.0f} s by another process, perhaps on "
                    "another machine: end that (`lslocks` names it)"
                )
                raise BlockingIOError(errno.EAGAIN, words, str(place)) from None
        time.sleep(PAUSE)


def _is_still(descriptor: int, root: int, name: str) -> bool:
    try:  # somebody may have removed it meanwhile
        return os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=root, follow_symlinks=False))
    except FileNotFoundError:
        return False
