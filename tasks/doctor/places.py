"""Folders, files and stores: who may open them, what lies in what, what file systems and stores can do."""

import fcntl
import os
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from optstream.catalogue.backends import StoreUrl
from optstream.catalogue.backends.object_store import check_conditions
from optstream.errors import PublicationError
from optstream.storage.open import open_store
from tasks.config import Settings
from tasks.config.paths import ledger_database, lies_within
from tasks.doctor.finding import Finding, note, warning, wrong
from tasks.operations.permissions import exposed, mode_of, quoted, writable

MOUNTS = Path("/proc/self/mountinfo")
LONGEST_WALK = 100_000
"""Entries of the input folder that are looked at."""


def places(settings: Settings) -> Iterator[Finding]:
    """Findings about the zones and the files in them."""
    for place, mode, remedy in exposed(settings):
        yield wrong(place, f"only its owner may open it; its mode is {mode:04o}", remedy)
    yield from _nested(settings)
    yield from _public(settings)
    yield from _raw(settings)
    yield from _configuration(settings)
    yield from _abilities(settings)
    yield from _stores(settings)


def _nested(settings: Settings) -> Iterator[Finding]:
    """The reverse, private inside public, no configuration loads with."""
    public = settings.published_folder
    for name, folder in (("trusted", settings.trusted_folder), ("input", settings.input_folder)):
        if lies_within(public, folder):
            yield wrong(
                public,
                f"published.folder lies in {name}.folder: readers would have to be let into the {name} one",
                "move it beside, set published.folder, and keep its files",
            )
    if lies_within(settings.trusted_folder, settings.input_folder):
        yield warning(
            settings.trusted_folder,
            "trusted.folder lies in input.folder, into which suppliers write",
            "move it beside, and set trusted.folder",
        )


def _public(settings: Settings) -> Iterator[Finding]:
    for place, mode, remedy in writable(settings, stat.S_IWOTH):
        rule = f"anybody may write here, and replace what is published; its mode is {mode:04o}"
        yield wrong(place, rule, remedy)
    for place, mode, remedy in writable(settings, stat.S_IWGRP):
        rule = f"its group may write here, and replace what is published; its mode is {mode:04o}"
        yield warning(place, rule, f"{remedy}, unless all its members are meant to")


def _raw(settings: Settings) -> Iterator[Finding]:
    folder = settings.input_folder
    if not isinstance(folder, Path):
        return
    readable = _readable_by_all(folder)
    if readable is not None:
        yield warning(
            readable,
            "raw readings that everybody on this machine may read",
            f"chmod -R o-rwx {quoted(folder)}",
        )


def _readable_by_all(folder: Path) -> Path | None:
    """The first file below that others may open, if they may come so far."""
    with suppress(OSError):
        folder = folder.resolve(strict=True)
    if not all((mode_of(parent) or 0) & stat.S_IXOTH for parent in (folder, *folder.parents)):
        return None
    waiting, looked_at = [folder], 0
    while waiting and looked_at < LONGEST_WALK:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                looked_at += 1
                mode = mode_of(Path(entry.path)) or 0
                if entry.is_dir() and mode & stat.S_IXOTH:
                    waiting.append(Path(entry.path))
                elif entry.is_file() and mode & stat.S_IROTH and entry.name.endswith(".parquet"):
                    return Path(entry.path)
    return None


def _configuration(settings: Settings) -> Iterator[Finding]:
    mode = mode_of(settings.file) or 0
    if mode & (stat.S_IRGRP | stat.S_IROTH) and _holds_password(settings.file):
        yield wrong(
            settings.file,
            "it holds the password of the ledger's database, and others may read it",
            f"chmod 600 {quoted(settings.file)}, or put the URL into OPTSTREAM_LEDGER_URL",
        )
    if mode & stat.S_IWOTH:
        yield wrong(
            settings.file, "anybody may change the configuration", f"chmod o-w {quoted(settings.file)}"
        )


def _holds_password(file: Path) -> bool:
    """Whether the file's own ledger.url has one: the settings show the environment's, where that is set."""
    try:
        url = tomllib.loads(file.read_text("utf-8"))["ledger"]["url"]
        return make_url(url).password is not None
    except (OSError, ValueError, KeyError, TypeError, ArgumentError):
        return False


def _abilities(settings: Settings) -> Iterator[Finding]:
    """Publishing needs hard links and locks, drawing needs space held beforehand, SQLite its own host."""
    database = ledger_database(settings.ledger_url)
    folders = {settings.trusted_folder, settings.published_folder, *([database.parent] if database else [])}
    for folder in sorted(folder for folder in folders if isinstance(folder, Path) and folder.is_dir()):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield warning(folder, "this user may not write here", "run the doctor as who runs the stream")
            continue
        lacking = _lacking(folder)
        if lacking:
            yield wrong(
                folder,
                f"its file system has no {' and no '.join(lacking)}, which keep a crash from tearing files",
                "move it to a local file system",
            )
    system = _network_file_system(database.parent) if database else None
    if system:
        yield wrong(
            database,
            f"an SQLite ledger on {system} can be torn",
            "move it to a local disk, or use PostgreSQL",
        )


def _lacking(folder: Path) -> list[str]:
    """What a file of this folder cannot do; the probe is gone afterwards, the folder's time is as before."""
    lacking, before = [], folder.stat()
    with NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
        second = Path(f"{probe.name}-link")
        probes: tuple[tuple[str, Callable[[], object]], ...] = (
            ("hard links", lambda: os.link(probe.name, second)),
            ("locks (flock)", lambda: fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)),
            ("space held beforehand (fallocate)", lambda: os.posix_fallocate(probe.fileno(), 0, 4096)),
        )
        for name, try_it in probes:
            try:
                try_it()
            except OSError:
                lacking.append(name)
        with suppress(OSError):
            second.unlink()
    with suppress(OSError):  # of another owner; a published folder shows no time of a run
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    return lacking


def _network_file_system(folder: Path) -> str | None:
    """The kind of the mount that holds the folder, if it is one over a network. Linux only."""
    try:
        mounts = MOUNTS.read_text().splitlines()
    except OSError:
        return None
    holding = {}
    for line in mounts:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        if folder.resolve().is_relative_to(point):
            holding[point] = after.split()[0]
    kind = holding[max(holding, key=len)] if holding else ""
    return kind if kind.startswith(("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "glusterfs")) else None


def _stores(settings: Settings) -> Iterator[Finding]:
    """Findings about places that are URLs; the store itself says who may read what, and is not asked."""
    if isinstance(settings.input_folder, StoreUrl):
        yield from _input_store(settings.input_folder)
    if isinstance(settings.published_folder, StoreUrl):
        yield from _published_store(settings, settings.published_folder)


def _input_store(url: StoreUrl) -> Iterator[Finding]:
    try:
        open_store(url).list_folder()
    except OSError as error:
        yield warning(
            url, f"the input folder cannot be listed: {error.strerror}", "mend that; every day waits"
        )


def _published_store(settings: Settings, url: StoreUrl) -> Iterator[Finding]:
    try:
        check_conditions(open_store(url))
    except PublicationError as error:
        yield wrong(url, str(error), "name another place in published.folder")
    except OSError as error:
        yield warning(
            url,
            f"this user may not write here: {error.strerror}",
            "run the doctor as who runs the stream, and see the rights of its credentials",
        )
    if settings.published.not_before is None:
        yield note(
            url,
            "an object store tells its readers when each object was put, which follows from how long the "
            "night took",
            'set published.not_before, such as "06:00", so that a clock decides when',
        )
