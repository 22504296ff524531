"""The missing days of a span and their cost; the days that a night takes up, and when."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import groupby
from typing import Any, Literal

from pydantic import Field

from optstream.catalogue import find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.documents import Period
from optstream.catalogue.layout import PAGE
from optstream.catalogue.metadata import check_metadata, check_page
from optstream.errors import ConfigurationError, LedgerError, OptStreamError, PublicationError
from optstream.ledger import GuaranteeLoss, Key, Ledger, ReleaseOutline, WindowLoss
from optstream.ledger.terms import difference
from optstream.privacy import PrivacyModel, Spend, worst_window
from optstream.privacy.spends import CUSTOMERS
from optstream.stream import day_of, period_from
from tasks.config import Settings
from tasks.config.schema import clock_of, minutes_of, schedule_problems
from tasks.ingest import days_with_dumps
from tasks.ledger.show import refused_changes
from tasks.monitor.facts import last_ended, late_from
from tasks.release.mechanism import Mechanism, mechanism_for, plan_of
from tasks.release.outcomes import Exact, Printed, RunDocument, as_float, left_out
from tasks.release.run import Ended, Requested, Run, Status, enrol, is_due, look_up, terms_of


class Span(Printed):
    """A span and the days that a backfill skips: finished days, by their state, and days without a dump."""

    first: Period = Field(serialization_alias="from")
    last: Period = Field(serialization_alias="to")
    over: dict[str, int]
    absent: tuple[Period, ...] = Field(serialization_alias="without_dump")


class BackfillPlan(Span):
    """Rising days: never reserved, with a dump (missing), reserved or drawn by an earlier run (begun), or
    released, and delivered once more (delivered)."""

    missing: tuple[Period, ...]
    begun: tuple[Period, ...]
    delivered: tuple[Period, ...] | None = left_out()

    @property
    def span(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Span.model_fields}

    @property
    def to_run(self) -> tuple[date, ...]:
        return tuple(sorted((*self.missing, *self.begun, *(self.delivered or ()))))

    def months(self) -> list[tuple[date, ...]]:
        """The days to run, month by month: each is one subflow."""
        return [tuple(days) for _, days in groupby(self.to_run, key=lambda day: (day.year, day.month))]


def plan_backfill(settings: Settings, ledger: Ledger, days: Sequence[date]) -> BackfillPlan:
    """Sort the days by their state. Opens no dump, changes nothing. days: rising, at least one."""
    calendar, wanted = settings.calendar, set(days)
    steps = range(calendar.first_step(days[0]), calendar.first_step(days[-1]) + calendar.n_steps(days[-1]))
    # an outline begins at its first spend, and in the ledger's order a later revision comes after
    outlines = {period_from(one.period): one for one in ledger.outlines(settings.stream.name, steps)}
    known = {day: one for day, one in outlines.items() if day in wanted}
    there = days_with_dumps(settings)
    unknown = [day for day in days if day not in known]
    over = Counter(
        "withdrawn" if one.withdrawn else one.state.lower()
        for one in known.values()
        if not one.state.is_under_way
    )
    return BackfillPlan(
        first=days[0],
        last=days[-1],
        missing=tuple(day for day in unknown if day in there),
        begun=tuple(day for day in days if day in known and known[day].state.is_under_way),
        absent=tuple(day for day in unknown if day not in there),
        over=dict(sorted(over.items())),
        delivered=delivered_days(settings, ledger, known) or None,
    )


def delivered_days(
    settings: Settings, ledger: Ledger, known: Mapping[date, ReleaseOutline] | None = None
) -> tuple[date, ...]:
    """Return the days, rising, whose next planned revision was delivered. known: newest releases, by day."""
    planned = range(1, 1 + (settings.budget.revisions or 0))
    there = {revision: days_with_dumps(settings.delivered(revision)) for revision in planned}
    if known is None and any(there.values()):
        known = {period_from(one.period): one for one in ledger.outlines(settings.stream.name)}
    near = ((day, one) for day, one in (known or {}).items() if day in there.get(one.revision + 1, ()))
    return tuple(sorted(day for day, one in near if is_due(settings, day, one)))


# What a backfill would charge, as the ledger would judge it, reserving nothing; and documents of it.


class BackfillCost(Printed):
    """The worst window before and after, infinite where noise was compromised, and the refused days."""

    refused: tuple[Period, ...] = Field(serialization_alias="would_be_refused")
    grant: Exact
    grant_float: float | None = as_float("grant")
    before: Exact = Field(serialization_alias="spent")
    spent_float: float | None = as_float("before")
    after: Exact = Field(serialization_alias="would_be_spent")
    would_be_spent_float: float | None = as_float("after")


def cost_of(settings: Settings, ledger: Ledger, days: Sequence[date]) -> BackfillCost:
    """Plan the days in order, each after the ledger's charges and the days before; LedgerError as a run."""
    if changed := refused_changes(settings, ledger):
        known = ledger.terms(settings.stream.name)
        what = ", ".join(changed) + ": take the values of the others in this configuration"
        if known is not None:
            what = difference(changed, known, terms_of(settings))
        raise LedgerError(
            f"the ledger has stream {settings.stream.name!r} or its privacy budget under another {what}"
        )
    grant, model, calendar = settings.privacy.population, settings.model, settings.calendar
    is_known = any(terms.grant == grant for terms in map(ledger.terms, ledger.streams()) if terms)
    before: Fraction | float = Fraction(0)
    if is_known and days:
        first, last = calendar.first_step(days[0]), calendar.first_step(days[-1]) + calendar.n_steps(days[-1])
        before = ledger.window_spent(grant, range(first, last)).epsilon
    after, refused = before, []
    for day, _, losses in priced(settings, ledger, days, grant if is_known else None):
        if any(one.is_broken for one in losses):
            refused.append(day)
        else:
            after = max(after, losses[0].loss.epsilon)
    return BackfillCost(refused=tuple(refused), grant=model.budget, before=before, after=after)


def priced(
    settings: Settings,
    ledger: Ledger,
    days: Iterable[date],
    grant: str | None,
    amended: PrivacyModel | None = None,
) -> Iterator[tuple[date, tuple[Spend, ...], list[GuaranteeLoss]]]:
    """Yield each day's plan and what it loses after the ledger's charges, None where nothing was charged, and
    the days before that fit. amended: the model under which charges are priced."""
    calendar, window = settings.calendar, settings.privacy.window
    recent = list[Spend]()
    for day in days:
        first_step, n_steps = calendar.first_step(day), calendar.n_steps(day)
        recent = [spend for spend in recent if spend.first_step + spend.n_steps > first_step - window]
        mechanism: Mechanism = mechanism_for(settings, day)
        state = None
        if mechanism.adaptive:
            key, steps = Key(settings.stream.name, day.isoformat()), range(first_step, first_step + n_steps)
            near = ledger.charged_near(key, steps, amended)
            state = mechanism.recall([*near, *(one for one in recent if one.stage != CUSTOMERS)])
        plan = plan_of(settings, mechanism, day, state=state)
        if grant is not None:
            losses = ledger.judge_plan(grant, [*recent, *plan], amended)
        else:
            cost = worst_window([*recent, *plan], window)
            losses = [GuaranteeLoss(0, settings.model, WindowLoss(cost.epsilon, cost.first_step))]
        if not any(one.is_broken for one in losses):
            recent += plan
        yield day, plan, losses


class PlanDocument(BackfillCost, BackfillPlan):
    """The plan of a span and its cost; holds no reading."""

    format: Literal["optstream.backfill-plan/1"] = "optstream.backfill-plan/1"
    stream: str
    window_steps: int


class BackfillDocument(RunDocument, Span):
    """How each day of a span ended, the days that were skipped, and the budget."""

    format: Literal["optstream.backfill/1"] = "optstream.backfill/1"


# The rest of a stopped run: days that it holds, until when, and days that it never began.

MOST_LISTED = 10


def words_of_left(
    settings: Settings, ledger: Ledger, days: Sequence[date], now: datetime, again: str
) -> list[str]:
    """Return the rest of the days of a stopped run, in lines for its operator; changes nothing."""
    plan, now = plan_backfill(settings, ledger, days), ledger.lease_time(now)
    found = [ledger.latest(settings.stream.name, day.isoformat()) for day in plan.begun]
    under_way = [one for one in found if one is not None and one.state.is_under_way]
    if not under_way and not plan.missing:
        return ["interrupted: every day that was asked for is done with, or has no dump; nothing is left"]
    lines = [
        f"interrupted: of {len(days)} days {len(under_way)} are under way and {len(plan.missing)} "
        "were not begun; nothing is lost, and nothing is drawn twice"
    ]
    held = [one for one in under_way if one.lease_until > now]
    for one in under_way[:MOST_LISTED]:
        until = f"held by the stopped run until {one.lease_until:%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"  {one.period} {one.state}: {until if one in held else 'free'}")
    if len(under_way) > MOST_LISTED:
        lines.append(f"  and {len(under_way) - MOST_LISTED} more")
    if not held:
        return [*lines, f"go on at any time with `{again}`"]
    return [
        *lines,
        f"go on after {max(one.lease_until for one in held):%H:%M:%S} UTC with `{again}`, which before that "
        "leaves held days alone; once that run is gone for certain, "
        f"`optstream ledger release-lease {held[0].period} --why …` frees a day at once",
    ]


# Whether a run has anything to do: by ledger and published folder, before an orchestrator is loaded.


def over_already(run: Run, days: Sequence[date]) -> list[Ended] | None:
    """Return the outcomes of days with nothing left to do, None where a run would do anything."""
    if run.restate:
        return None
    newest = [run.ledger.latest(run.stream, day.isoformat()) for day in days]
    if any(record is None or record.state.is_under_way for record in newest):
        return None
    enrol(run)  # which refuses another guarantee than the ledger has
    if run.ledger.vintages(run.stream, unpublished=True):
        return None
    from tasks.release.revise import changes_any, due  # most of a second, which no command's help takes

    if (waiting := due(run, days)) and changes_any(run, waiting):
        return None
    if not pages_are_made(run.settings):
        return None
    ended = [look_up(run, Requested(day)) for day in days]
    over = [day for day in ended if isinstance(day, Ended)]
    return over if len(over) == len(days) else None  # else another run has just begun a revision


def pages_are_made(settings: Settings) -> bool:
    """Whether pages and their figures are of the newest catalogue, as they are unless a run died."""
    place = open_storage(settings.published_folder)
    try:
        catalogue = find_catalogue(place)
        if catalogue is None or not place.is_file(PAGE) or not settings.report_file.is_file():
            return False
        return not check_page(place, catalogue) and not any(check_metadata(place, catalogue))
    except PublicationError:
        return False


# A scheduled night: when it looks, at which days, and whether something is left that should be published.

LOOK_EVERY = 30  # minutes between the looks of a night
PATIENT = (Status.WAITING, Status.BUSY)  # what may end well by itself, until the day is late


class UnreleasedError(OptStreamError):
    """A night ended with a day that should be published and is not."""


def looks_of(settings: Settings) -> tuple[str, ...]:
    """Return the crons of the night's looks, half-hourly until [watch] late_after, in the stream's zone."""
    schedule = settings.scheduling
    for problem in schedule_problems(schedule, settings.watching, settings.stream):
        raise ConfigurationError(f"{settings.file}: {problem}")
    first = clock_of(schedule.cron)
    if first is None:
        return (schedule.cron,)
    last, days = minutes_of(settings.watching.late_after), " ".join(schedule.cron.split()[2:])
    hours: dict[int, list[str]] = {}
    for minute in [*range(first, last, LOOK_EVERY), last]:
        hours.setdefault(minute % 60, []).append(str(minute // 60))
    return tuple(f"{minute} {','.join(found)} {days}" for minute, found in hours.items())


def days_of_night(settings: Settings, ledger: Ledger, now: datetime) -> list[date]:
    """Return yesterday and, rising, the days before that a night still takes up."""
    last = last_ended(settings, now)
    first = settings.watching.first_day
    if first is None:
        known = (day_of(period_from(one.period)) for one in ledger.outlines(settings.stream.name))
        first = min(known, default=day_of(last))
    first = max(first, day_of(last) - timedelta(days=settings.scheduling.catch_up_days - 1))
    given_up = set(settings.watching.accepted_gaps)
    return [one for one in settings.calendar.periods(first, last) if day_of(one) not in given_up]


def night_of(
    settings: Settings, ended: Sequence[Ended], absent: Iterable[date], now: datetime
) -> tuple[list[str], list[str]]:
    """How a look ended, and what should be published and is not; what waits has time until it is late."""
    words: list[str] = []
    left: list[str] = []
    for day in absent:
        said = f"{day} waiting: no dump"
        (left if now >= late_from(settings, day) else words).append(said)
    for one in ended:
        status = one.status
        said = f"{one.day} {status.value}: {one.message}"
        if status.is_good:
            words.append(f"{one.day} {status.value}")
        elif status in PATIENT and now < late_from(settings, one.day):
            words.append(said)
        else:
            left.append(said)
    return words or ["nothing to do"], left
