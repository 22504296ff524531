"""Files of the trusted zone: readable by their owner alone, whole or absent after a crash."""

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from optstream.catalogue.durable import sync_folder
from optstream.errors import LedgerError


def make_private_folder(folder: Path) -> None:
    """Create a folder, and missing parents, that only its owner may enter."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(path.parent)


def write_private(path: Path, data: bytes) -> None:
    """Write a file in one step: readers see the old bytes or the new ones, whole and durable."""
    make_private_folder(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    _write(aside, data, os.O_CREAT | os.O_TRUNC)
    aside.replace(path)
    sync_folder(path.parent)


class PreallocatedFile:
    """Disk space held before the first noise sample, so that a full disk cannot void a day.

    folder, stem: where, and for which release. token: unique to the owner, so that an owner that was
    thought dead and wakes up touches no file but its own.
    """

    def __init__(self, folder: Path, stem: str, token: int, size: int) -> None:
        """Hold `size` bytes, durable. Raises OSError if the disk has no room."""
        self._folder, self._stem = folder, stem
        self._aside = folder / f"{stem}.{token}.drawing"
        make_private_folder(folder)
        self._aside.unlink(missing_ok=True)
        descriptor = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(folder)

    def destroy_orphans(self) -> None:
        """Remove what owners that died have drawn. Only for the release's owner, before it draws."""
        for path in self._folder.iterdir():
            if path != self._aside and path.name.startswith((f"{self._stem}.", f"{self._stem}-")):
                path.unlink(missing_ok=True)
        sync_folder(self._folder)

    def fill(self, data: bytes) -> str:
        """Write the bytes, durable under the name that holds their hash; return their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        _write(self._aside, data, 0)
        self._aside.replace(named_by_hash(self._folder, self._stem, digest))
        sync_folder(self._folder)
        return digest

    def discard(self) -> None:
        """Give the space back, with whatever was written into it."""
        self._aside.unlink(missing_ok=True)


def named_by_hash(folder: Path, stem: str, digest: str) -> Path:
    """The file of a release's stored bytes."""
    return folder / f"{stem}-{digest[:32]}"


def read_verified(folder: Path, stem: str, digest: str | None) -> bytes:
    """The bytes, if they are the ones the ledger recorded. Raises LedgerError if gone or different."""
    path = named_by_hash(folder, stem, digest or "")
    with suppress(FileNotFoundError):
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == digest:
            return data
        raise LedgerError(f"{path.name} in {path.parent} differs from the hash in the ledger")
    raise LedgerError(f"{path.name} is gone from {path.parent}")


@contextmanager
def deferred_stop() -> Iterator[None]:
    """Hold SIGTERM and Ctrl-C back until the block ends: a polite stop cannot void a day.

    Only the main thread receives signals; elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in received:
            signal.raise_signal(number)


def _write(path: Path, data: bytes, flags: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
