"""The publishers' lock of a local folder; readers can neither open nor hold it.

Anyone who can open a file, even read-only, can hold `flock` on it. So the file belongs to its owner alone
(0600), and only one user publishes in a folder. A command gives a lock up after `LONGEST_WAIT`.
"""

import errno
import fcntl
import os
import pwd
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_WAIT = 120.0
"""Seconds. A turn writes files that are ready; a month of them takes seconds."""
LOCKS = Path("/proc/locks")
PAUSE = 0.02
_GIVEN_UP: dict[tuple[int, int], float] = {}
"""Locks that this process failed to get, by device and inode: until when it does not wait for them again."""


@contextmanager
def publishers_lock(root: int, name: str, place: Path) -> Iterator[None]:
    """Hold the lock of this name in the folder, waiting for it; a process that dies releases it.

    root: the folder's descriptor. place: the lock as errors call it. Raises BlockingIOError, whose strerror
    says who holds it, where that can be found, after `LONGEST_WAIT` seconds; OSError if it cannot be opened.
    """
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
                who = _holder(descriptor)
                words = f"its lock {place} was held for {LONGEST_WAIT:.0f} s by {who}: end that"
                raise BlockingIOError(errno.EAGAIN, words, str(place)) from None
        time.sleep(PAUSE)


def _is_still(descriptor: int, root: int, name: str) -> bool:
    """Return whether this is the lock that others would open: somebody may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, dir_fd=root, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    """Return in words the process that holds a lock on the open file."""
    found = os.fstat(descriptor)
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with suppress(OSError, ValueError, IndexError):
        for line in LOCKS.read_text().splitlines():
            # "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF"; who waits has "->" before FLOCK
            parts = line.split()
            if parts[1] == "FLOCK" and parts[5] == wanted and int(parts[4]) > 0:
                return f"process {int(parts[4])}{_owner(int(parts[4]))}"
    return "another process, perhaps on another machine"


def _owner(process: int) -> str:
    try:
        user = Path(f"/proc/{process}").stat().st_uid
    except OSError:
        return ""
    try:
        return f" of user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f" of user {user}"
