"""What ledger and folders take on disk, and how much of it is new, by the files' own times."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tasks.config import Settings
from tasks.config.fields import ledger_database

NEW = timedelta(days=30)
EVERY = timedelta(hours=1)
"""A look at all files takes a moment: between two, the older one is shown."""


@dataclass(frozen=True)
class Part:
    """A folder, or the ledger. size: bytes; new: of files changed in the last 30 days, which of published
    files are the last 30 days' releases.
    """

    name: str
    size: int
    new: int


@dataclass(frozen=True)
class Growth:
    """The parts at one time, the largest first."""

    at: datetime
    parts: tuple[Part, ...]


def growth_of(settings: Settings, now: datetime, before: Growth | None = None) -> Growth:
    """Return what the stream's folders and its ledger take. Reads names, sizes and times alone.

    A part for the published folder, if it is on this machine, for the ledger, if it is a file, and for each
    folder of the trusted one. before: of an earlier look, returned again while it is younger than an hour.
    """
    if before is not None and now - before.at < EVERY:
        return before
    since, found = (now - NEW).timestamp(), []
    for name, paths in _places(settings):
        sizes = [(one.st_size, one.st_mtime) for path in paths for one in _files(path)]
        new = sum(size for size, changed in sizes if changed >= since)
        found.append(Part(name, sum(size for size, _ in sizes), new))
    return Growth(now, tuple(sorted(found, key=lambda part: -part.size)))


def _places(settings: Settings) -> Iterator[tuple[str, list[Path]]]:
    if isinstance(settings.published_folder, Path):
        yield "published folder", [settings.published_folder]
    ledger = ledger_database(settings.ledger_url)
    own = [] if ledger is None else [ledger.with_name(f"{ledger.name}{end}") for end in ("", "-wal", "-shm")]
    if own:
        yield "ledger", own
    trusted = settings.trusted_folder
    for path in sorted(trusted.iterdir()) if trusted.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            yield f"trusted folder, {path.name}", [path]


def _files(path: Path) -> Iterator[os.stat_result]:
    """Of a file, or of all files below a folder, without following links; what goes meanwhile is left out."""
    try:
        if not path.is_dir():
            yield path.lstat()
            return
        entries = list(os.scandir(path))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            try:
                yield entry.stat(follow_symlinks=False)
            except OSError:
                continue
