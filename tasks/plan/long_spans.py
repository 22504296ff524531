"""The loss of a customer over months and years by the configured plan; composed once, kept for statements."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from fractions import Fraction
from typing import Any

from optstream.catalogue import LongSpan
from optstream.errors import ParameterError
from optstream.privacy import Spend
from optstream.privacy.horizon import HorizonLoss, losses_of_days
from optstream.stream import days_from
from tasks.config import Settings
from tasks.ledger.show import DELTA, HORIZONS
from tasks.release.mechanism import mechanism_for, plan_of
from tasks.release.run import terms_of
from tasks.trusted.files import kept

_made: dict[tuple[object, ...], list[dict[str, Any]]] = {}
"""Documents of this process, by the facts that they are a function of."""


def long_spans_of(settings: Settings, day: date, revision: int) -> tuple[LongSpan, ...]:
    """Return what all readings of one customer in 30 and in 365 days lose by the plan, rounded up."""
    # a share that the model chooses is a function of other streams' files, too
    share = str(settings.budget.stream_share)
    plan = (settings.configuration_hash, share, terms_of(settings).hierarchy_hash, day.year, revision > 0)
    if plan not in _made:
        _made[plan] = kept(
            settings.long_spans_file,
            plan,
            lambda: [
                LongSpan.rounded(n_days, loss.epsilon, loss.delta, loss.plain, loss.composed).to_json()
                for n_days, loss in plan_horizons(settings, day, revision)
            ],
        )
    return tuple(LongSpan.read(span) for span in _made[plan])


def plan_horizons(settings: Settings, day: date, revision: int = 0) -> tuple[tuple[int, HorizonLoss], ...]:
    """Return the most that so many days in a row lose by the plan, planned revisions included (Lemma 14)."""
    days = days_from(date(day.year - 1, 1, 1), date(day.year + 1, 12, 31))
    planned = range(1 + settings.budget.revisions) if settings.budget.revisions else (revision,)
    by_revision = zip(*(_plans(settings, days, one) for one in planned), strict=True)
    plans = [[spend for plan in of_day for spend in plan] for of_day in by_revision]
    of_window = sum(
        mechanism_for(settings, day, one).epsilon + settings.reporting_epsilon(one) for one in planned
    )
    window = settings.model.window_length, Fraction(of_window)
    return tuple(zip(HORIZONS, losses_of_days(plans, HORIZONS, DELTA, window=window), strict=True))


def _plans(settings: Settings, days: Sequence[date], revision: int) -> Iterator[Sequence[Spend]]:
    """Each day's plan, or its hours'; a day that is not whole steps is never released, and has none."""
    calendar, known = settings.calendar, {}
    for day in days:
        planned, released = list[Spend](), tuple[date, ...]()
        with suppress(ParameterError):
            calendar.n_steps(day)
            released = calendar.periods_of(day)
        for period in released:
            n_steps = calendar.n_steps(period)
            parts = tuple(feature.parts for feature in settings.features(period))
            alike = (n_steps, parts, settings.tree_of(period))
            if alike not in known:
                known[alike] = mechanism_for(settings, period, revision)
            planned += plan_of(settings, known[alike], period, revision)
        yield planned
