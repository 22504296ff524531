"""Files of the trusted zone: readable by their owner alone, whole or absent after a crash."""

import ctypes
import hashlib
import json
import os
import re
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import optstream
from optstream.errors import LedgerError
from optstream.storage.folders import open_folder, publishers_lock, sync_folder

if TYPE_CHECKING:
    from optstream.privacy.accountant import Compose, Draw


def is_failure(error: BaseException) -> bool:
    """Whether something failed, rather than was stopped; a panic in Rust is no `Exception` to Python."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def unexpected(error: BaseException) -> str:
    """An error that nobody planned, by type and place only: its own text could hold a raw value."""
    if isinstance(error, OSError) and error.strerror:  # the system's own words and a path hold no reading
        return f"{error.strerror}: {error.filename or 'a file'}; fix it and run again"
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"unexpected {type(error).__name__}{where}; its text is withheld, for it may hold readings"


def forbid_core_dumps() -> None:
    """Keep this process's memory, raw readings and noise, out of core dumps, by limit and by prctl(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if sys.platform == "linux":
        pr_set_dumpable = 4
        ctypes.CDLL(None).prctl(pr_set_dumpable, 0, 0, 0, 0)


def make_private_folder(folder: Path) -> None:
    """Create a folder, and missing parents, that only its owner may enter; they survive a power cut."""
    missing = [*takewhile(lambda path: not path.exists(), (folder, *folder.parents))]
    found = missing[-1].parent if missing else folder
    # of what is found too: who made it may have died before its name was durable
    with suppress(PermissionError):  # who may not read the folder that it lies in did not make it
        sync_folder(found.parent)
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(path.parent)


def files_in(folder: Path) -> list[Path]:
    """The contents of a folder, by name; nothing where there is no such folder."""
    return sorted(folder.iterdir()) if folder.is_dir() else []


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that is made so is its owner's alone, whatever the umask."""
    return os.open(path, flags, 0o600)


def write_private(path: Path, data: bytes) -> None:
    """Write a file in one step: readers see the old bytes or the new ones, whole and durable."""
    make_private_folder(path.parent)
    aside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _write(aside, data, os.O_CREAT | os.O_TRUNC)
        aside.replace(path)
    except OSError:
        with suppress(OSError):  # of a full disk each run would keep what it got on it
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_new_private(path: Path, data: bytes) -> None:
    """Write a file, durable, under a name that nothing has. Raises FileExistsError."""
    _write(path, data, os.O_CREAT | os.O_EXCL)
    sync_folder(path.parent)


def append_lines(file: Path, lines: Sequence[str]) -> None:
    """Append lines in one write, durable, after the end of a line that a crash cut off."""
    if lines:
        make_private_folder(file.parent)
        with open(file, "a+b", opener=private_opener) as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 1))
            begun = log.read(1) not in (b"", b"\n")
            log.write(b"\n" * begun + "".join(f"{line}\n" for line in lines).encode())
            log.flush()
            os.fsync(log.fileno())
        sync_folder(file.parent)


@contextmanager
def exclusive_in(folder: Path) -> Iterator[None]:
    """Hold the inter-process lock of a folder; BlockingIOError after `LONGEST_WAIT` seconds."""
    make_private_folder(folder)
    with open_folder(folder) as opened, publishers_lock(opened, ".lock", folder / ".lock"):
        yield


NAMED = 32  # digits of the hash in a file's name
RAW = ".raw"
_DRAWN = re.compile(r"[0-9]+-[0-9a-f]{32}")


class DrawingFile:
    """Measurements while they are drawn; by its rising token, an owner touches no file of a later owner."""

    def __init__(self, folder: Path, token: int) -> None:
        self._folder, self._token = folder, token
        self._aside, self._raw_aside = folder / f"{token}.drawing", folder / f"{token}.drawing{RAW}"
        self._intact, self._raised = folder / f"{token}.intact", folder / f"{token}.raised"

    def preallocate(self, size: int, raw_size: int) -> None:
        """Hold disk space and the word that this owner raised, durable, before the first noise sample."""
        make_private_folder(self._folder)
        for path, length in ((self._aside, size), (self._raw_aside, raw_size), (self._intact, 0)):
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                if length:
                    os.posix_fallocate(descriptor, 0, length)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(self._folder)

    def free(self) -> None:
        """Give back what `preallocate` holds, before the first sample."""
        _remove(self._folder, self._aside, self._raw_aside, self._intact)

    def destroy_orphans(self) -> None:
        """Remove what earlier owners have drawn. Only for the release's owner, before it draws."""
        _remove(self._folder, *(path for path in self._folder.iterdir() if _token_of(path) < self._token))

    def fill(self, data: bytes, raw: bytes | None = None) -> str:
        """Write the bytes, durable under their hash, and their raw state; return their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        final = self._folder / f"{self._token}-{digest[:NAMED]}"
        if raw is None:
            self._raw_aside.unlink(missing_ok=True)
        else:
            _write(self._raw_aside, raw, 0)
            self._raw_aside.replace(_raw_path(final))
        _write(self._aside, data, 0)
        self._aside.replace(final)
        sync_folder(self._folder)
        return digest

    def discard(self) -> None:
        """Destroy what this owner drew, under whichever name; a power cut does not bring it back."""
        for path in (self._aside, self._raw_aside, *self._folder.glob(f"{self._token}-*")):
            path.unlink(missing_ok=True)
        if self._folder.is_dir():
            sync_folder(self._folder)

    def settle(self) -> None:
        """The ledger has the draw: nobody need know any more whether this owner raised."""
        self._intact.unlink(missing_ok=True)

    def mark_raised(self) -> None:
        """Leave word, durable, that this owner raised after its first sample; none if fenced off."""
        with suppress(FileNotFoundError):
            self._intact.replace(self._raised)
        sync_folder(self._folder)

    def forget_raised(self) -> None:
        """Take the word back, once the ledger has it."""
        self._raised.unlink(missing_ok=True)

    def has_raised(self) -> bool:
        """Whether some owner left that word."""
        return any(path.suffix == ".raised" for path in files_in(self._folder))


def fence_off(folder: Path) -> None:
    """Take from all owners, before a release changes hands, the means to leave word that they raised."""
    if folder.is_dir():
        _remove(folder, *folder.glob("*.intact"))


def _remove(folder: Path, *paths: Path) -> None:
    """Remove files of a folder, past any power cut."""
    for path in paths:
        path.unlink(missing_ok=True)
    sync_folder(folder)


@dataclass(frozen=True)
class WholeDraw:
    """Measurements that an owner made durable. token: that owner's. digest: SHA-256 of the data."""

    path: Path
    token: int
    digest: str
    data: bytes


def newest_token(folder: Path) -> int:
    """The highest fencing token that a file here belongs to; 0 where there is none."""
    return max(map(_token_of, files_in(folder)), default=0)


def whole_draw(folder: Path) -> WholeDraw | None:
    """What the newest owner whose measurements are whole drew: their name holds token and hash; else None."""
    named = [path for path in files_in(folder) if _DRAWN.fullmatch(path.name)]
    for path in sorted(named, key=_token_of, reverse=True):
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            if path.name == f"{_token_of(path)}-{digest[:NAMED]}":
                return WholeDraw(path, _token_of(path), digest, data)
    return None


def take_up(draw: WholeDraw, token: int) -> None:
    """Make another owner's whole draw this owner's, durable: the raw state first, then the measurements."""
    folder = draw.path.parent
    final = folder / f"{token}-{draw.digest[:NAMED]}"
    for raw in sorted(folder.glob(f"*-{draw.digest[:NAMED]}{RAW}")):
        raw.replace(_raw_path(final))
    draw.path.replace(final)
    sync_folder(folder)


def _raw_path(path: Path) -> Path:
    return path.with_name(path.name + RAW)


def destroy_raw(folder: Path) -> None:
    """Destroy all raw state of a release that will not be followed from, past any power cut."""
    if found := sorted(folder.glob(f"*{RAW}")):
        _remove(folder, *found)


def take_raw(folder: Path | None, digest: str | None) -> bytes | None:
    """The raw state that belongs to measurements of this hash, which is destroyed by taking it."""
    if folder is None or not digest:
        return None
    taken = None
    for path in sorted(folder.glob(f"*-{digest[:NAMED]}{RAW}")):
        with suppress(FileNotFoundError):  # purged a moment ago: gone is as good as never kept
            taken = path.read_bytes()
            path.unlink()
        sync_folder(folder)
    return taken


def leave_raw(folder: Path | None, digest: str | None, raw: bytes | None) -> None:
    """Keep raw state next to measurements of this hash, for a late period between them and the next."""
    if folder is None or raw is None or (token := token_in(folder, digest)) is None:
        return
    final = _raw_path(folder / f"{token}-{(digest or '')[:NAMED]}")
    aside = final.with_name(f"{token}.left{RAW}")
    _write(aside, raw, os.O_CREAT | os.O_TRUNC)
    aside.replace(final)
    sync_folder(folder)


def _token_of(path: Path) -> int:
    """Whose file it is; a file that is nobody's counts as everybody's."""
    token = re.match(r"\d+", path.name)
    return int(token.group()) if token else 0


def token_in(folder: Path, digest: str | None) -> int | None:
    """The fencing token under which the measurements of this hash were drawn; None if they are gone."""
    named = sorted(folder.glob(f"*-{digest[:NAMED]}")) if digest else []
    return _token_of(named[-1]) if named else None


def read_verified(folder: Path, digest: str | None) -> bytes:
    """The bytes of a folder's file that the ledger recorded. Raises LedgerError if gone or different."""
    known = digest or ""
    candidates = sorted(folder.glob(f"*{known[:NAMED]}")) if known else []
    for path in candidates:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == known:
            return data
    problem = "differs from its hash in the ledger" if candidates else "is gone"
    raise LedgerError(f"what was stored in {folder} {problem}")


@contextmanager
def deferred_stop() -> Iterator[Sequence[int]]:
    """Hold SIGTERM and Ctrl-C back in the main thread until the block ends; yield those that came."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def remember(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for came in received:
            signal.raise_signal(came)


def _write(path: Path, data: bytes, flags: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())


# Figures that take seconds to compute and are the same each night: kept in a file of the trusted zone.

MOST_KEPT = 16  # in a file, the newest last


def kept(file: Path, facts: Sequence[object], make: Callable[[], Any]) -> Any:
    """Return the kept result of these programs for these public facts, or make and keep it."""
    programs = (optstream.__version__, version("dp-accounting"))
    key = hashlib.sha256(json.dumps([facts, programs]).encode()).hexdigest()
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError, TypeError):
        known = {**json.loads(file.read_bytes())}
    if key not in known:
        known[key] = make()
        with suppress(OSError):
            write_private(file, json.dumps(dict(list(known.items())[-MOST_KEPT:])).encode())
    return known[key]


def kept_composition(file: Path) -> "Compose":
    """Return `composed`, which looks into this file first."""
    from optstream.privacy.accountant import composed  # with numpy: 13 MB of a process that lasts

    def compose(
        draws: "frozenset[tuple[Draw, int]]", pure: frozenset[tuple[Fraction, int]], delta: float
    ) -> float:
        facts = (
            sorted([shift, str(scale), count] for (shift, scale), count in draws),
            sorted([str(epsilon), count] for epsilon, count in pure),
            delta,
        )
        return float(kept(file, facts, lambda: composed(draws, pure, delta)))

    return compose
