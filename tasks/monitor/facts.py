"""Facts of a stream at one moment: read from ledger, folders and catalogue, judged elsewhere."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cache
from math import floor, inf, log
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import polars as pl
from pydantic import PlainSerializer, WithJsonSchema

from optstream.catalogue import PAGE, Catalogue, Entry, find_catalogue
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.documents import Part, Period
from optstream.catalogue.index import DayEntry, day_entries
from optstream.catalogue.layout import DATA
from optstream.catalogue.metadata import check_page
from optstream.errors import LedgerError, OptStreamError, ParameterError, PublicationError
from optstream.ledger import Ledger, ReleaseOutline, ReleaseState
from optstream.stream import Measured, day_of, period_from
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.config.fields import step_minutes
from tasks.ingest import Arrival, arrivals_of, days_with_dumps
from tasks.ingest.clock import clock_ahead
from tasks.ledger.show import BudgetSummary, read_book
from tasks.release.outcomes import Budget, budget_of, listed
from tasks.trusted.covariates import read_covariates
from tasks.trusted.files import read_verified, write_private
from tasks.trusted.verdicts import RAW, RELEASE, USER, newest_results, result_files

Work = Literal["look", "watch"]  # a look of the night, and the watch
LONGEST_WATCH = timedelta(minutes=30)  # a watch that takes longer is killed, so that the next one can look


def note_end(settings: Settings, work: Work, now: datetime) -> None:
    """Keep that it ended now. Raises OSError where it cannot be kept."""
    write_private(settings.watch_folder / f"{work}-ended", now.isoformat().encode())


def last_end(settings: Settings, work: Work) -> datetime | None:
    """Return when the last one ended; None where none has, or where that cannot be read."""
    with suppress(OSError, ValueError, OptStreamError):
        at = datetime.fromisoformat((settings.watch_folder / f"{work}-ended").read_text().strip())
        return at if at.tzinfo is not None else None
    return None


FORMAT = "optstream.audit-record/1"


class AuditRecord(NamedTuple):
    """How the last audit ended. same: whether the configuration and its share of the budget are as then."""

    at: datetime
    passed: bool
    same: bool


def last_audit(settings: Settings) -> AuditRecord | None:
    """The newest record that can be read; None without any."""
    with suppress(OSError):
        for path in sorted(settings.audits_folder.glob("*.json"), reverse=True):
            with suppress(OSError, ValueError, KeyError, TypeError):
                record = json.loads(path.read_bytes())
                if record["format"] == FORMAT:
                    at, passed = datetime.fromisoformat(record["at"]), bool(record["audit"]["passed"])
                    same = record["configuration_hash"] == settings.configuration_hash
                    return AuditRecord(at, passed, same)
    return None


# Deadlines: instants from the configuration and a day.


def late_from(settings: Settings, day: date) -> datetime:
    """From then on a day that is not released is an alarm."""
    return settings.clock_after(day, settings.watching.late_after)


def raw_expires(settings: Settings, day: date) -> datetime | None:
    """When the raw readings of a day are deleted; None where no retention is configured."""
    kept = settings.input.raw_retention_days
    return None if kept is None else settings.calendar.ends_at(day) + timedelta(days=kept)


def days_left(expires: datetime, now: datetime) -> int:
    return floor((expires - now) / timedelta(days=1))


def max_runtime(settings: Settings) -> timedelta:
    return timedelta(minutes=step_minutes(settings.watching.max_runtime))


def last_ended(settings: Settings, now: datetime) -> date:
    """The newest local day, or hour, that is over."""
    return settings.calendar.after(settings.local_period(now), -1)


# Listed files that are not there as published: opens none (`optstream ledger verify` reads all).

MISSING, RESIZED = "is missing", "is not as long as it was"


def lost_files(
    settings: Settings, catalogue: Catalogue | None, figures: pl.DataFrame | None
) -> dict[date, str]:
    """Return the listed days whose file is missing or has another size than in `figures`, and which."""
    if catalogue is None:
        return {}
    place, listed = open_storage(settings.published_folder), catalogue.listed
    try:
        there = set(place.names_below(DATA))
        found = _resized(settings, listed, figures)
        found |= {one.period: MISSING for one in listed if one.shown_in not in there}
        now = find_catalogue(place) if found else catalogue
    except (PublicationError, OSError):
        return {}
    same = set(() if now is None else now.listed)
    return {one.period: found[one.period] for one in listed if one.period in found and one in same}


def _resized(settings: Settings, listed: Iterable[Entry], figures: pl.DataFrame | None) -> dict[date, str]:
    folder = settings.published_folder
    if not isinstance(folder, Path) or figures is None:
        return {}
    known = dict(figures.select("file_hash", "size").unique().drop_nulls().iter_rows())
    found: dict[date, str] = {}
    for entry in day_entries(listed):
        own = entry.own if isinstance(entry, DayEntry) else (entry,)
        size = known.get(entry.closed_in or "" if isinstance(entry, DayEntry) else entry.file_hash)
        with suppress(OSError):
            if size is not None and (folder / entry.file).stat().st_size != size:
                found |= dict.fromkeys([one.period for one in own], RESIZED)
    return found


# Validation results. All but `refused` depends on readings: it is for the trusted zone alone, and so is a
# withdrawal that is decided by it.

SHARES = {
    "clamped": {"out_of_bounds", "infinite"},
    "absent": {"absent"},
    "doubled": {"duplicates", "two_leaves"},
    "unusable": {"unknown_region", "no_timestamp", "outside_day", "off_grid", "no_customer"},
}
"""Metrics of the raw frame, which count rows."""
LOUD = 0.5  # the share of a region's readings from which on a run says so
SHOWS_BOUNDS = ", so that readers have the bounds in place of the readings"
"""Of a region that is mostly clamped."""
MOST_SHOWN = 12  # regions in a line, an alarm or a table that people read; `optstream status --json` has all
SUSPECT_DAYS = 28  # days whose shares of replaced readings are shown


class Suspect(NamedTuple):
    """Shares in [0, 1] of one region's rows of a day; unusable: 1 where a region has no row at all."""

    clamped: float
    absent: float
    doubled: float
    unusable: float = 0.0


class Verdicts(NamedTuple):
    """Days that were refused; of each day its regions with rows, in the tree's order; users' alarms."""

    refused: frozenset[date]
    suspect: Mapping[date, Mapping[str, Suspect]]
    user_suites: Mapping[date, tuple[str, ...]]


def read_verdicts(settings: Settings, days: set[date]) -> Verdicts:
    """Return each day's verdict in the newest readable validation results."""
    refused, suspect = set[date](), dict[date, dict[str, Suspect]]()
    of_users: defaultdict[date, tuple[str, ...]] = defaultdict(tuple)
    for day, suite, document in newest_results(settings, days):
        with suppress(KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
            meta = document["meta"]
            if suite == RAW and day.isoformat() in meta.get("stopped", ()):
                refused.add(day)
            if suite == RAW and (regions := _shares(pl.DataFrame(meta["metrics"], strict=False), day)):
                suspect[day] = regions
            if suite.startswith(USER):
                of_users[day] += tuple(map(str, meta["alarms"].get(day.isoformat(), ())))
    return Verdicts(frozenset(refused), suspect, of_users)


def read_self_check(settings: Settings, day: date) -> tuple[tuple[date, ...], tuple[str, ...]]:
    """Return the days that a day's first estimate found unlike all others, and levels off their predictions;
    nothing where that is not known."""
    for file in result_files(settings, ".json"):
        if file.suite == RELEASE and file.first <= day <= file.last:
            # a later estimate of the day keeps none
            with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
                found = json.loads(file.path.read_bytes())["meta"]["self_checks"][day.isoformat()]
                return tuple(map(date.fromisoformat, found["unlike"])), tuple(map(str, found["levels_off"]))
    return (), ()


def _shares(metrics: pl.DataFrame, day: date) -> dict[str, Suspect]:
    own = metrics.lazy().filter(pl.col("day") == day.isoformat())
    shares = {
        name: (pl.sum_horizontal(sorted(of & {*metrics.columns})) / pl.max_horizontal("rows", 1)).clip(0, 1)
        for name, of in SHARES.items()
    }
    shares["unusable"] = pl.when(pl.col("rows") == 0).then(1.0).otherwise(shares["unusable"])
    found = own.select("region", **shares).collect()
    return {region: Suspect(*rest) for region, *rest in found.iter_rows()}


def may_restate(settings: Settings, revision: int) -> bool:
    """Return whether a share is kept for measuring a day, of which this is the newest revision, again."""
    return bool(settings.budget.restatement_share) and revision < settings.budget.shares


def remedy_of(settings: Settings, revision: int) -> str:
    """Return the remedy for a day whose readings were wrong."""
    kept = f"budget.restatement_share = {settings.budget.restatement_share}"
    if may_restate(settings, revision):
        place = f" in {settings.delivered(revision + 1).input.folder}" if settings.budget.revisions else ""
        return f"deliver it again{place} and run it with --restate ({kept})"
    return f"withdraw it: {kept} keeps nothing more for this day, which is never measured again"


def loudest(settings: Settings, days: Mapping[date, int]) -> list[str]:
    """Return a line for each day and each thing that happened to most readings of a region; few of many."""
    found: defaultdict[tuple[date, str], list[str]] = defaultdict(list)
    for day, regions in sorted(read_verdicts(settings, {*days}).suspect.items()):
        for region, one in regions.items():
            for name, share in one._asdict().items():
                if share >= LOUD:
                    found[day, name].append(f"{settings.called(region)} ({share:.0%})")
    lines = [
        f"{day}: readings were {name} in {listed(regions, MOST_SHOWN)}"
        f"{SHOWS_BOUNDS if name == 'clamped' else ''}: are privacy.bounds, and unit, regions and day of this "
        f"dump, right? If it is wrong, {remedy_of(settings, days[day])}"
        for (day, name), regions in found.items()
    ]
    more = len(lines) - MOST_SHOWN
    return lines[:MOST_SHOWN] + [f"and so {more:,} times more, on later days"] * (more > 0)


Share = Annotated[
    float,
    PlainSerializer(lambda share: round(share, 4)),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]


class Replaced(Part):
    """A region's shares of replaced readings, on the newest day that is known, and the largest lately."""

    region: str
    clamped: Share
    absent: Share
    doubled: Share
    unusable: Share
    most: Share
    most_day: Period


# The published mean of each region of a day next to the median of the days before.

FACTOR = 10.0  # between the published mean of a day and the median of those before
DEVIATIONS = 8.0  # of the day's noise; a Laplace value is so far from its mean once in 80,000 times
DEVIATIONS_OF_ERRORS = 4.0
"""Of the whole error, where a model tells that and not the noise; a normal one is so far once in 16,000."""
LEAST_DAYS, MOST_DAYS = 7, 28


@dataclass(frozen=True)
class Comparison:
    """A leaf's published mean of a day and the median of the days before; `noise`, `error` are bounds."""

    day: date
    region: str
    mean: float
    usual: float
    noise: float
    error: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times `usual` the mean is."""
        return self.mean / self.usual

    @property
    def is_far(self) -> bool:
        """Whether it is ten times as much, a tenth, or of the other sign, by more than errors explain."""
        explained = DEVIATIONS * self.noise if self.noise else DEVIATIONS_OF_ERRORS * self.error
        return abs(self.mean - self.usual) > explained and not 1 / FACTOR < self.ratio < FACTOR

    @property
    def words(self) -> str:
        """The mean relative to the median: "12 times", "1/40 of", "of the other sign than"."""
        if self.ratio < 0:
            return "of the other sign than"
        if self.ratio == 0:
            return "none of"
        times = max(self.ratio, 1 / self.ratio)
        figure = f"{times:.3g}" if times < 100 else f"{times:,.0f}"
        return f"{figure} times" if self.ratio > 1 else f"1/{figure} of"


class Surprises(NamedTuple):
    """Comparisons of all leaves on the newest listed day, the farthest first; the far ones of `MOST_DAYS`."""

    newest: tuple[Comparison, ...] = ()
    far: tuple[Comparison, ...] = ()


def compare(
    figures: pl.DataFrame, listed: Sequence[Entry], leaves_of: Callable[[date], Collection[str]]
) -> Surprises:
    """Compare each of the last listed days with the up to 28 before it: leaves with a week of figures."""
    known = set(figures["file_hash"].unique())
    recent = [one for one in listed if one.file_hash in known][-2 * MOST_DAYS :]
    if not recent:
        return Surprises()
    numbers = pl.DataFrame({"file_hash": [one.file_hash for one in recent], "number": range(len(recent))})
    ratio, last = pl.col("mean") / pl.col("usual"), len(recent) - 1
    rows = (
        figures.join(numbers, on="file_hash")
        .sort("number", "node")
        .with_columns(
            usual=pl.col("mean")
            .rolling_median_by("number", f"{MOST_DAYS}i", min_samples=LEAST_DAYS, closed="left")
            .over("node")
        )
        .filter(pl.col("number") > last - MOST_DAYS, pl.col("usual") != 0, pl.col("mean").is_finite())
        .filter((pl.col("number") == last) | ~ratio.is_between(1 / FACTOR, FACTOR, closed="none"))
    )
    days: defaultdict[int, list[Comparison]] = defaultdict(list)
    columns = ("number", "node", "mean", "usual", "noise", "model")
    for number, node, mean, usual, noise, error in rows.select(columns).iter_rows():
        day = recent[number].period
        if node in leaves_of(day):
            days[number].append(Comparison(day, node, mean, usual, noise or 0.0, error or 0.0))
    farthest = sorted(days[last], key=lambda one: -abs(log(one.ratio)) if one.ratio > 0 else -inf)
    return Surprises(
        tuple(farthest), tuple(one for number in sorted(days)[::-1] for one in days[number] if one.is_far)
    )


FIGURES = ["file_hash", "node", "mean", "noise", "model", "size"]  # of `tasks.pages.published.SCHEMA`
PAGE_PATIENCE = timedelta(minutes=30)
_TAKEN = ("reserved", "taken over", "adopted")  # the ledger's events of a run that takes up a release


@dataclass(frozen=True)
class Facts:
    """Facts of a stream at one moment; only `suspect` and `user_suites` depend on readings.

    holds: since when the newest run has each release under way. figures: the pages' summaries. days: from
    first to last. newest: the newest published day; unlike: the days that its self-check found unlike all
    others; off: levels that miss their predictions too far; without: which covariates it lacked.
    """

    live: bool
    first: date | None
    last: date | None
    releases: Mapping[date, ReleaseOutline]
    holds: Mapping[date, datetime]
    catalogue: Catalogue | None
    catalogue_error: str | None
    is_own_ledger: bool
    arrivals: Mapping[date, Arrival]
    refused: frozenset[date]
    budget: Budget
    page: BudgetSummary | None
    audit: AuditRecord | None
    figures: pl.DataFrame | None = field(default=None, repr=False, compare=False)
    days: Sequence[date] = ()
    newest: date | None = None
    unlike: tuple[date, ...] = ()
    off: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    lost: Mapping[date, str] = field(default_factory=dict)
    suspect: Mapping[date, Mapping[str, Suspect]] = field(default_factory=dict, repr=False)
    surprises: Surprises = Surprises()  # noqa: RUF009 - immutable
    page_behind: bool = False
    user_suites: Mapping[date, tuple[str, ...]] = field(default_factory=dict, repr=False)
    unsaid_noise: tuple[tuple[str, str], ...] = ()
    clock_ahead: str | None = None

    @property
    def replaced_day(self) -> date | None:
        """The newest day with known shares of replaced readings."""
        return max(self.suspect, default=None)

    def replaced(self) -> tuple[Replaced, ...]:
        """Return every region with a replaced reading in the last days, the most first."""
        if self.replaced_day is None:
            return ()
        worst: dict[str, tuple[float, date]] = {}
        for day, regions in sorted(self.suspect.items()):
            for region, one in regions.items():
                worst[region] = max(worst.get(region, (0.0, day)), (max(one), day))
        newest, none = self.suspect[self.replaced_day], Suspect(0.0, 0.0, 0.0)
        rows = [(newest.get(region, none), *most, region) for region, most in worst.items() if most[0]]
        return tuple(
            Replaced(region=region, **shares._asdict(), most=most, most_day=day)
            for shares, most, day, region in sorted(rows, key=lambda row: (-max(row[0]), -row[1], row[3]))
        )


def look(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool) -> Facts:
    """Read the facts of a stream; opens no dump. Raises LedgerError for a refusing or missing ledger."""
    stream = settings.stream.name
    # the ledger before the catalogue, which is replaced before the ledger has a day as published; in the
    # ledger's order a later revision of a day comes after
    releases = {period_from(one.period): one for one in ledger.outlines(stream)} if ledger else {}
    catalogue, error = None, None
    try:
        catalogue = find_catalogue(settings.published_folder)
    except PublicationError as problem:
        error = str(problem)
    if ledger is None and catalogue is not None:
        raise LedgerError(
            "days are published and the ledger is gone: bring it back before anything is released, or "
            "correct ledger.url"
        )
    first, last = _span(settings, releases, now, live)
    expected = settings.calendar.periods(first, last) if first and last else []
    unreleased = {day for day in expected if day not in releases}
    arrivals, recent = dict[date, Arrival](), set[date]()
    with suppress(OSError):
        arrivals = arrivals_of(settings, sorted(unreleased))
    if last is not None:
        recent = {*settings.calendar.periods(day_of(last) - timedelta(days=SUSPECT_DAYS - 1), last)}
    published = (day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED)
    newest = max(published, default=None)
    verdicts = read_verdicts(settings, recent | unreleased)
    unlike, off = read_self_check(settings, newest) if newest else ((), ())
    of_users = {} if settings.contracts_folder is None else verdicts.user_suites
    books = read_book(settings, ledger) if ledger and releases else ()
    known_noise, said = ledger.known_noise(stream) if ledger and catalogue else (), tuple[object, ...]()
    if known_noise:
        with suppress(PublicationError):
            said = read_about(open_storage(settings.published_folder)).known_noise
    figures, listed = None, catalogue.listed if catalogue else ()
    with suppress(OSError, pl.exceptions.PolarsError):  # the pages' summaries: published values alone
        figures = pl.read_parquet(settings.summaries_file, columns=FIGURES)
    leaves_of = cache(lambda day: frozenset(settings.tree_of(day).leaves))
    return Facts(
        live=live,
        first=first,
        last=last,
        releases=releases,
        holds=_holds(settings, ledger, releases) if ledger else {},
        catalogue=catalogue,
        catalogue_error=error,
        is_own_ledger=not (ledger and catalogue and ledger.missing_heads([catalogue.ledger_head])),
        arrivals=arrivals,
        refused=verdicts.refused & unreleased,
        budget=budget_of(settings, ledger) if ledger else Budget(model=settings.model, spent=Fraction(0)),
        page=next((page for page in books if page.name == settings.privacy.population), None),
        audit=last_audit(settings),
        figures=figures,
        days=expected,
        newest=newest,
        unlike=unlike,
        off=off,
        without=_without(settings, newest, releases[newest]) if newest else (),
        lost=lost_files(settings, catalogue, figures),
        suspect={
            day: regions
            for day, regions in verdicts.suspect.items()
            if day in recent & releases.keys() and releases[day].withdrawn is None
        },
        surprises=Surprises() if figures is None else compare(figures, listed, leaves_of),
        page_behind=_page_behind(settings, ledger, catalogue, now),
        user_suites={day: lines for day, lines in of_users.items() if day in recent},
        unsaid_noise=tuple(one for one in known_noise if one not in said),
        clock_ahead=clock_ahead(settings, ledger, max(releases)) if ledger and releases else None,
    )


def _span(
    settings: Settings, releases: Collection[date], now: datetime, live: bool
) -> tuple[date | None, date | None]:
    first = settings.watching.first_day
    if first is not None:
        first = settings.calendar.periods(first, first + timedelta(days=1))[0]
    else:
        first = min(releases, default=None)
    if first is None:
        return None, None
    last = last_ended(settings, now)
    if not live:
        last = min(last, max({*releases, *days_with_dumps(settings)}, default=first))
    last = max({last, *releases})
    return (first, last) if first <= last else (None, None)


def _holds(
    settings: Settings, ledger: Ledger, releases: Mapping[date, ReleaseOutline]
) -> dict[date, datetime]:
    under_way = {day: one for day, one in releases.items() if one.state.is_under_way}
    stream, found = settings.stream.name, dict[date, datetime]()
    taken = [ledger.event_times(stream, kind) for kind in _TAKEN] if under_way else []
    for day, one in under_way.items():
        times = (each.get((one.period, one.revision)) for each in taken)
        found[day] = max(filter(None, times), default=one.lease_until)
    return found


def _without(settings: Settings, day: date, release: ReleaseOutline) -> tuple[str, ...]:
    """Return which covariates a day lacked, by its stored measurements, which are noisy."""
    given = settings.covariates  # no stream of hours has any
    if not given:
        return ()
    try:
        folder = settings.measurements_of(day, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
    except (LedgerError, ParameterError, OSError):
        return ()
    from optstream.mechanisms.history_informed import COVARIATES, LATE  # it takes a second

    before, number = measured.before or {}, (day - ORIGIN).days
    known = [Covariate.from_document(one) for key in (COVARIATES, LATE) for one in before.get(key, ())]
    # of one that is public on a later day only, the newest value may be as old as that
    in_time = {one.name for one in known if one.has_value_on(number + 1 - max(one.lag_days, 1))}
    missing = [one for one in given if one.name not in in_time]
    unread = read_covariates(settings, day).unread if missing else {}
    without = "covariate {0.name}: {0.path} had no value of the day"
    return tuple(unread.get(one.name, without.format(one)) for one in missing)


def _page_behind(
    settings: Settings, ledger: Ledger | None, catalogue: Catalogue | None, now: datetime
) -> bool:
    """Runs write the pages last: they have time until `PAGE_PATIENCE` after the ledger's newest event."""
    if ledger is None or catalogue is None or not settings.report_folder.is_dir():
        return False
    last, place = ledger.last_event_at(settings.stream.name), open_storage(settings.published_folder)
    if last is None or now - last < PAGE_PATIENCE:
        return False
    try:
        return not place.is_file(PAGE) or bool(check_page(place, catalogue))
    except (PublicationError, OSError):
        return True
