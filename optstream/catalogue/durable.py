"""Files that are whole or absent, also after a crash: write aside, fsync, then name.

The folder must be on a file system with hard links and `flock`, as local ones are.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optstream.errors import PublicationError


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Hold the inter-process lock on this file, waiting for it; a process that dies lets go of it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that they survive a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    # The folder itself always: who made it may have died before its name was durable.
    for path in reversed(missing or [folder]):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def clear(incoming: Path) -> None:
    """Remove what a crash left half-written; the lock is held by the caller.

    Unlinked, never truncated: it may be the second name of a file that is published already.
    """
    for path in incoming.iterdir():
        path.unlink()


def write_new(path: Path, data: bytes, incoming: Path) -> bool:
    """Write a file under a name that nothing had; the lock is held by the caller.

    Returns False if the path held the same bytes already. Raises PublicationError if it holds others.
    """
    if path.exists():
        _refuse_other_bytes(path, data)
        sync_folder(path.parent)  # who wrote it may have died before its name was durable
        return False
    aside = _write_aside(data, incoming / path.name)
    try:
        os.link(aside, path)
    except FileExistsError:
        _refuse_other_bytes(path, data)
        return False
    finally:
        aside.unlink()
    sync_folder(path.parent)
    return True


def replace(path: Path, data: bytes, incoming: Path) -> None:
    """Put new bytes at a path in one step: a reader opens the old file or the new one, whole."""
    _write_aside(data, incoming / path.name).replace(path)
    sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """Move a file whose name is the hash of its bytes, so that a file at the target is the same one."""
    source.replace(target)
    sync_folder(target.parent)
    sync_folder(source.parent)


def _write_aside(data: bytes, aside: Path) -> Path:
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return aside


def _refuse_other_bytes(path: Path, data: bytes) -> None:
    if path.read_bytes() != data:
        raise PublicationError(
            f"{path.name} exists in {path.parent.name} with other bytes, and a published file is never "
            "overwritten; restore it, or move it away and publish again"
        )
