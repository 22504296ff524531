"""What is known of a stream at one moment: read from ledger, folders and catalogue, judged elsewhere."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
from fractions import Fraction
from functools import cached_property
from math import floor, inf, isfinite, log
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue import PAGE, Catalogue, Entry, find_catalogue
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.index import DayEntry, day_entries
from optstream.catalogue.layout import DATA
from optstream.catalogue.metadata import check_page
from optstream.errors import LedgerError, OptStreamError, ParameterError, PublicationError
from optstream.ledger import Key, Ledger, ReleaseOutline, ReleaseState
from optstream.stream import AggregationTree, Measured, day_of, period_from
from optstream.stream.calendar import ORIGIN
from optstream.stream.covariate import Covariate
from tasks.config import Settings
from tasks.config.fields import step_minutes
from tasks.ingest import Arrival, arrivals_of, days_with_dumps
from tasks.ingest.clock import clock_ahead
from tasks.ledger.show import BudgetSummary, read_book
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import Budget, budget_of
from tasks.trusted.covariates import read_covariates
from tasks.trusted.files import read_verified, write_private
from tasks.trusted.verdicts import PRIVATE_PERIOD, RAW, USER, newest_results

Work = Literal["look", "watch"]
"""A look of the night, and the watch."""
LONGEST_WATCH = timedelta(minutes=30)
"""A watch that takes longer is killed, so that the next one can look."""


def note_end(settings: Settings, work: Work, now: datetime) -> None:
    """Keep that it ended now. Raises OSError where it cannot be kept."""
    write_private(settings.watch_folder / f"{work}-ended", now.isoformat().encode())


def last_end(settings: Settings, work: Work) -> datetime | None:
    """Return when the last one ended; None where none has, or where that cannot be read."""
    try:
        at = datetime.fromisoformat((settings.watch_folder / f"{work}-ended").read_text().strip())
    except (OSError, ValueError, OptStreamError):
        return None
    return at if at.tzinfo is not None else None


# What the last audit of the configured mechanism found, kept in the trusted zone.

FORMAT = "optstream.audit-record/1"


@dataclass(frozen=True)
class AuditRecord:
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
                    return AuditRecord(
                        at, passed, record["configuration_hash"] == settings.configuration_hash
                    )
    return None


# The newest published day by its stored measurements, which are noisy; no dump is opened.


def _of_newest(
    settings: Settings, releases: Mapping[date, ReleaseOutline]
) -> tuple[tuple[date, ...], dict[date, tuple[str, ...]]]:
    """Return what the newest day's self-check found unlike all others, and which covariates it lacked."""
    published = (day for day, one in releases.items() if one.state is ReleaseState.PUBLISHED)
    day, has_check = max(published, default=None), settings.mechanism.kind.has_self_check
    if day is None or not (has_check or settings.covariates):
        return (), {}
    release, unlike = releases[day], tuple[date, ...]()
    try:
        folder = settings.measurements_of(day, release.revision)
        measured = Measured.from_bytes(read_verified(folder, release.measurements_hash))
    except (LedgerError, ParameterError, OSError):
        return (), {}
    if has_check:
        with suppress(ParameterError):
            events = mechanism_for(settings, day, release.revision).events(measured)
            unlike = tuple(ORIGIN + timedelta(days=number) for number in events)
    return unlike, _missing_covariates(settings, day, measured)


def _missing_covariates(settings: Settings, day: date, measured: Measured) -> dict[date, tuple[str, ...]]:
    if not settings.covariates:  # as every stream of hours
        return {}
    from optstream.mechanisms.history_informed import COVARIATES, LATE  # it takes a second

    before, number = measured.before or {}, (day - ORIGIN).days
    known = [Covariate.from_document(one) for key in (COVARIATES, LATE) for one in before.get(key, ())]
    # of one that is public on a later day only, the newest value may be as old as that
    in_time = {one.name for one in known if one.tells(number + 1 - max(one.lag_days, 1))}
    missing = [one for one in settings.covariates if one.name not in in_time]
    if not missing:
        return {}
    unread = read_covariates(settings, day).unread
    without = "covariate {0.name}: {0.path} had no value of the day"
    return {day: tuple(unread.get(one.name, without.format(one)) for one in missing)}


# Which listed files are not there as they were published: opens none (`optstream ledger verify` reads all).

MISSING, RESIZED = "is missing", "is not as long as it was"


def lost_files(settings: Settings, catalogue: Catalogue | None) -> dict[date, str]:
    """Return the listed days whose file is missing or has another size, and which."""
    if catalogue is None:
        return {}
    place, listed = open_storage(settings.published_folder), catalogue.listed
    try:
        there = set(place.names_below(DATA))
        found = _resized(settings, listed) | {
            one.period: MISSING for one in listed if one.shown_in not in there
        }
        now = find_catalogue(place) if found else catalogue
    except (PublicationError, OSError):
        return {}
    same = set(() if now is None else now.listed) & set(listed)
    return {one.period: found[one.period] for one in listed if one.period in found and one in same}


def _resized(settings: Settings, listed: Iterable[Entry]) -> dict[date, str]:
    """Compare the sizes that the pages' summaries keep, where they keep any."""
    folder, kept = settings.published_folder, kept_figures(settings)
    if not isinstance(folder, Path) or kept is None:
        return {}
    known = dict(kept.select("file_hash", "size").unique().drop_nulls().iter_rows())
    found: dict[date, str] = {}
    for entry in day_entries(listed):
        own = entry.own if isinstance(entry, DayEntry) else (entry,)
        size = known.get(entry.closed_in or "" if isinstance(entry, DayEntry) else entry.file_hash)
        path = folder / entry.file
        if size is not None and path.is_file() and path.stat().st_size != size:
            found |= dict.fromkeys([one.period for one in own], RESIZED)
    return found


def kept_figures(settings: Settings) -> pl.DataFrame | None:
    """Return the pages' summaries (`tasks.pages.published.SCHEMA`): published values alone; None without."""
    columns = ["file_hash", "node", "mean", "noise", "model", "size"]
    try:
        return pl.read_parquet(settings.summaries_file, columns=columns)
    except (OSError, pl.exceptions.PolarsError):
        return None


# How many of a region's readings were replaced, by day: a wrong unit or sign shows there first.
#
# It depends on readings: it is for the trusted zone alone, and so is a withdrawal that is decided by it.

SHARES = {
    "clamped": {"out_of_bounds", "infinite"},
    "absent": {"absent"},
    "doubled": {"duplicates", "two_leaves"},
    "unusable": {"unknown_region", "no_timestamp", "outside_day", "off_grid", "no_customer"},
}
"""Metrics of the raw frame, which count rows."""
LOUD = 0.5
"""The share of a region's readings from which on a run says so."""
MOST_NAMED = 12
"""Regions of a line or an alarm, and lines of a run."""


class Suspect(NamedTuple):
    """Shares in [0, 1] of one region's rows of a day; unusable: 1 where a region has no row at all."""

    clamped: float
    absent: float
    doubled: float
    unusable: float = 0.0


def suspect_readings(settings: Settings, days: set[date]) -> dict[date, dict[str, Suspect]]:
    """By day, each region with rows, in the tree's order, by the newest readable validation result."""
    found = {}
    for day, suite, document in newest_results(settings, days):
        if suite == RAW:
            with suppress(KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
                if regions := _shares(pl.DataFrame(document["meta"]["metrics"], strict=False), day):
                    found[day] = regions
    return found


def loudest(settings: Settings, days: set[date]) -> list[str]:
    """Return a line for each day and each thing that happened to most readings of a region; few of many."""
    kept = settings.budget.restatement_share
    again = (
        f"deliver it again and run it with --restate (budget.restatement_share = {kept})"
        if kept
        else "withdraw it: budget.restatement_share is 0, so that no day is measured again"
    )
    found: defaultdict[tuple[date, str], list[str]] = defaultdict(list)
    for day, regions in sorted(suspect_readings(settings, days).items()):
        for region, one in regions.items():
            for name, share in one._asdict().items():
                if share >= LOUD:
                    found[day, name].append(f"{settings.called(region)} ({share:.0%})")
    lines = [
        f"{day}: readings were {name} in {', '.join(regions[:MOST_NAMED])}"
        + (f" and {len(regions) - MOST_NAMED:,} more" if len(regions) > MOST_NAMED else "")
        + f": are privacy.bounds, and unit and day of this dump, right? If it is wrong, {again}"
        for (day, name), regions in found.items()
    ]
    more = len(lines) - MOST_NAMED
    return lines[:MOST_NAMED] + [f"and so {more:,} times more, on later days"] * (more > 0)


def _shares(metrics: pl.DataFrame, day: date) -> dict[str, Suspect]:
    own = metrics.filter(pl.col("day") == day.isoformat())
    shares = {
        name: (pl.sum_horizontal(sorted(of & {*own.columns})) / pl.max_horizontal("rows", 1)).clip(0, 1)
        for name, of in SHARES.items()
    }
    shares["unusable"] = pl.when(pl.col("rows") == 0).then(1.0).otherwise(shares["unusable"])
    return {region: Suspect(*rest) for region, *rest in own.select("region", **shares).iter_rows()}


# Deadlines: instants from the configuration and a day.


def late_from(settings: Settings, day: date) -> datetime:
    """From then on a day that is not released is an alarm."""
    return settings.clock_after(day, settings.watching.late_after)


def raw_expires(settings: Settings, day: date) -> datetime | None:
    """When the raw readings of a day are deleted; None where no retention is configured."""
    kept = settings.input.raw_retention_days
    return None if kept is None else settings.calendar.ends_at(day) + timedelta(days=kept)


def days_left(expires: datetime, now: datetime) -> int:
    """Whole days until then; negative when it is past."""
    return floor((expires - now) / timedelta(days=1))


def max_runtime(settings: Settings) -> timedelta:
    """For how long a day may be under way."""
    return timedelta(minutes=step_minutes(settings.watching.max_runtime))


def last_ended(settings: Settings, now: datetime) -> date:
    """The newest local day, or hour, that is over."""
    return settings.calendar.after(settings.local_period(now), -1)


# The published mean of each region of a day next to the median of the days before.

FACTOR = 10.0
"""Between the published mean of a day and the median of those before."""
DEVIATIONS = 8.0
"""Of the day's noise; a Laplace value is so far from its mean once in 80,000 times."""
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
    def distance(self) -> float:
        """The absolute log ratio, infinite without a logarithm."""
        return abs(log(self.ratio)) if self.ratio > 0 else inf

    @property
    def words(self) -> str:
        """What the mean is of the median: "12 times", "1/40 of", "of the other sign than"."""
        if self.ratio < 0:
            return "of the other sign than"
        if self.ratio == 0:
            return "none of"
        times = max(self.ratio, 1 / self.ratio)
        figure = f"{times:.3g}" if times < 100 else f"{times:,.0f}"
        return f"{figure} times" if self.ratio > 1 else f"1/{figure} of"


def compare(kept: pl.DataFrame, listed: Sequence[Entry], leaves: Collection[str]) -> tuple[Comparison, ...]:
    """Compare the last listed day with the up to 28 before it, for each leaf with a week of figures."""
    if not listed:
        return ()
    newest, before = listed[-1], [one.file_hash for one in listed[-1 - MOST_DAYS : -1]]
    of_leaves = pl.col("node").is_in(list(leaves))
    usual = (
        kept.filter(of_leaves & pl.col("file_hash").is_in(before))
        .group_by("node")
        .agg(pl.col("mean").median().alias("usual"), pl.len().alias("days"))
        .filter(pl.col("days") >= LEAST_DAYS)
    )
    day = kept.filter(of_leaves & (pl.col("file_hash") == newest.file_hash)).join(usual, on="node")
    return tuple(
        Comparison(
            newest.period, row["node"], row["mean"], row["usual"], row["noise"] or 0.0, row["model"] or 0.0
        )
        for row in day.sort("node").iter_rows(named=True)
        if isfinite(row["mean"]) and row["usual"]
    )


def _far_regions(settings: Settings, catalogue: Catalogue | None) -> tuple[Comparison, ...]:
    """The leaves that are far from their history on the newest listed day; empty before a week is listed."""
    listed = () if catalogue is None else catalogue.listed
    kept = kept_figures(settings) if len(listed) > LEAST_DAYS else None
    if kept is None:
        return ()
    leaves = settings.tree_of(listed[-1].period).leaves
    return tuple(one for one in compare(kept, listed, leaves) if one.is_far)


SUSPECT_DAYS = 28
"""Of which it is said how many readings were clamped, absent or doubled."""
PAGE_PATIENCE = timedelta(minutes=30)
_TAKEN = ("reserved", "taken over", "adopted")
"""The ledger's events by which a run takes up a release."""


@dataclass(frozen=True)
class Hold:
    """A release under way: since when its newest run has it, and until when at least that one lives."""

    since: datetime
    lease_until: datetime


@dataclass(frozen=True)
class Facts:
    """What is known of a stream at one moment; only `suspect` and `user_suites` depend on readings."""

    live: bool
    first: date | None
    last: date | None
    releases: Mapping[date, ReleaseOutline]
    holds: Mapping[date, Hold]
    catalogue: Catalogue | None
    catalogue_error: str | None
    is_own_ledger: bool
    arrivals: Mapping[date, Arrival]
    refused: frozenset[date]
    budget: Budget
    page: BudgetSummary | None
    audit: AuditRecord | None
    unlike: tuple[date, ...] = ()
    lost: Mapping[date, str] = field(default_factory=dict)
    suspect: Mapping[date, Mapping[str, Suspect]] = field(default_factory=dict, repr=False)
    far: tuple[Comparison, ...] = ()
    without: Mapping[date, tuple[str, ...]] = field(default_factory=dict)
    page_behind: bool = False
    user_suites: Mapping[date, tuple[str, ...]] = field(default_factory=dict, repr=False)
    unsaid_noise: tuple[tuple[str, str], ...] = ()
    clock_ahead: str | None = None

    @cached_property
    def newest_unlike(self) -> date | None:
        """The newest published day, if it is one of those that were unlike all others."""
        published = (day for day, one in self.releases.items() if one.state is ReleaseState.PUBLISHED)
        newest = max(published, default=None)
        return newest if newest in self.unlike else None

    def days(self, settings: Settings) -> list[date]:
        """Return the days, or hours, to be looked at, first to last."""
        if self.first is None or self.last is None:
            return []
        return settings.calendar.periods(self.first, self.last)


def look(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool) -> Facts:
    """Read what is known of a stream; opens no dump. Raises LedgerError for a refusing or missing ledger."""
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
    unreleased = [day for day in expected if day not in releases]
    arrivals, recent = dict[date, Arrival](), set[date]()
    with suppress(OSError):
        found = arrivals_of(settings, unreleased)
        arrivals = {day: arrival for day, arrival in found.items() if arrival is not None}
    if last is not None:
        recent = {*settings.calendar.periods(day_of(last) - timedelta(days=SUSPECT_DAYS - 1), last)}
    kept = {day for day in recent & releases.keys() if releases[day].withdrawn is None}
    unlike, without = _of_newest(settings, releases)
    books = read_book(settings, ledger) if ledger and releases else ()
    pages = (page for page in books if page.name == settings.privacy.population)
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
        refused=_refused(settings, unreleased),
        budget=budget_of(settings, ledger) if ledger else Budget(settings.model, Fraction(0)),
        page=next(pages, None),
        audit=last_audit(settings),
        unlike=unlike,
        lost=lost_files(settings, catalogue),
        suspect=suspect_readings(settings, kept),
        far=_far_regions(settings, catalogue),
        without=without,
        page_behind=_page_behind(settings, ledger, catalogue, now),
        user_suites=_user_suites(settings, recent) if settings.contracts_folder is not None else {},
        unsaid_noise=_unsaid(settings, ledger) if ledger and catalogue else (),
        clock_ahead=clock_ahead(settings, ledger, max(releases)) if ledger and releases else None,
    )


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


def _unsaid(settings: Settings, ledger: Ledger) -> tuple[tuple[str, str], ...]:
    known = ledger.known_noise(settings.stream.name)
    said = tuple[tuple[str, str], ...]()
    if known:
        with suppress(PublicationError):
            said = read_about(open_storage(settings.published_folder)).known_noise
    return tuple(one for one in known if one not in said)


def _span(
    settings: Settings, releases: Iterable[date], now: datetime, live: bool
) -> tuple[date | None, date | None]:
    known = set(releases)
    watched = settings.watching.first_day
    first = (
        min(known, default=None)
        if watched is None
        else settings.calendar.periods(watched, watched + timedelta(days=1))[0]
    )
    if first is None:
        return None, None
    last = last_ended(settings, now)
    if not live:
        last = min(last, max({*known, *days_with_dumps(settings)}, default=first))
    last = max({last, *known})
    return (first, last) if first <= last else (None, None)


def _holds(settings: Settings, ledger: Ledger, releases: Mapping[date, ReleaseOutline]) -> dict[date, Hold]:
    under_way = {day: one for day, one in releases.items() if one.state.is_under_way}
    stream, found = settings.stream.name, {}
    taken = [ledger.event_times(stream, kind) for kind in _TAKEN] if under_way else []
    for day, one in under_way.items():
        record = ledger.find(Key(stream, one.period, one.revision))
        if record is not None:
            times = (each.get((one.period, one.revision)) for each in taken)
            since = max(filter(None, times), default=record.lease_until)
            found[day] = Hold(since, record.lease_until)
    return found


def _refused(settings: Settings, days: Iterable[date]) -> frozenset[date]:
    """By the newest raw or private-period results of each day; only whether they stopped it is taken."""
    refused = set()
    for day, suite, document in newest_results(settings, set(days)):
        with suppress(KeyError, TypeError):
            if suite in (RAW, PRIVATE_PERIOD) and day.isoformat() in document["meta"]["stopped"]:
                refused.add(day)
    return frozenset(refused)


def _user_suites(settings: Settings, days: set[date]) -> dict[date, tuple[str, ...]]:
    """What users' suites found of these days."""
    found: defaultdict[date, tuple[str, ...]] = defaultdict(tuple)
    for day, suite, document in newest_results(settings, days):
        with suppress(KeyError, TypeError):
            if suite.startswith(USER) and (lines := document["meta"]["alarms"].get(day.isoformat())):
                found[day] += tuple(map(str, lines))
    return dict(found)


# Which regions had readings replaced, the most first: for the trusted zone, since it depends on readings.

MOST_SHOWN = 12
"""Regions in a table that people read; `optstream status --json` has all."""


@dataclass(frozen=True)
class Replaced:
    """A region's shares of the newest day that is known, and the largest of all of them in the last days."""

    region: str
    newest: Suspect
    most: float
    most_day: date


def newest_day(facts: Facts) -> date | None:
    """The newest day of which shares are known."""
    return max(facts.suspect, default=None)


def replaced(facts: Facts) -> tuple[Replaced, ...]:
    """Every region with a reading that was clamped, absent, doubled or unusable in the last days."""
    newest = newest_day(facts)
    if newest is None:
        return ()
    worst: dict[str, tuple[float, date]] = {}
    for day, regions in sorted(facts.suspect.items()):
        for region, one in regions.items():
            worst[region] = max(worst.get(region, (0.0, day)), (max(one), day))
    none = Suspect(0.0, 0.0, 0.0)
    found = [
        Replaced(region, facts.suspect[newest].get(region, none), share, day)
        for region, (share, day) in worst.items()
        if share > 0
    ]
    return tuple(sorted(found, key=lambda one: (-max(one.newest), -one.most, one.region)))


# Regions against the hierarchy: which leaf an unknown one probably is, and which nodes lack their input.

ALIKE = 0.5
"""Names less alike than this (difflib's ratio) are not suggested."""
MOST_UNKNOWN, MOST_VANISHED = 50, 2000
"""Beyond these no nearest name is looked for: the time grows with their product."""

LONGEST_SHOWN = 80


def renamed(unknown: Sequence[str], vanished: Sequence[str]) -> dict[str, str | None]:
    """Return for each unknown region the vanished leaf that is most alike, each once, or None."""
    found: dict[str, str | None] = dict.fromkeys(unknown)
    if len(unknown) <= MOST_UNKNOWN and len(vanished) <= MOST_VANISHED:
        scored = [(likeness(one, leaf), one, leaf) for one in unknown for leaf in vanished]
        for score, one, leaf in sorted(scored, key=lambda entry: -entry[0]):
            if score >= ALIKE and found[one] is None and leaf not in found.values():
                found[one] = leaf
    unpaired = [one for one in unknown if found[one] is None]
    left = [leaf for leaf in vanished if leaf not in set(found.values())]
    if len(unpaired) == len(left) == 1:
        found[unpaired[0]] = left[0]
    return found


def nearest(name: str, leaves: Sequence[str]) -> str | None:
    """The leaf that is called most alike, or None if none is alike enough."""
    if len(leaves) > MOST_VANISHED:
        return None
    leaf = max(leaves, key=lambda one: likeness(name, one))
    return leaf if likeness(name, leaf) >= ALIKE else None


def shown(name: str) -> str:
    """A name found on disk, short, its unprintable characters escaped."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def likeness(one: str, other: str) -> float:
    """In [0, 1], whatever the case."""
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def lacking(tree: AggregationTree, leaves: Collection[str]) -> tuple[str, ...]:
    """The fewest nodes that cover exactly these leaves: a node stands for all leaves below it."""
    tree = tree.tree  # a margin's nodes cover them a second time
    whole = _covered(tree, leaves) == tree.leaves_below
    return tuple(
        name
        for number, name in enumerate(tree.nodes)
        if whole[number] and (tree.parents[number] < 0 or not whole[tree.parents[number]])
    )


def touched(tree: AggregationTree, leaves: Collection[str]) -> tuple[int, ...]:
    """For each level, how many of its nodes cannot be known without these leaves."""
    hit = _covered(tree, leaves) > 0
    return tuple(int(hit[level.start : level.stop].sum()) for level in tree.levels)


def _covered(tree: AggregationTree, leaves: Collection[str]) -> NDArray[np.int64]:
    known = set(leaves)
    return tree.add_up(np.array([[name in known] for name in tree.leaves], dtype=np.int64))[:, 0]
