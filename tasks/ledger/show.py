"""What the ledger holds, in dates: terms, releases with their charge, and what each window has left."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import dropwhile
from math import inf
from typing import Annotated, Any, Literal

from pydantic import Field, InstanceOf, PlainSerializer, WithJsonSchema

from optstream.catalogue.documents import Period
from optstream.errors import LedgerError, OptStreamError, ParameterError
from optstream.ledger import GuaranteeLoss, Ledger, ReleaseState, StreamTerms
from optstream.ledger.records import continues
from optstream.ledger.terms import OF_GRANT
from optstream.privacy import worst_window
from optstream.privacy.accountant import Compose, composed
from optstream.privacy.horizon import HorizonLoss, loss_over
from optstream.privacy.model import Currency
from optstream.stream import Calendar, day_of
from tasks.config import Settings
from tasks.release.mechanism import DELTA, HORIZONS, plan_of, planner_for, recall
from tasks.release.outcomes import Exact, Printed, as_float, is_none, left_out
from tasks.release.run import terms_of
from tasks.trusted.files import kept_composition

# The values of `optstream ledger show`, with dates where the calendar is known.

_CALENDAR = re.compile(r"([0-9]+) min, (.+?), (elapsed|fixed)(, by the hour)?")


class ChargedRelease(Printed):
    """A release and the most that it alone takes from any window, in the privacy budget's currency."""

    period: str = Field(serialization_alias="date")
    revision: int
    state: Annotated[
        ReleaseState,
        PlainSerializer(lambda state: state.value.lower()),
        WithJsonSchema({"enum": [state.value.lower() for state in ReleaseState]}),
    ]
    epsilon: Exact = Field(serialization_alias="charged")
    charged_float: float | None = as_float("epsilon")


class StreamPage(Printed):
    """A stream's terms, how many releases it has in each state, and those of the days that are shown."""

    stream: str
    terms: Annotated[
        InstanceOf[StreamTerms], PlainSerializer(StreamTerms.guarantee), WithJsonSchema({"type": "object"})
    ]
    counts: Annotated[
        dict[ReleaseState, int],
        PlainSerializer(lambda counts: {state.value.lower(): count for state, count in counts.items()}),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "integer"}}),
    ] = Field(serialization_alias="n_releases")
    releases: tuple[ChargedRelease, ...]


class DayHeadroom(Printed):
    """A day: the least that any window with one of its steps has left, -inf where noise was compromised.

    may: whether the configured stream may be released on it, with what would stop it; None where it has a
    release already, or where the stream is not of this budget.
    """

    day: Period = Field(serialization_alias="date")
    left: Exact
    left_float: float | None = as_float("left")
    may: bool | None = Field(None, serialization_alias="may_be_released")
    because: str = ""


Minute = Annotated[
    InstanceOf[datetime],
    PlainSerializer(lambda moment: moment.isoformat(timespec="minutes")),
    WithJsonSchema({"type": "string"}),
]


class WindowHeadroom(Printed):
    """The windows that begin at first_step to last_step have this left; times are None without a calendar."""

    first_step: int
    last_step: int
    begin_first: Minute | None
    begin_last: Minute | None
    left: Exact
    left_float: float | None = as_float("left")


class StreamCharge(Printed):
    """What a stream is charged in a window."""

    stream: str
    charged: Exact
    charged_float: float | None = as_float("charged")


class FullestWindow(Printed):
    """What each stream is charged in the fullest window with a step of the days that are shown."""

    first_step: int
    charged: Exact
    charged_float: float | None = as_float("charged")
    streams: tuple[StreamCharge, ...]


class BudgetSummary(Printed):
    """A privacy budget: its streams, days and windows; terms are of any of its streams.

    free_from, free_from_time: every window that begins there or later has the whole budget; None if nothing
    was ever charged, or without a calendar. shared: None without any step.
    """

    terms: InstanceOf[StreamTerms] = Field(exclude=True)
    calendar: InstanceOf[Calendar] | None = Field(exclude=True)
    name: str = Field(serialization_alias="grant")
    window_steps: int
    kind: Literal["sliding"] = Field("sliding", serialization_alias="windows")
    counted: str = Field(serialization_alias="calendar")
    epsilon: Exact
    epsilon_float: float | None = as_float("epsilon")
    currency: Literal["rho"] | None = left_out()
    delta: Exact | None = left_out()
    delta_float: float | None = as_float("delta", exclude_if=is_none)
    rho: Exact | None = left_out()
    rho_float: float | None = as_float("rho", exclude_if=is_none)
    streams: tuple[StreamPage, ...]
    days: tuple[DayHeadroom, ...]
    windows: tuple[WindowHeadroom, ...] = Field(serialization_alias="window_groups")
    shared: FullestWindow | None = Field(serialization_alias="shared_window")
    free_from: int | None = Field(serialization_alias="all_free_from_step")
    free_from_time: Minute | None = Field(serialization_alias="all_free_from")

    @property
    def shared_words(self) -> str:
        """What each stream is charged in the fullest window; "" for a budget of one stream."""
        if self.shared is None or len(self.shared.streams) < 2:
            return ""
        start, model = self.shared.first_step, self.terms.model
        begin = (
            f"step {start}" if self.calendar is None else f"{self.calendar.local_time(start):%Y-%m-%d %H:%M}"
        )
        parts = ", ".join(f"{one.stream} {float(one.charged):.6g}" for one in self.shared.streams)
        return (
            f"{parts}; together {model.currency} {float(self.shared.charged):.6g} of "
            f"{float(model.budget):.6g}, in the fullest window of these days, which begins at {begin}"
        )


def in_words(one: GuaranteeLoss) -> str:
    """What a plan would do to a privacy guarantee that it breaks."""
    lost = f"some window would lose {one.guarantee.currency} {float(one.loss.epsilon):.6g}"
    if one.free_from is None:
        return lost
    gives = float(one.guarantee.budget)
    return f"{lost} by privacy guarantee {one.number}, which gives {gives:.6g} and holds for days in it"


def calendar_of(terms: StreamTerms) -> Calendar | None:
    """The calendar that `tasks.release.run.terms_of` wrote into a stream's terms; None if others did."""
    if found := _CALENDAR.fullmatch(terms.calendar):
        with suppress(ParameterError):
            kind: Literal["elapsed", "fixed"] = "fixed" if found[3] == "fixed" else "elapsed"
            return Calendar(int(found[1]), found[2], kind, "hour" if found[4] else "day")
    return None


def _all_terms(ledger: Ledger) -> list[StreamTerms]:
    return [terms for terms in map(ledger.terms, ledger.streams()) if terms is not None]


def refused_changes(settings: Settings, ledger: Ledger) -> list[str]:
    """Return what of the configuration's privacy guarantee a run is refused for."""
    stream, wanted = settings.stream.name, terms_of(settings)
    known, last = ledger.terms(stream), ledger.last_release(stream)
    if known is None or last is None:
        others = [one for one in _all_terms(ledger) if one.stream != stream and one.grant == wanted.grant]
        differing = {name for other in others for name in other.differing(wanted)}
        return [name for name in OF_GRANT if name in differing]
    changed = known.differing(wanted)
    to_come = continues(known.trees, wanted.trees, last.end)
    return [] if changed == ["hierarchy_hash"] and to_come else changed


DAYS_SHOWN = 14


def read_book(
    settings: Settings, ledger: Ledger, first: date | None = None, last: date | None = None
) -> tuple[BudgetSummary, ...]:
    """Return a page for each privacy budget, and plan each day without a release; nothing is reserved."""
    grants: dict[str, list[StreamTerms]] = {}
    for known in _all_terms(ledger):
        grants.setdefault(known.grant, []).append(known)
    return tuple(_page(settings, ledger, members, first, last) for members in grants.values())


def _newest(ledger: Ledger, streams: Iterable[str]) -> int | None:
    """Return the first step of the last release of these streams."""
    last = map(ledger.last_release, streams)
    return max((release.first_step for release in last if release is not None), default=None)


def _page(
    settings: Settings, ledger: Ledger, members: list[StreamTerms], first: date | None, last: date | None
) -> BudgetSummary:
    terms = members[0]
    calendar, model, grant = calendar_of(terms), terms.model, terms.grant
    newest, charged = _newest(ledger, (one.stream for one in members)), ledger.last_charged(grant)
    free_from = None if charged is None else charged.last_start + 1
    days = () if calendar is None else _days(calendar, model.window_length, newest, free_from, first, last)
    steps = range(0)
    if calendar is not None and days:
        steps = range(calendar.first_step(days[0]), calendar.first_step(calendar.after(days[-1])))
    elif newest is not None and free_from is not None:
        # as many windows back as days are shown
        steps = range(newest - DAYS_SHOWN * model.window_length, max(free_from, newest) + 1)
    stretches = ledger.charged_windows(grant, steps)
    pages = tuple(_stream_page(ledger, one, steps) for one in members)
    released = {release.period for page in pages for release in page.releases}
    own = any(one.stream == settings.stream.name for one in members) and calendar == settings.calendar
    if first is None:
        days = tuple(dropwhile(lambda day: day != last and day.isoformat() not in released, days))
    headrooms = []
    for day in days:
        assert calendar is not None
        start, stop = calendar.first_step(day), calendar.first_step(calendar.after(day))
        near = [one for one in stretches if start - model.window_length < one.last_start]
        most = max((one.charged for one in near if one.first_start < stop), default=Fraction(0))
        is_open = own and day.isoformat() not in released
        because = _refusal(settings, ledger, grant, day) if is_open else ""
        may = not because if is_open else None
        headrooms.append(DayHeadroom(day=day, left=model.budget - most, may=may, because=because))
    shown = stretches
    if not first and not last and newest is not None:
        # by default, only the windows that the last release or a later one meets
        since = newest - model.window_length + 1
        shown = tuple(one for one in stretches if one.charged and one.last_start >= since)
    shared, in_rho = None, dict[str, Any]()
    if steps:
        fullest, by_stream = ledger.shared_window(grant, steps)
        charges = tuple(StreamCharge(stream=name, charged=lost) for name, lost in by_stream.items())
        shared = FullestWindow(first_step=fullest.first_step, charged=fullest.epsilon, streams=charges)
    if model.rho is not None:
        in_rho = {"currency": "rho", "delta": model.delta, "rho": model.rho}
    return BudgetSummary(
        terms=terms,
        calendar=calendar,
        name=grant,
        window_steps=model.window_length,
        counted=terms.calendar,
        epsilon=model.epsilon,
        **in_rho,
        streams=pages,
        days=headrooms,
        windows=tuple(
            WindowHeadroom(
                first_step=one.first_start,
                last_step=one.last_start,
                begin_first=calendar and calendar.local_time(one.first_start),
                begin_last=calendar and calendar.local_time(one.last_start),
                left=model.budget - one.charged,
            )
            for one in shown
        ),
        shared=shared,
        free_from=free_from,
        free_from_time=None if calendar is None or free_from is None else calendar.local_time(free_from),
    )


def _days(
    calendar: Calendar,
    window_length: int,
    newest: int | None,
    free_from: int | None,
    first: date | None,
    last: date | None,
) -> tuple[date, ...]:
    """The requested days, or a fortnight of history and the days after it up to the first uncharged."""
    first = first and calendar.periods(first, first + timedelta(days=1))[0]
    last = last and calendar.periods(last - timedelta(days=1), last)[-1]
    if newest is not None:
        latest = calendar.period_from_step(newest)
        first = first or min(calendar.after(latest, 1 - DAYS_SHOWN), last or latest)
        if last is None:
            last = max(first, calendar.after(latest))
            while free_from is not None and calendar.first_step(last) - window_length + 1 < free_from:
                last = calendar.after(last)
    first, last = first or last, last or first
    return () if first is None or last is None else tuple(calendar.periods(first, last))


def _stream_page(ledger: Ledger, terms: StreamTerms, steps: range) -> StreamPage:
    found = []
    for record in filter(None, (ledger.find(one.key) for one in ledger.outlines(terms.stream, steps))):
        charged = worst_window(record.spends, terms.model.window_length).epsilon
        facts = {name: getattr(record, name) for name in ("period", "revision", "state")}
        found.append(ChargedRelease(**facts, epsilon=charged))
    counts = ledger.count_by_state(terms.stream)
    return StreamPage(stream=terms.stream, terms=terms, counts=counts, releases=tuple(found))


def _refusal(settings: Settings, ledger: Ledger, grant: str, day: date) -> str:
    """Return what stops a release of the configured stream on a day; "" if nothing does."""
    try:
        mechanism = planner_for(settings, day)
        memory = recall(settings, ledger, mechanism, day, 0)
        judged = ledger.judge_plan(grant, plan_of(settings, mechanism, day, state=memory.state))
    except OptStreamError as error:
        return str(error)
    return next((in_words(one) for one in judged if one.is_broken), "")


# What one customer has lost over the days of a month or a year, from the ledger alone.


def _of_loss(read: Callable[[HorizonLoss], Any], compromised: Any) -> Any:
    return Field(default_factory=lambda known: read(known["loss"]) if known["loss"] else compromised)


class Horizon(Printed):
    """What all readings of one customer on the days lose; loss: None where noise was compromised."""

    loss: InstanceOf[HorizonLoss] | None = Field(exclude=True)
    format: Literal["optstream.ledger-horizon/1"] = "optstream.ledger-horizon/1"
    grant: str
    first: Period
    last: Period
    n_days: int
    currency: Currency = _of_loss(lambda loss: "rho" if loss.composed == "rho" else "epsilon", "epsilon")
    delta: Exact
    delta_float: float | None = as_float("delta")
    epsilon_float: float | None = _of_loss(lambda loss: loss.epsilon, None)
    plain_sum: Exact = _of_loss(lambda loss: loss.plain, inf)
    plain_sum_float: float | None = as_float("plain_sum")
    composed: str | None = _of_loss(lambda loss: loss.composed, None)


class Book(Printed):
    """Terms, releases, and what each window has left. For the trusted zone.

    horizons: of the configured stream's privacy budget.
    """

    format: Literal["optstream.ledger-show/1"] = "optstream.ledger-show/1"
    stream: str
    changed_in_configuration: list[str]
    grants: tuple[BudgetSummary, ...]
    horizons: tuple[Horizon, ...]


def read_horizons(settings: Settings, ledger: Ledger) -> tuple[Horizon, ...]:
    """Return the loss of the last 30 and 365 days, up to the newest release; () before the first."""
    compose = kept_composition(settings.composed_file)
    try:
        return tuple(read_horizon(settings, ledger, n_days, compose=compose) for n_days in HORIZONS)
    except LedgerError:
        return ()


def read_horizon(
    settings: Settings,
    ledger: Ledger,
    n_days: int,
    delta: Fraction = DELTA,
    last: date | None = None,
    compose: Compose = composed,
) -> Horizon:
    """Compose the charges of the privacy budget on `n_days` days up to `last`; reserves nothing."""
    terms = ledger.terms(settings.stream.name)
    calendar = None if terms is None else calendar_of(terms)
    if terms is None or calendar is None:
        raise LedgerError(
            f"the ledger does not know the stream {settings.stream.name}, or in which days it counts: "
            "the first `optstream run` enrols it"
        )
    if last is None:
        siblings = (one.stream for one in ledger.siblings(settings.stream.name))
        newest = _newest(ledger, [settings.stream.name, *siblings])
        if newest is None:
            raise LedgerError(f"{settings.stream.name} has no release yet: nothing was lost")
        last = day_of(calendar.period_from_step(newest))
    first = last - timedelta(days=n_days - 1)
    steps = calendar.steps_over(first, last)
    spent = ledger.spent_over(terms.grant, steps)
    loss = None
    if not spent.compromised:
        loss = loss_over(spent.spends, delta, adaptive=spent.adaptive, window=spent.window, compose=compose)
    return Horizon(loss=loss, grant=terms.grant, first=first, last=last, n_days=n_days, delta=delta)
