"""Files of a published folder that are whole or absent, also after a crash: write aside, fsync, then name.

The folder must be on a file system with hard links, as local ones are. Names are relative to descriptors
(`descriptors.py`); the publishers' lock is held by the caller.
"""

import os
from contextlib import suppress

from optstream.catalogue.backends.protocol import OtherBytes
from optstream.catalogue.layout import INCOMING
from optstream.errors import PublicationError
from optstream.storage.descriptors import (
    HIDDEN_FOLDER,
    PUBLIC_FILE,
    opened,
    read_plain,
    split,
)


def clear_incoming(root: int) -> None:
    """Make the folder of half-written files, for its owner alone, and remove what a crash left there.

    Unlinked, never truncated: it may be the second name of a file that is published already.
    """
    with opened(root, INCOMING, HIDDEN_FOLDER) as incoming:
        with suppress(PermissionError):  # of an older version, or of another owner
            os.fchmod(incoming, HIDDEN_FOLDER)
        for name in os.listdir(incoming):  # noqa: PTH208 - no path
            with suppress(IsADirectoryError):  # nobody of ours made it, and it is in nobody's way
                os.unlink(name, dir_fd=incoming)


def write_new(root: int, name: str, data: bytes) -> bool:
    """Write a file under a name that nothing had, in a folder that is there.

    Returns False if the name had the same bytes already. Raises PublicationError if it had others.
    """
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


def move(root: int, source: str, target: str) -> None:
    """Move a file whose name is the hash of its bytes, so that a file at the target is the same one.

    The target's folder is there.
    """
    (from_folder, old), (to_folder, new) = split(source), split(target)
    with opened(root, from_folder) as before, opened(root, to_folder) as after:
        os.replace(old, new, src_dir_fd=before, dst_dir_fd=after)
        os.fsync(after)
        os.fsync(before)


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
