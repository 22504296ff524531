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
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import psutil
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from optstream.catalogue import find_catalogue
from optstream.catalogue.backends import check_conditions
from optstream.errors import DumpError, NoiseError, OptStreamError, PublicationError
from optstream.ledger import Ledger, ReleaseState
from optstream.ledger.records import LONGEST_LEASE
from optstream.noise import NoiseSource, secure_noise
from optstream.storage.store import StoreUrl, open_store
from optstream.stream import Measured, day_of, period_from
from tasks.config import Settings
from tasks.config.fields import ledger_database, lies_within
from tasks.config.schema import CONSTRAINTS, layout_key
from tasks.ingest import arrivals
from tasks.ingest.clock import clock_ahead
from tasks.ingest.sandbox import clock_before_ingest
from tasks.ledger import find_ledger
from tasks.operate.permissions import OTHERS, exposed, mode_of, quoted, writable
from tasks.operate.purge import release_folders
from tasks.release.draw import make_ready
from tasks.release.lineage import released_by_lineage
from tasks.release.mechanism import clashes
from tasks.release.outcomes import Printed, listed
from tasks.release.witness import behind
from tasks.trusted.files import read_verified


class Severity(StrEnum):
    """How bad: a secret is open or a release in danger; it may be; it is only worth knowing."""

    WRONG = "wrong"
    WARNING = "warning"
    NOTE = "note"


WRONG, WARNING, NOTE = Severity


@dataclass(frozen=True)
class Finding:
    """A problem. place: a path, a key or a variable. No text holds a secret or a reading."""

    severity: Severity
    place: str
    rule: str
    remedy: str


class DoctorDocument(Printed):
    """Problems, and their remedies."""

    format: Literal["optstream.doctor/1"] = "optstream.doctor/1"
    sound: bool
    findings: tuple[Finding, ...]


Lines = Iterator[tuple[Severity, object, str, str]]  # the fields of findings


@dataclass(frozen=True)
class Case:
    """The subject of the checks. environment: the operator's variables, before OptStream set its own."""

    settings: Settings
    environment: Mapping[str, str]
    now: datetime


# Folders, files and stores.

NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "ceph", "glusterfs")
MOST_LOOKED_AT = 100_000  # entries of the input folder, and of the trusted one


def exposed_files(case: Case) -> Lines:
    for place, mode, remedy in exposed(case.settings):
        yield WRONG, place, f"only its owner may open it; its mode is {mode:04o}", remedy


def nested_folders(case: Case) -> Lines:
    """The reverse, private inside public, no configuration loads with."""
    settings, public = case.settings, case.settings.published_folder
    for name, folder in (("trusted", settings.trusted_folder), ("input", settings.input_folder)):
        if lies_within(public, folder):
            rule = f"published.folder lies in {name}.folder: readers would have to be let into the {name} one"
            yield WRONG, public, rule, "move it out, set published.folder, and keep its files"
    if lies_within(settings.trusted_folder, settings.input_folder):
        rule = "trusted.folder lies in input.folder, into which suppliers write"
        yield WARNING, settings.trusted_folder, rule, "move it out, and set trusted.folder"


def writable_public(case: Case) -> Lines:
    unless = ", unless all its members are meant to"
    for bit, who, severity, more in (
        (stat.S_IWOTH, "anybody", WRONG, ""),
        (stat.S_IWGRP, "its group", WARNING, unless),
    ):
        for place, mode, remedy in writable(case.settings, bit):
            rule = f"{who} may write here, and replace releases; its mode is {mode:04o}"
            yield severity, place, rule, remedy + more


def readable_dumps(case: Case) -> Lines:
    """The first dump that every user may open."""
    folder, n_seen = case.settings.input_folder, 0
    if not isinstance(folder, Path):
        return
    real = Path(os.path.realpath(folder))
    if not all((mode_of(one) or 0) & stat.S_IXOTH for one in (real, *real.parents)):
        return
    for parent, inner, files in os.walk(real, followlinks=True):
        for dump in (Path(parent, name) for name in files if name.endswith(".parquet")):
            if (mode_of(dump) or 0) & stat.S_IROTH and dump.is_file():
                rule = "raw readings that everybody on this machine may read"
                yield WARNING, dump, rule, f"chmod -R o-rwx {quoted(folder)}"
                return
        n_seen += len(inner) + len(files)
        if n_seen > MOST_LOOKED_AT:
            return
        inner[:] = [name for name in inner if (mode_of(Path(parent, name)) or 0) & stat.S_IXOTH]


def configuration_file(case: Case) -> Lines:
    file, mode = case.settings.file, mode_of(case.settings.file) or 0
    with suppress(OSError, ValueError, KeyError, TypeError, ArgumentError):
        # the file's own URL: the settings show the environment's, where that is set
        own = make_url(tomllib.loads(file.read_text("utf-8"))["ledger"]["url"])
        if mode & (stat.S_IRGRP | stat.S_IROTH) and own.password is not None:
            rule = "it holds the password of the ledger's database, and others may read it"
            yield WRONG, file, rule, f"chmod 600 {quoted(file)}, or put the URL into OPTSTREAM_LEDGER_URL"
    if mode & stat.S_IWOTH:
        yield WRONG, file, "anybody may change the configuration", f"chmod o-w {quoted(file)}"


def file_systems(case: Case) -> Lines:
    """Publishing needs hard links and locks, drawing needs space held beforehand, SQLite its own host."""
    settings, database = case.settings, ledger_database(case.settings.ledger_url)
    folders = {settings.trusted_folder, settings.published_folder, *([database.parent] if database else [])}
    for folder in sorted(folder for folder in folders if isinstance(folder, Path) and folder.is_dir()):
        if not os.access(folder, os.W_OK | os.X_OK):
            yield WARNING, folder, "this user may not write here", "run the doctor as who runs the stream"
        elif lacking := _lacking(folder):
            rule = f"its file system has no {' and no '.join(lacking)}, which keep a crash from tearing files"
            yield WRONG, folder, rule, "move it to a local file system"
    if database and (system := _network_file_system(database.parent)):
        rule = f"an SQLite ledger on {system} can be torn"
        yield WRONG, database, rule, "move it to a local disk, or use PostgreSQL"


def _lacking(folder: Path) -> list[str]:
    """What a file of this folder cannot do; the probe is gone afterwards, the folder's time is as before."""
    lacking, before = [], folder.stat()
    with NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
        second = Path(f"{probe.name}-link")
        probes: dict[str, Callable[[], object]] = {
            "hard links": lambda: os.link(probe.name, second),
            "locks (flock)": lambda: fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB),
            "space held beforehand (fallocate)": lambda: os.posix_fallocate(probe.fileno(), 0, 4096),
        }
        for name, try_it in probes.items():
            try:
                try_it()
            except OSError:
                lacking.append(name)
        second.unlink(missing_ok=True)
    with suppress(OSError):  # of another owner; a published folder shows no time of a run
        os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    return lacking


def _network_file_system(folder: Path) -> str | None:
    """The kind of the mount that holds the folder, if it is one over a network."""
    holding = {"": ""}
    with suppress(OSError):
        mounts = {one.mountpoint: str(one.fstype) for one in psutil.disk_partitions(all=True)}
        holding |= {point: kind for point, kind in mounts.items() if folder.resolve().is_relative_to(point)}
    kind = holding[max(holding, key=len)]
    return kind if kind.startswith(NETWORK) else None


def stores(case: Case) -> Lines:
    """Places that are URLs; the rights of a store are its own affair."""
    inputs, published = case.settings.input_folder, case.settings.published_folder
    if isinstance(inputs, StoreUrl):
        try:
            open_store(inputs).list_folder()
        except OSError as error:
            rule = f"the input folder cannot be listed: {error.strerror}"
            yield WARNING, inputs, rule, "correct that; every day waits"
    if not isinstance(published, StoreUrl):
        return
    try:
        check_conditions(open_store(published))
    except PublicationError as error:
        yield WRONG, published, str(error), "name another place in published.folder"
    except OSError as error:
        rule = f"this user may not write here: {error.strerror}"
        remedy = "run the doctor as who runs the stream, and see the rights of its credentials"
        yield WARNING, published, rule, remedy
    if case.settings.published.not_before is None:
        rule = "an object store shows when each object was put, which follows from how long the night took"
        remedy = 'set published.not_before, such as "06:00", so that a clock decides when'
        yield NOTE, published, rule, remedy


# Ledger, published folder and dumps.

CLOCK_SLACK = timedelta(minutes=5)
NEWEST_DAYS = 31  # whose dumps are looked at as a run does


def record(case: Case) -> Lines:
    """Checks that need the ledger: of records, publications and deliveries."""
    settings, stream = case.settings, case.settings.stream.name
    place: object = settings.published_folder
    remedy = "restore the catalogue from a copy"
    try:
        catalogue = find_catalogue(settings.published_folder)
        place, remedy = "ledger.url", "see that the database is there and answers"
        ledger = find_ledger(settings)
    except OptStreamError as error:
        yield WRONG, place, str(error), remedy
        return
    yield from _calendar(settings, ledger)
    if ledger is None:
        database = ledger_database(settings.ledger_url)
        if catalogue is None:
            yield NOTE, database, "there is no ledger yet", "the first run makes it"
        else:
            rule = "days are published and the ledger is gone: the spent budget would be forgotten"
            yield WRONG, database, rule, "restore it from a backup before the next run, or correct ledger.url"
        yield from _refused(case, set())
        return
    with closing(ledger):
        known = {(one.period, one.revision) for one in ledger.outlines(stream)}
        last = ledger.last_event_at(stream)
        if last is not None and last > case.now + CLOCK_SLACK:
            rule = f"the ledger's newest event is of {_minute(last)}, which lies ahead: leases go by it"
            remedy = "set it (NTP); if it was ahead before, wait for the leases to end"
            yield WRONG, "the clock of this machine", rule, remedy
        yield from _leases(case, ledger)
        if catalogue is not None and ledger.missing_heads([catalogue.ledger_head]):
            rule = "its catalogue was written with another ledger than the configured one, or a newer copy"
            remedy = "bring that ledger back; no day will be released before"
            yield WRONG, settings.published_folder, rule, remedy
        yield from _restored(settings, ledger, known)
        yield from _seeded(settings, ledger)
        yield from _refused(case, {period_from(period) for period, _ in known})


def _calendar(settings: Settings, ledger: Ledger | None) -> Lines:
    """What the calendar of two years will refuse: after the newest release, or from the first dump on."""
    newest, ahead = ledger.last_release(settings.stream.name) if ledger else None, None
    if ledger and newest:
        ahead = clock_ahead(settings, ledger, period_from(newest.period))
    elif days := arrivals.days_with_dumps(settings):
        ahead = clock_before_ingest(settings, min(days))
    if ahead is not None:
        rule, _, remedy = ahead.rpartition(": ")
        yield WARNING, "stream.day", rule, remedy


def _leases(case: Case, ledger: Ledger) -> Lines:
    """Leases that end later than any lease can, and days that no run has processed for longer than that."""
    clock, stream = ledger.lease_time(case.now), case.settings.stream.name
    for one in ledger.outlines(stream):
        if not one.state.is_under_way:
            continue
        place, until = f"{one.period} revision {one.revision}", _minute(one.lease_until)
        if one.lease_until > clock + LONGEST_LEASE:
            rule = f"{one.owner} holds it until {until}, over a day from now: its clock ran ahead"
            remedy = f"if that run is gone, `optstream ledger release-lease {one.period} --why …` frees it"
            yield WRONG, place, rule, remedy
        elif one.lease_until < clock - LONGEST_LEASE:
            rule = f"it is {one.state.value.lower()}, and the lease of its last run ended {until}"
            yield WARNING, place, rule, f"`optstream run --date {one.period}` finishes it"


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def files_from_the_future(case: Case) -> Lines:
    """Files of the trusted folder from the future, by this machine's clock: what goes by age keeps them."""
    latest, found = time.time() + CLOCK_SLACK.total_seconds(), dict[Path, float]()
    for path in islice(case.settings.trusted_folder.rglob("*"), MOST_LOOKED_AT):
        with suppress(OSError):
            if (written := path.lstat().st_mtime) > latest:
                found[path] = written
    if found:
        first = min(found)
        more = f"; so were {len(found) - 1} more" if len(found) > 1 else ""
        rule = f"it was written {_minute(datetime.fromtimestamp(found[first], UTC))}, which lies ahead{more}"
        yield WARNING, first, rule, f"set the clock (NTP); if it was ahead before, `touch {quoted(first)}`"


def _restored(settings: Settings, ledger: Ledger, known: set[tuple[str, int]]) -> Lines:
    """What witnesses, trusted folder and lineage know and the ledger does not."""
    for problem in behind(settings, ledger):
        yield WRONG, "ledger.url", problem, "no day will be released before (docs/recover.md)"
    places = dict.fromkeys(released_by_lineage(settings), settings.lineage_folder)
    for parent in (settings.staging_folder, settings.measurements_folder):
        places |= dict(release_folders(parent / settings.stream.name))
    unknown = sorted(places.keys() - known)
    if unknown:
        (period, revision), others = unknown[0], len(unknown) - 1
        more = f", and there are {others} more," if others else ""
        rule = (
            f"it knows a release of {period} revision {revision}{more} that the ledger does not: the ledger "
            "is an older copy, or another one"
        )
        remedy = "bring the newest ledger back; no such day will be released before (docs/recover.md)"
        yield WRONG, places[unknown[0]], rule, remedy


def _seeded(settings: Settings, ledger: Ledger) -> Lines:
    """Simulated noise costs the privacy budget like any other, and the publisher refuses it."""
    for release in ledger.releases(settings.stream.name):
        day = period_from(release.period)
        folder = settings.measurements_of(day, release.revision)
        with suppress(OptStreamError, OSError):
            if release.state is not ReleaseState.DRAWN:
                continue
            if Measured.from_bytes(read_verified(folder, release.measurements_hash)).simulated:
                rule = f"{day} has seeded noise, which protects nobody: it is charged, and never published"
                yield WRONG, folder, rule, "find who runs this stream with simulated_noise, and stop that"


def markers(case: Case) -> Lines:
    """Markers that the supplier never sets: those days would wait without end."""
    layouts, delivered = case.settings.input.layouts, dict[date, bool]()
    for day, list_names in arrivals.deliveries(case.settings):
        names, layout = set[str](), case.settings.input_of(day)
        first = max(begins for begins, _ in layouts if begins <= day_of(day))
        if not delivered.get(first):
            with suppress(OSError):  # another check names it
                names = set(list_names())
        if any(name[0] not in "._" for name in names - {layout.announcement}):
            delivered[first] = not layout.announcement or layout.announcement in names
    for first, layout in layouts:
        if delivered.get(first, True):
            continue
        since = "" if first == date.min else f" of {first} and later"
        rule = f"dumps{since} are there, and none has {layout.announcement}: every such day will wait"
        key = layout_key("marker" if layout.file_list is None else "file_list", first)
        yield WARNING, case.settings.input_folder, rule, f"have the supplier write it last, or correct {key}"


def _refused(case: Case, known: set[date]) -> Lines:
    """What the next run will refuse of the newest unreleased days, as it looks for their dumps."""
    settings = case.settings
    there = arrivals.days_with_dumps(settings)
    after = settings.calendar.after(max(there)) if there else settings.calendar.period_at(case.now)
    refused: dict[str, list[date]] = {}
    newest = [*sorted(there - known)[-NEWEST_DAYS:], after]
    for day, found in arrivals.discover(settings, newest).items():
        if isinstance(found, DumpError) and not isinstance(found, arrivals.LateDumpError):
            refused.setdefault(str(found).removeprefix(f"{day}: "), []).append(day)
    for message, days in refused.items():
        rule = f"the next run refuses {listed(days, 1)}: {message}"
        remedy = "nothing is charged for it; once it is corrected, the next run takes it"
        yield WARNING, settings.input_folder, rule, remedy


# The environment: telemetry, the Prefect server, variables that reach into a run.

# as Prefect and pydantic take them
TRUE, FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off", ""}
DEFAULT_PORT = 4200
SECONDS = 3


def telemetry(case: Case) -> Lines:
    sent = "telemetry is on; OptStream turns it off in its own runs, a server of yours would send it"
    written = "results would be written to disk; OptStream's never are, those of other flows may be"
    for name, bad, severity, rule, good in (
        ("PREFECT_SERVER_ANALYTICS_ENABLED", TRUE, WRONG, sent, "false"),
        ("GX_ANALYTICS_ENABLED", TRUE, WRONG, sent, "false"),
        ("DO_NOT_TRACK", FALSE, WRONG, sent, "1"),
        ("PREFECT_RESULTS_PERSIST_BY_DEFAULT", TRUE, WARNING, written, "false"),
    ):
        if case.environment.get(name, "-").lower() in bad:
            yield severity, name, rule, f"set {name}={good}"


def prefect_home(case: Case) -> Lines:
    """Prefect's own folder, where the operator chose it; else it is in the trusted one."""
    home = Path(case.environment.get("PREFECT_HOME", ""))
    mode = mode_of(home) if "PREFECT_HOME" in case.environment else None
    if mode is not None and mode & OTHERS:
        rule = f"Prefect keeps flow parameters, logs and errors here, and its mode is {mode:04o}"
        yield WRONG, home, rule, f"chmod 700 {quoted(home)}"


def own_server(case: Case) -> Lines:
    """What `prefect server start` would do in this environment."""
    name = "PREFECT_SERVER_API_HOST"
    host = case.environment.get(name, "")
    if host and not is_loopback(host) and not case.environment.get("PREFECT_SERVER_API_AUTH_STRING"):
        rule = f"a server on {host} shows flow parameters, logs and errors to the network, without a password"
        yield WRONG, name, rule, "set it to 127.0.0.1, or set PREFECT_SERVER_API_AUTH_STRING as well"


def named_server(case: Case) -> Lines:
    name = "PREFECT_API_URL"
    url = urlsplit(case.environment.get(name, "").rstrip("/"))
    host, near = url.hostname or "", is_loopback(url.hostname or "")
    if not url.geturl():
        return
    if host.rstrip(".").endswith("prefect.cloud"):
        rule = "flow parameters, logs and error messages would leave your own machines"
        yield WRONG, name, rule, "name a server of your own, or none"
        return
    if not near and url.scheme != "https":
        yield WRONG, name, f"messages to {host} go over the network in clear", "use https"
    answer = ask_server(url.geturl())
    if answer is None:
        return
    if not near or listens_beyond_loopback(url.port or DEFAULT_PORT):
        rule = "the server answers anybody on the network: flow parameters, logs, errors; and it takes orders"
        remedy = (
            "start it with --host 127.0.0.1, or with PREFECT_SERVER_API_AUTH_STRING (and "
            "PREFECT_API_AUTH_STRING here)"
        )
        yield WRONG, name, rule, remedy
    else:
        rule = "every user of this machine may ask the server: it has no password"
        remedy = "set PREFECT_SERVER_API_AUTH_STRING for it, and PREFECT_API_AUTH_STRING here"
        yield NOTE, name, rule, remedy
    if dict(answer.get("server") or {}).get("analytics_enabled"):
        remedy = "start it with PREFECT_SERVER_ANALYTICS_ENABLED=false"
        yield WRONG, name, "the server sends telemetry", remedy


def ledger_url(case: Case) -> Lines:
    if case.environment.get("OPTSTREAM_LEDGER_URL"):
        rule = "it replaces [ledger] url of the configuration: who runs without it meets another ledger"
        yield NOTE, "OPTSTREAM_LEDGER_URL", rule, "set it wherever the stream is run, or nowhere"
    url = case.settings.ledger_url
    over_network = url.get_backend_name() == "postgresql" and not is_loopback(url.host or "localhost")
    if over_network and url.query.get("sslmode") not in ("require", "verify-ca", "verify-full"):
        rule = "the database is on another machine, and its connection need not be encrypted"
        yield WARNING, "ledger.url", rule, "add ?sslmode=verify-full to the URL"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server there; a name other than localhost may be anything."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")


def listens_beyond_loopback(port: int) -> bool:
    """Whether something here listens on this port at an address of the network. False where it is unknown."""
    with suppress(psutil.Error, OSError):
        listening = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        hosts = [one.laddr.ip.removeprefix("::ffff:") for one in listening if one.laddr.port == port]
        return not all(map(is_loopback, hosts))
    return False


def ask_server(url: str) -> Mapping[str, Any] | None:
    """The server's settings, past the proxy for loopback, without credentials; None if it gives none."""
    opener = build_opener(ProxyHandler({})) if is_loopback(urlsplit(url).hostname or "") else build_opener()
    try:
        with opener.open(f"{url}/admin/settings", timeout=SECONDS) as answer:
            document = json.load(answer)
    except HTTPError as error:
        # 404: an open server without this page; 401 and 403: a closed one
        return {} if error.code not in (401, 403) else None
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else {}


def noise_library(source: NoiseSource) -> Lines:
    """Whether the source gives noise here; a sample is drawn and thrown away."""
    try:
        make_ready(source)
    except NoiseError as error:
        yield WRONG, "the library of the noise", str(error), "repair the installation; no day is drawn before"


def public_facts(case: Case) -> Lines:
    """Whether readings are counts, and those of the days that nights release."""
    if (contradiction := case.settings.counts_warning) is not None:
        rule, _, remedy = contradiction.partition(": ")
        yield WARNING, "[privacy] counts", rule, remedy
    today, n_days = case.settings.local_day(case.now), case.settings.scheduling.catch_up_days
    for problem in clashes(case.settings, [today - timedelta(days=n) for n in range(n_days + 1)]):
        yield WRONG, CONSTRAINTS, problem, "no such day is drawn before that"


CHECKS: tuple[Callable[[Case], Lines], ...] = (
    exposed_files, nested_folders, writable_public, readable_dumps, configuration_file, file_systems, stores,
    telemetry, prefect_home, own_server, named_server, ledger_url, markers, files_from_the_future, record,
    public_facts, lambda case: noise_library(secure_noise()),
)  # fmt: skip
"""Each looks and changes nothing, but for a probe file that it removes again, and in an object store the
probe that publishing puts there as well.
"""


def examine(settings: Settings, environment: Mapping[str, str], now: datetime) -> list[Finding]:
    """Return the problems around a stream, the worst first; no ledger is made."""
    case = Case(settings, environment, now)
    found = [Finding(line[0], str(line[1]), *line[2:]) for check in CHECKS for line in check(case)]
    return sorted(found, key=lambda finding: [*Severity].index(finding.severity))
