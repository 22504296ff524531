"""One look at a stream for the operators' pages: the watch's view, and what folders and ledger add."""

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, get_args
from zoneinfo import ZoneInfo

from optstream.errors import OptStreamError
from optstream.ledger import Ledger
from optstream.privacy import PrivacyModel
from optstream.stream import period_from
from tasks.config import Settings, load_settings
from tasks.config.fields import ledger_database
from tasks.config.schema import next_fire
from tasks.ingest import arrivals_of
from tasks.ingest.formats import facts_of
from tasks.ledger import ledger_if_any
from tasks.ledger.show import Horizon
from tasks.monitor.alarms import Key
from tasks.monitor.facts import LONGEST_WATCH, SUSPECT_DAYS, Work, last_end, max_runtime
from tasks.monitor.notify import read_memory
from tasks.monitor.view import StreamView, watch
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import looks_of
from tasks.plan.dry_run import level_warnings
from tasks.trusted.files import unexpected
from tasks.trusted.verdicts import ResultFile, result_files

MOST_DOCS = 300
NEW = timedelta(days=30)
EVERY = timedelta(hours=1)  # a look at all files takes a moment: until then the older one is shown
ARRIVAL_DAYS, MOST_ARRIVING = 28, 200  # days whose dumps' times are read, and regions beyond which none are


class RunStep(NamedTuple):
    """A step of a run. ends: None where it is under way."""

    name: str
    begins: datetime
    ends: datetime | None = None


class RunLink(NamedTuple):
    """A run by its name. page: its address on the orchestrator's pages."""

    name: str
    page: str


class StreamRun(NamedTuple):
    """A run. page: its address at the orchestrator. ends: None if under way. parent: what started it."""

    name: str
    state: str
    begins: datetime
    ends: datetime | None
    steps: tuple[RunStep, ...]
    page: str = ""
    parent: RunLink | None = None


def length_of(one: StreamRun | RunStep, now: datetime) -> timedelta:
    """Return how long a run or a step took, or takes until now."""
    return max((one.ends or now) - one.begins, timedelta())


class Night(NamedTuple):
    """When a day's newest release was reserved and published. published: None where it is not."""

    reserved: datetime
    published: datetime | None = None

    @property
    def took(self) -> timedelta | None:
        return None if self.published is None else max(self.published - self.reserved, timedelta())


class Disk(NamedTuple):
    """Sizes of parts (all, last 30 days), and how many hours after its end each day's dump was complete."""

    at: datetime
    parts: list[tuple[str, int, int]]
    arrived: Mapping[str, list[tuple[date, float]]]


@dataclass(frozen=True)
class Snapshot:
    """What one look at a stream found; where it failed (`problem`), all else is as old as `at`. settings,
    view: None where no look succeeded yet."""

    file: Path
    stream: str
    at: datetime
    settings: Settings | None = field(default=None, repr=False)
    view: StreamView | None = field(default=None, repr=False)
    problem: str | None = None
    since: Mapping[Key, datetime] = field(default_factory=dict)
    nights: Mapping[date, Night] = field(default_factory=dict)
    curves: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    guarantees: Mapping[int, PrivacyModel] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    disk: Disk | None = None
    docs: tuple[ResultFile, ...] = ()
    runs: tuple[StreamRun, ...] | None = None
    runs_problem: str | None = None
    ended: Mapping[Work, datetime] = field(default_factory=dict)
    horizons: tuple[Horizon, ...] = ()
    unwritten: str | None = None


def take_snapshot(file: Path, now: datetime, before: Snapshot | None = None) -> Snapshot:
    """Look at a stream as `optstream status` does; raises nothing, and keeps `before` on failure."""
    before = before or Snapshot(file, file.stem, now)
    try:
        settings = load_settings(file)
        check_trusted(settings)
        with ledger_if_any(settings) as ledger:
            found = snapshot_of(settings, ledger, now, before)
        warnings = before.warnings
        if before.settings != settings:
            warnings = ()
            with suppress(OptStreamError):  # a run of that day says why
                warnings = level_warnings(settings, now.date())
        return replace(found, file=file, warnings=warnings)
    except OptStreamError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - the page of twenty streams outlives a defect in one
        problem = unexpected(error)
    ended = before.ended if before.settings is None else _ended(before.settings)
    return replace(before, problem=problem, ended=ended)


def snapshot_of(
    settings: Settings, ledger: Ledger | None, now: datetime, before: Snapshot | None = None
) -> Snapshot:
    """Look at a stream; opens no dump. Raises LedgerError as `watch`, and OSError as folders do."""
    view, name = watch(settings, ledger, now, live=settings.watch is not None), settings.stream.name
    nights = {}
    if ledger is not None:
        reserved, published = (ledger.event_times(name, kind) for kind in ("reserved", "published"))
        # of a day the newest revision is the last
        nights = {period_from(key[0]): Night(at, published.get(key)) for key, at in sorted(reserved.items())}
    oldest = now - timedelta(days=SUSPECT_DAYS)
    curves: dict[str, Any] = {}
    with suppress(OSError, ValueError):  # the last night wrote them: `tasks.pages.public`
        curves = json.loads(settings.curves_file.read_bytes())
    return Snapshot(
        settings.file,
        name,
        now,
        settings,
        view,
        since={key: one.since for key, one in read_memory(settings).items() if one.lasts},
        nights=nights,
        curves=curves,
        guarantees={} if ledger is None else ledger.guarantees(name),
        disk=_disk(settings, view, now, before.disk if before else None),
        docs=tuple(one for one in result_files(settings, ".html") if one.at >= oldest)[:MOST_DOCS],
        ended=_ended(settings),
    )


def overdue(found: Snapshot, now: datetime) -> tuple[Work, ...]:
    """The scheduled works that ended once, and by their crons and patience should have again."""
    settings = found.settings
    if settings is None:
        return ()
    crons = {"look": looks_of(settings), "watch": (settings.scheduling.watch_cron,)}
    patience = {"look": max_runtime(settings), "watch": 2 * LONGEST_WATCH}
    zone = ZoneInfo(settings.stream.time_zone)
    due = {work: next_fire(crons[work], at.astimezone(zone)) for work, at in found.ended.items()}
    return tuple(work for work, at in due.items() if at + patience[work] < now)


def _ended(settings: Settings) -> dict[Work, datetime]:
    found = {work: last_end(settings, work) for work in get_args(Work)}
    return {work: at for work, at in found.items() if at is not None}


def _disk(settings: Settings, view: StreamView, now: datetime, before: Disk | None) -> Disk:
    if before is not None and now - before.at < EVERY:
        return before
    since, parts = (now - NEW).timestamp(), []
    for name, paths in _places(settings):
        sizes = [(one.st_size, one.st_mtime) for path in paths for one in _files(path)]
        parts.append((name, sum(size for size, _ in sizes), sum(size for size, at in sizes if at >= since)))
    # of an archive the files' times say when somebody copied them
    days = [one.day for one in view.days[-ARRIVAL_DAYS:]] if view.facts.live else []
    return Disk(now, sorted(parts, key=lambda part: -part[1]), _arrived(settings, days))


def _places(settings: Settings) -> Iterator[tuple[str, list[Path]]]:
    if isinstance(settings.published_folder, Path):
        yield "published folder", [settings.published_folder]
    ledger = ledger_database(settings.ledger_url)
    if ledger is not None:
        yield "ledger", [ledger.with_name(f"{ledger.name}{end}") for end in ("", "-wal", "-shm")]
    trusted = settings.trusted_folder
    for path in sorted(trusted.iterdir()) if trusted.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            yield f"trusted folder, {path.name}", [path]


def _files(path: Path) -> Iterator[os.stat_result]:
    """Return a file's, or all below a folder, without following links or those that vanish."""
    below = (Path(top, name) for top, _, names in os.walk(path) for name in names)
    for one in below if path.is_dir() else [path]:
        with suppress(OSError):
            yield one.lstat()


def _arrived(settings: Settings, days: Iterable[date]) -> Mapping[str, list[tuple[date, float]]]:
    """Of a folder on this machine: a store would be asked for each file."""
    found: defaultdict[str, list[tuple[date, float]]] = defaultdict(list)
    if not isinstance(settings.input_folder, Path) or len(settings.dated_hierarchy.nodes()) > MOST_ARRIVING:
        return found
    with suppress(OSError):
        for day, arrival in sorted(arrivals_of(settings, list(days)).items()):
            for part, files in arrival.files.items():
                written = [at for file in files if (at := facts_of(file).written) is not None]
                if written:
                    after = max(written) - settings.calendar.ends_at(day)
                    found[part].append((day, after / timedelta(hours=1)))
    return found
