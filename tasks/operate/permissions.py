"""Who else may read what only its owner should, or write what readers trust: what every run begins with."""

import grp
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from optstream.catalogue.signing import read_public_keys
from optstream.errors import ConfigurationError, ParameterError
from tasks.config import Settings
from tasks.config.fields import ledger_database
from tasks.operate.keys import read_key

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_trusted(settings: Settings) -> None:
    """Raise ConfigurationError if others may enter the trusted folders or ledger, or a key is unusable."""
    for words, found in (
        ("what only its owner may open is open to others", list(exposed(settings))),
        ("what readers trust may be written by everybody", list(writable(settings, stat.S_IWOTH))),
    ):
        if found:
            listed = "".join(f"\n  - {place} has mode {mode:04o}: {remedy}" for place, mode, remedy in found)
            raise ConfigurationError(f"{words}; nothing was read or drawn:{listed}")
    key = settings.signing_key_file
    if key is not None:
        try:
            read_key(key)
            if settings.public_key_files:
                read_public_keys(settings.public_key_files)
        except (ConfigurationError, ParameterError) as error:
            raise ConfigurationError(f"nothing was read or drawn: {error}") from None


def exposed(settings: Settings) -> Iterator[tuple[Path, int, str]]:
    """Return what of the trusted zone is open to group or others: place, mode, the command that mends it."""
    second = [place for place in settings.witness_places[1:] if isinstance(place, Path)]
    folders = [(place, 0o700) for place in (settings.trusted_folder, *second)]
    database = ledger_database(settings.ledger_url)
    files = [settings.input_key_file]
    if settings.signing_key_file is not None:
        files.append(settings.signing_key_file)
    if database is not None:
        files += [database, *(database.with_name(database.name + end) for end in ("-wal", "-shm"))]
    for place, wanted in [*folders, *((file, 0o600) for file in files)]:
        mode = mode_of(place)
        if mode is not None and mode & OTHERS:
            yield place, mode, f"chmod {wanted:o} {quoted(place)}"


def writable(settings: Settings, who: int) -> Iterator[tuple[Path, int, str]]:
    """Return paths of the published folder that others (`who`: S_IWOTH or S_IWGRP) may write and replace."""
    root = settings.published_folder
    if not isinstance(root, Path):
        return
    inner = ("", "data", "manifests", "superseded", "signatures", "catalogue.json", ".incoming", ".lock")
    above = [one for one in root.parents if one.is_relative_to(settings.folder)] or [root.parent]
    letter = "o" if who == stat.S_IWOTH else "g"
    for place in [*(root / name for name in inner), *above]:
        mode = mode_of(place)
        if mode is None or not mode & who or (place in above and mode & stat.S_ISVTX):
            continue
        if who == stat.S_IWOTH or not _is_private_group(place):
            yield place, mode, f"chmod {letter}-w {quoted(place)}"


def _is_private_group(place: Path) -> bool:
    """Whether the group of a file is its owner's alone, as many systems give every user one."""
    facts = place.stat()
    try:
        owner, group = pwd.getpwuid(facts.st_uid), grp.getgrgid(facts.st_gid)
    except KeyError:
        return False
    return owner.pw_gid == group.gr_gid and set(group.gr_mem) <= {owner.pw_name}


def quoted(place: Path) -> str:
    return shlex.quote(str(place))


def mode_of(place: Path) -> int | None:
    """The permission bits, links followed; None if it is not there or cannot be looked at."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except OSError:
        return None
