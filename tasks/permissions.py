"""Who else may read what only its owner should: the check that every run begins with."""

import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from optstream.errors import ConfigurationError
from tasks.settings import Settings
from tasks.settings.paths import ledger_database

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_trusted(settings: Settings) -> None:
    """Raise ConfigurationError if group or others may enter the trusted folder, or open the ledger's file.

    What is not there yet is made private by whoever makes it.
    """
    found = list(exposed(settings))
    if found:
        listed = "".join(f"\n  - {place} has mode {mode:04o}: {remedy}" for place, mode, remedy in found)
        raise ConfigurationError(
            f"what only its owner may open is open to others; nothing was read or drawn:{listed}"
        )


def exposed(settings: Settings) -> Iterator[tuple[Path, int, str]]:
    """What of the trusted zone is open to group or others: place, mode, the command that mends it."""
    folder = settings.trusted_folder
    database = ledger_database(settings.ledger_url)
    files = [settings.input_key_file]
    if database is not None:
        files += [database, *(database.with_name(database.name + end) for end in ("-wal", "-shm"))]
    for place, wanted in [(folder, 0o700), *((file, 0o600) for file in files)]:
        mode = mode_of(place)
        if mode is not None and mode & OTHERS:
            yield place, mode, f"chmod {wanted:o} {quoted(place)}"


def quoted(place: Path) -> str:
    """The path as a shell takes it."""
    return shlex.quote(str(place))


def mode_of(place: Path) -> int | None:
    """The permission bits, links followed; None if it is not there or cannot be looked at."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return None
