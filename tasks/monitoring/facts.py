"""What is known of a stream at one moment: read from ledger, folders and catalogue, judged elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property

from optstream.catalogue import PAGE, Catalogue, find_catalogue
from optstream.catalogue.about import read_about
from optstream.catalogue.backends import open_storage
from optstream.catalogue.page import check_page
from optstream.errors import LedgerError, PublicationError
from optstream.ledger import Ledger, ReleaseOutline
from optstream.stream import day_of, period_from
from tasks.config import Settings
from tasks.contracts.results import PRIVATE_PERIOD, RAW, USER, newest_results
from tasks.ingest import Arrival, arrivals_of, days_with_dumps
from tasks.ingest.clock import clock_ahead
from tasks.ledger.show import read_book
from tasks.ledger.show_pages import BudgetSummary
from tasks.monitoring.audit_record import AuditRecord, last_audit
from tasks.monitoring.compared import Comparison, far_regions
from tasks.monitoring.deadlines import last_ended
from tasks.monitoring.newest_release import (
    missing_covariates,
    newest_published,
    newest_release,
    unlike_days,
)
from tasks.monitoring.published_files import lost_files
from tasks.monitoring.suspect_readings import Suspect, suspect_readings
from tasks.release.records.outcomes import Budget, budget_of

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
    """What is known of a stream at one moment.

    Attributes:
        live: Whether days are expected up to yesterday, or only as far as ledger and dumps reach (an
            archive).
        first: The first of the days to be looked at; None where there are none.
        last: The last of them; None where there are none.
        releases: Of each day its newest revision.
        holds: Of each release under way, who has it until when.
        catalogue: As published; None where there is none, or it cannot be read.
        catalogue_error: Why there is no catalogue though there should be one.
        is_own_ledger: Whether the ledger contains what the catalogue carries of it.
        arrivals: Of each day of the span without a release, where the input folder can be listed.
        refused: Of those, the days whose newest verdict says that the dump breaks its contract.
        budget: What any window has, and what the worst one has spent.
        page: The summary of the privacy budget; None before the first release.
        audit: The newest of the configured mechanism, if any.
        unlike: The days that the newest published day's self-check found unlike all others, rising.
        lost: Of listed days, what is wrong with their file.
        suspect: Of the newest days that are read, which share of each region's readings was clamped, absent
            or doubled. It depends on readings, as nothing else here but `user_suites` may.
        far: Regions whose published figures of the newest listed day are far from their own before.
        without: The newest published day, with what is wrong with each public covariate that it went without.
        page_behind: Whether a page is missing, or not of the days that were published a while ago.
        user_suites: Of the newest days, what users' suites found; it may depend on readings.
        unsaid_noise: Stream and period of each release of the budget whose noise became known, as long as
            `about.json` does not name it.
        clock_ahead: The first day to come that will be refused for its clock, why, and what to do.
    """

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
        newest = newest_published(self.releases)
        return newest if newest in self.unlike else None

    def days(self, settings: Settings) -> list[date]:
        """Return the days, or hours, to be looked at, first to last."""
        return (
            []
            if self.first is None or self.last is None
            else settings.calendar.periods(self.first, self.last)
        )


def look(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool) -> Facts:
    """Read what is known of a stream; live: whether days up to yesterday are expected.

    Opens no dump, and no measurements but those that a plan goes on from and those of the newest release. A
    catalogue that cannot be read is one of the facts. Raises LedgerError if the database refuses, or there is
    no ledger though days are published.
    """
    # the ledger before the catalogue, which is replaced before the ledger has a day as published
    releases = _releases(settings, ledger)
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
    newest = newest_release(settings, releases)
    expected = settings.calendar.periods(first, last) if first and last else []
    unreleased = [day for day in expected if day not in releases]
    return Facts(
        live=live,
        first=first,
        last=last,
        releases=releases,
        holds=_holds(settings, ledger, releases) if ledger else {},
        catalogue=catalogue,
        catalogue_error=error,
        is_own_ledger=not (ledger and catalogue and ledger.missing_heads([catalogue.ledger_head])),
        arrivals=_arrivals(settings, unreleased),
        refused=_refused(settings, unreleased),
        budget=budget_of(settings, ledger) if ledger else Budget(settings.model, Fraction(0)),
        page=_page(settings, ledger) if ledger and releases else None,
        audit=last_audit(settings),
        unlike=unlike_days(newest),
        lost=lost_files(settings, catalogue),
        suspect=_suspect(settings, releases, last),
        far=far_regions(settings, catalogue),
        without=missing_covariates(newest),
        page_behind=_page_behind(settings, ledger, catalogue, now),
        user_suites=_user_suites(settings, last),
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


def _releases(settings: Settings, ledger: Ledger | None) -> dict[date, ReleaseOutline]:
    if ledger is None:
        return {}
    # in the ledger's order a later revision of a day comes after
    return {period_from(one.period): one for one in ledger.outlines(settings.stream.name)}


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
    if not under_way:
        return {}
    stream, found = settings.stream.name, {}
    taken = [ledger.event_times(stream, kind) for kind in _TAKEN]
    for day, one in under_way.items():
        record = ledger.find(stream, one.period, one.revision)
        if record is not None:
            times = (each.get((one.period, one.revision)) for each in taken)
            since = max(filter(None, times), default=record.lease_until)
            found[day] = Hold(since, record.lease_until)
    return found


def _arrivals(settings: Settings, days: Sequence[date]) -> dict[date, Arrival]:
    try:
        found = arrivals_of(settings, days)
    except OSError:
        return {}
    return {day: arrival for day, arrival in found.items() if arrival is not None}


def _refused(settings: Settings, days: Iterable[date]) -> frozenset[date]:
    """By the newest raw or private-period results of each day; only whether they stopped it is taken."""
    refused = set()
    for day, suite, document in newest_results(settings, set(days)):
        with suppress(KeyError, TypeError):
            if suite in (RAW, PRIVATE_PERIOD) and day.isoformat() in document["meta"]["stopped"]:
                refused.add(day)
    return frozenset(refused)


def _user_suites(settings: Settings, last: date | None) -> dict[date, tuple[str, ...]]:
    """What users' suites found of the last days."""
    found: dict[date, tuple[str, ...]] = {}
    if last is None or settings.contracts_folder is None:
        return found
    recent = _recent(settings, last)
    for day, suite, document in newest_results(settings, recent):
        with suppress(KeyError, TypeError):
            if suite.startswith(USER):
                lines = document["meta"]["alarms"].get(day.isoformat(), ())
                found[day] = (*found.get(day, ()), *map(str, lines))
    return {day: lines for day, lines in found.items() if lines}


def _recent(settings: Settings, last: date) -> set[date]:
    """The periods of the last days."""
    return set(settings.calendar.periods(day_of(last) - timedelta(days=SUSPECT_DAYS - 1), last))


def _suspect(
    settings: Settings, releases: Mapping[date, ReleaseOutline], last: date | None
) -> Mapping[date, Mapping[str, Suspect]]:
    """Of the last days with a release that was not withdrawn; days without a result are left out."""
    if last is None:
        return {}
    recent = _recent(settings, last) & releases.keys()
    return suspect_readings(settings, {day for day in recent if releases[day].withdrawn is None})


def _page(settings: Settings, ledger: Ledger) -> BudgetSummary | None:
    pages = (page for page in read_book(settings, ledger) if page.name == settings.privacy.population)
    return next(pages, None)
