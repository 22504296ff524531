"""Checks of security and configuration: `optstream doctor`."""

import fcntl
import json
import os
import stat
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.backends import Location, StoreUrl
from optstream.catalogue.backends.object_store import check_conditions
from optstream.errors import (
    ConfigurationError,
    DumpError,
    LedgerError,
    NoiseError,
    OptStreamError,
    PublicationError,
)
from optstream.ledger import Ledger, ReleaseState
from optstream.ledger.records import LONGEST_LEASE
from optstream.noise import NoiseSource, secure_noise
from optstream.storage.store import open_store
from optstream.stream import Measured, period_from
from tasks.config import Layout, Settings
from tasks.config.fields import ledger_database, lies_within
from tasks.ingest.arrivals import (
    MOST_FILES,
    LateDumpError,
    dated_folders,
    days_with_dumps,
    discover,
    entries_of,
)
from tasks.ingest.clock import clock_ahead
from tasks.ingest.sandbox import clock_before_ingest
from tasks.ledger.open import find_ledger
from tasks.operate.permissions import OTHERS, exposed, mode_of, quoted, writable
from tasks.operate.purge import release_folders
from tasks.release.draw import make_ready
from tasks.release.lineage import told_releases
from tasks.release.witness import behind
from tasks.trusted.files import read_verified

# What the doctor says: a place, the rule that it breaks, the remedy.


class Severity(StrEnum):
    """How bad: a secret is open or a release in danger; it may be; it is only worth knowing."""

    WRONG = "wrong"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """What the doctor found. place: a path, a key or a variable. No text holds a secret or a reading."""

    severity: Severity
    place: str
    rule: str
    remedy: str

    @property
    def is_bad(self) -> bool:
        """Whether somebody should act."""
        return self.severity is not Severity.NOTE


def wrong(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.WRONG, str(place), rule, remedy)


def warning(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, str(place), rule, remedy)


def note(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.NOTE, str(place), rule, remedy)


# Folders, files and stores: who may open them, what lies in what, what file systems and stores can do.

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


# Ledger, published folder and dumps beside each other: clock, seeded noise, markers.

CLOCK_SLACK = timedelta(minutes=5)
MOST_LOOKED_AT = 100_000
"""Files of the trusted folder."""
NEWEST_DAYS = 31
"""Whose dumps are looked at as a run does."""


def record(settings: Settings, now: datetime) -> Iterator[Finding]:
    """Findings about what was recorded, published and delivered."""
    yield from _markers(settings)
    yield from _files_ahead(settings)
    try:
        catalogue = find_catalogue(settings.published_folder)
    except OptStreamError as error:
        yield wrong(settings.published_folder, str(error), "restore the catalogue from a copy")
        return
    try:
        ledger = find_ledger(settings)
    except LedgerError as error:
        yield wrong("ledger.url", str(error), "see that the database is there and answers")
        return
    yield from _clock_ahead(settings, ledger)
    if ledger is None:
        yield from _without_ledger(catalogue, ledger_database(settings.ledger_url))
        yield from _refused(settings, now, set())
        return
    with closing(ledger):
        yield from _clock(settings, ledger, now)
        yield from _leases(settings, ledger, now)
        yield from _heads(settings, ledger, catalogue)
        yield from _restored(settings, ledger)
        yield from _seeded(settings, ledger)
        known = {period_from(one.period) for one in ledger.outlines(settings.stream.name)}
        yield from _refused(settings, now, known)


def _without_ledger(catalogue: Catalogue | None, database: object) -> Iterator[Finding]:
    if catalogue is None:
        yield note(database, "there is no ledger yet", "the first run makes it")
    else:
        yield wrong(
            database,
            "days are published and the ledger is gone: what was spent would be forgotten",
            "restore it from a backup before the next run, or correct ledger.url",
        )


def _clock_ahead(settings: Settings, ledger: Ledger | None) -> Iterator[Finding]:
    """What the calendar of two years will refuse: after the newest release, or from the first dump on."""
    newest = ledger.last_release(settings.stream.name) if ledger else None
    if ledger and newest:
        ahead = clock_ahead(settings, ledger, period_from(newest.period))
    else:
        day = min(days_with_dumps(settings), default=None)
        ahead = clock_before_ingest(settings, day) if day else None
    if ahead is not None:
        rule, _, remedy = ahead.rpartition(": ")
        yield warning("stream.day", rule, remedy)


def _clock(settings: Settings, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    last = ledger.last_event_at(settings.stream.name)
    if last is not None and last > now + CLOCK_SLACK:
        yield wrong(
            "the clock of this machine",
            f"the ledger's newest event is of {last:%Y-%m-%d %H:%M} UTC, which lies ahead: leases and held "
            "days go by the clock",
            "set it (NTP); if it was ahead before, wait for the leases to end",
        )


def _leases(settings: Settings, ledger: Ledger, now: datetime) -> Iterator[Finding]:
    """Leases that end later than any lease can, and days that nobody has taken up for longer than that."""
    clock, stream = ledger.lease_time(now), settings.stream.name
    for one in ledger.outlines(stream):
        record = ledger.find(stream, one.period, one.revision) if one.state.is_under_way else None
        if record is None:
            continue
        place, until = f"{one.period} revision {one.revision}", f"{record.lease_until:%Y-%m-%d %H:%M} UTC"
        if record.lease_until > clock + LONGEST_LEASE:
            yield wrong(
                place,
                f"{record.owner} holds it until {until}, and no lease lasts over a day: its clock ran ahead",
                f"if that run is gone, `optstream ledger release-lease {one.period} --why …` frees it",
            )
        elif record.lease_until < clock - LONGEST_LEASE:
            yield warning(
                place,
                f"it is {one.state.value.lower()}, and the lease of its last run ended {until}",
                f"`optstream run --date {one.period}` finishes it",
            )


def _files_ahead(settings: Settings) -> Iterator[Finding]:
    """Files of the trusted folder from the future, by this machine's clock: what goes by age keeps them."""
    latest, found = time.time() + CLOCK_SLACK.total_seconds(), list[Path]()
    for path in islice(settings.trusted_folder.rglob("*"), MOST_LOOKED_AT):
        with suppress(OSError):
            if path.lstat().st_mtime > latest:
                found.append(path)
    if found:
        first = min(found)
        yield warning(
            first,
            f"it was written {datetime.fromtimestamp(first.lstat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC, which "
            "lies ahead" + (f"; so were {len(found) - 1} more" if len(found) > 1 else ""),
            f"set the clock (NTP); if it was ahead before, `touch {quoted(first)}`",
        )


def _heads(settings: Settings, ledger: Ledger, catalogue: Catalogue | None) -> Iterator[Finding]:
    if catalogue is not None and ledger.missing_heads([catalogue.ledger_head]):
        yield wrong(
            settings.published_folder,
            "its catalogue was written with another ledger than the configured one, or a newer copy",
            "bring that ledger back; no day will be released before",
        )


def _restored(settings: Settings, ledger: Ledger) -> Iterator[Finding]:
    """What witnesses, trusted folder and lineage know and the ledger does not."""
    for said in behind(settings, ledger):
        yield wrong("ledger.url", said, "no day will be released before (docs/recover.md)")
    # files first: whoever wrote them had told the ledger before
    folders = {
        key: folder
        for parent in (settings.staging_folder, settings.measurements_folder)
        for key, folder in release_folders(parent / settings.stream.name)
    }
    told = dict.fromkeys(told_releases(settings), settings.lineage_folder) | folders
    known = {(one.period, one.revision) for one in ledger.outlines(settings.stream.name)}
    unknown = sorted(set(told) - known)
    if unknown:
        (period, revision), others = unknown[0], len(unknown) - 1
        yield wrong(
            told[unknown[0]],
            f"it knows a release of {period} revision {revision}"
            + (f", and there are {others} more," if others else "")
            + " that the ledger does not: the ledger is an older copy, or another one",
            "bring the newest ledger back; no such day will be released before (docs/recover.md)",
        )


def _seeded(settings: Settings, ledger: Ledger) -> Iterator[Finding]:
    """Simulated noise costs the privacy budget like any other, and the publisher refuses it."""
    for release in ledger.releases(settings.stream.name):
        if release.state is not ReleaseState.DRAWN:
            continue
        day = period_from(release.period)
        folder = settings.measurements_of(day, release.revision)
        with suppress(OptStreamError, OSError):
            if Measured.from_bytes(read_verified(folder, release.measurements_hash)).simulated:
                yield wrong(
                    folder,
                    f"{day} was drawn with seeded noise, which protects nobody: it is charged, and will "
                    "never be published",
                    "find who runs this stream with simulated_noise, and stop that",
                )


def _markers(settings: Settings) -> Iterator[Finding]:
    """Find markers that the supplier never sets: those days would wait without end."""
    delivered: dict[Layout, bool] = {}
    for day, folder in dated_folders(settings):
        layout = settings.input_of(day)
        names = set() if delivered.get(layout) else _names(folder)
        if any(name.endswith(".parquet") for name in names):
            delivered[layout] = layout.announcement in names
    for layout in (layout for layout, is_announced in delivered.items() if not is_announced):
        since = "" if layout.valid_from is None else f" of {layout.valid_from} and later"
        yield warning(
            settings.input_folder,
            f"dumps{since} are there, and none has {layout.announcement}: every such day will wait",
            "have the supplier write it last, or correct "
            + layout.key("marker" if layout.file_list is None else "file_list"),
        )


def _refused(settings: Settings, now: datetime, known: set[date]) -> Iterator[Finding]:
    """What the next run will refuse of the newest days that none has taken, as it looks for their dumps."""
    there = days_with_dumps(settings)
    after = settings.calendar.after(max(there)) if there else settings.calendar.period_at(now)
    refused: dict[str, list[date]] = {}
    for day, found in discover(settings, [*sorted(there - known)[-NEWEST_DAYS:], after]).items():
        if isinstance(found, DumpError) and not isinstance(found, LateDumpError):
            refused.setdefault(str(found).removeprefix(f"{day}: "), []).append(day)
    for message, days in refused.items():
        more = f" and {len(days) - 1} more" if len(days) > 1 else ""
        yield warning(
            settings.input_folder,
            f"the next run refuses {days[0]}{more}: {message}",
            "nothing is charged for it; once it is mended, the next run takes it",
        )


def _names(folder: Location) -> set[str]:
    """Of what lies in a folder; none where it cannot be listed, which is told of elsewhere."""
    try:
        return set(entries_of(folder, MOST_FILES))
    except OSError:
        return set()


# The environment: telemetry, the Prefect server, variables that reach into a run.

# as Prefect and pydantic take them
TRUE, FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off", ""}
DEFAULT_PORT = 4200
SECONDS = 3
LISTENING = "0A"

Ask = Callable[[str], Mapping[str, Any] | None]
"""A server's settings, asked without credentials at its API's address; None if it does not tell."""


def surroundings(settings: Settings, environment: Mapping[str, str], ask: Ask) -> Iterator[Finding]:
    """Findings about variables and the server that they name."""
    yield from _telemetry(environment)
    yield from _home(environment)
    yield from _own_server(environment)
    if environment.get("PREFECT_API_URL"):
        yield from _named_server(environment, environment["PREFECT_API_URL"].rstrip("/"), ask)
    yield from _ledger(settings, environment)


def _telemetry(environment: Mapping[str, str]) -> Iterator[Finding]:
    rule = "telemetry is asked for; OptStream turns it off in its own runs, a server of yours would send it"
    for name in ("PREFECT_SERVER_ANALYTICS_ENABLED", "GX_ANALYTICS_ENABLED"):
        if environment.get(name, "").lower() in TRUE:
            yield wrong(name, rule, f"set {name}=false")
    if "DO_NOT_TRACK" in environment and environment["DO_NOT_TRACK"].lower() in FALSE:
        yield wrong("DO_NOT_TRACK", rule, "set DO_NOT_TRACK=1")
    if environment.get("PREFECT_RESULTS_PERSIST_BY_DEFAULT", "").lower() in TRUE:
        yield warning(
            "PREFECT_RESULTS_PERSIST_BY_DEFAULT",
            "results would be written to disk; OptStream's never are, those of other flows may be",
            "set PREFECT_RESULTS_PERSIST_BY_DEFAULT=false",
        )


def _home(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Prefect's own folder, where the operator chose it; else it is in the trusted one."""
    home = Path(environment.get("PREFECT_HOME", ""))
    mode = mode_of(home) if "PREFECT_HOME" in environment else None
    if mode is not None and mode & OTHERS:
        yield wrong(
            home,
            f"Prefect keeps flow parameters, logs and errors here, and its mode is {mode:04o}",
            f"chmod 700 {quoted(home)}",
        )


def _own_server(environment: Mapping[str, str]) -> Iterator[Finding]:
    """What `prefect server start` would do in this environment."""
    host = environment.get("PREFECT_SERVER_API_HOST", "")
    if host and not is_loopback(host) and not environment.get("PREFECT_SERVER_API_AUTH_STRING"):
        yield wrong(
            "PREFECT_SERVER_API_HOST",
            f"a server on {host} is open to the network without a password: flow parameters, logs and errors",
            "set it to 127.0.0.1, or set PREFECT_SERVER_API_AUTH_STRING as well",
        )


def _named_server(environment: Mapping[str, str], url: str, ask: Ask) -> Iterator[Finding]:
    host, near = urlsplit(url).hostname or "", is_loopback(urlsplit(url).hostname or "")
    if host.rstrip(".").endswith("prefect.cloud"):
        yield wrong(
            "PREFECT_API_URL",
            "flow parameters, logs and error messages would leave your own machines",
            "name a server of your own, or none",
        )
        return
    if not near and urlsplit(url).scheme != "https":
        yield wrong("PREFECT_API_URL", f"what is said to {host} goes over the network in clear", "use https")
    told = ask(url)
    if told is None:
        return
    wide = not near or listens_beyond_loopback(urlsplit(url).port or DEFAULT_PORT)
    if wide:
        yield wrong(
            "PREFECT_API_URL",
            "the server answers anybody on the network: flow parameters, logs, errors; and it takes orders",
            "start it with --host 127.0.0.1, or with PREFECT_SERVER_API_AUTH_STRING (and "
            "PREFECT_API_AUTH_STRING here)",
        )
    else:
        yield note(
            "PREFECT_API_URL",
            "every user of this machine may ask the server: it has no password",
            "set PREFECT_SERVER_API_AUTH_STRING for it, and PREFECT_API_AUTH_STRING here",
        )
    if dict(told.get("server") or {}).get("analytics_enabled"):
        yield wrong(
            "PREFECT_API_URL",
            "the server sends telemetry",
            "start it with PREFECT_SERVER_ANALYTICS_ENABLED=false",
        )


def _ledger(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    if environment.get("OPTSTREAM_LEDGER_URL"):
        yield note(
            "OPTSTREAM_LEDGER_URL",
            "it replaces [ledger] url of the configuration: who runs without it meets another ledger",
            "set it wherever the stream is run, or nowhere",
        )
    url = settings.ledger_url
    over_network = url.get_backend_name() == "postgresql" and not is_loopback(url.host or "localhost")
    if over_network and url.query.get("sslmode") not in ("require", "verify-ca", "verify-full"):
        yield warning(
            "ledger.url",
            "the database is on another machine, and its connection need not be encrypted",
            "add ?sslmode=verify-full to the URL",
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server there; a name other than localhost may be anything."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")


def listens_beyond_loopback(port: int, tables: Path = Path("/proc/net")) -> bool:
    """Whether something here listens on this port at an address of the network. False where Linux is not."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (tables / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, state = line.split()[1], line.split()[3]
            address, number = local.split(":")
            if state == LISTENING and int(number, 16) == port and not _is_loopback_entry(address):
                return True
    return False


def _is_loopback_entry(address: str) -> bool:
    """Of the kernel's table: words of four bytes, each in the machine's order (little-endian)."""
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    found = ip_address(b"".join(words))
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def ask_server(url: str) -> Mapping[str, Any] | None:
    """Ask for the settings, past the proxy for loopback, without credentials."""
    opener = build_opener(ProxyHandler({})) if is_loopback(urlsplit(url).hostname or "") else build_opener()
    try:
        with opener.open(f"{url}/admin/settings", timeout=SECONDS) as answer:
            told = json.load(answer)
    except HTTPError as error:
        # 404: an open server that tells of no settings; 401 and 403: a closed one
        return {} if error.code not in (401, 403) else None
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) else {}


# All examinations in a row. Each looks and changes nothing, but for a probe file that it removes again.
#
# In an object store it puts the probe that publishing puts there as well, and that stays.

ORDER = list(Severity)


def examine(
    settings: Settings, environment: Mapping[str, str], now: datetime, ask: Ask = ask_server
) -> list[Finding]:
    """Return what is wrong around a stream, the worst first. A ledger that is there is opened, as `status`
    does; none is made.

    environment: the operator's variables, before OptStream set its own. ask: how a Prefect server is asked
    for its settings.
    """
    found = [
        *places(settings),
        *surroundings(settings, environment, ask),
        *record(settings, now),
        *noise(secure_noise()),
    ]
    return sorted(found, key=lambda finding: ORDER.index(finding.severity))


def noise(source: NoiseSource) -> Iterator[Finding]:
    """A finding if the source gives no noise here; a sample is drawn and thrown away."""
    try:
        make_ready(source)
    except NoiseError as error:
        yield wrong(
            "the library of the noise", str(error), "mend the installation; no day can be drawn before"
        )


def unusable(place: object, error: ConfigurationError) -> list[Finding]:
    """Return the finding for a configuration file that does not load: its zones may be nested, too."""
    return [wrong(place, str(error), "correct the configuration, then ask the doctor again")]


__all__ = ["Finding", "Severity", "examine", "unusable"]
