"""What a customer's whole month or year loses by the configured plan: the same figures all year long."""

from collections.abc import Iterator, Sequence
from datetime import date

from optstream.privacy import Spend
from optstream.privacy.horizon import HorizonLoss, loss_of_days
from optstream.stream import days_from
from tasks.config import Settings
from tasks.ledger.horizon import DELTA, HORIZONS
from tasks.release.build_mechanism import mechanism_for


def plan_horizons(settings: Settings, day: date, revision: int = 0) -> tuple[tuple[int, HorizonLoss], ...]:
    """The most that so many days in a row lose, this one among them, all released by the plan (Lemma 14).

    A function of the configuration and the day's year. Each day is planned as if nothing had been released
    before it, which never leaves a measurement out.
    """
    days = days_from(date(day.year - 1, 1, 1), date(day.year + 1, 12, 31))
    plans = list(_plans(settings, days, revision))
    mechanism = mechanism_for(settings, day, revision)
    model = mechanism.model
    window = (model.window_length, mechanism.epsilon) if model.windows == "sliding" else None
    found = [(n_days, loss_of_days(plans, n_days, DELTA, window=window)) for n_days in HORIZONS]
    return tuple(found)


def _plans(settings: Settings, days: Sequence[date], revision: int) -> Iterator[Sequence[Spend]]:
    """Each day's plan, or its hours'. Periods of the same length, parts and tree have one mechanism."""
    calendar, known = settings.calendar, {}
    for day in days:
        planned: list[Spend] = []
        for period in calendar.periods_of(day):
            n_steps = calendar.n_steps(period)
            parts = tuple(feature.parts for feature in settings.features(period))
            alike = (n_steps, parts, settings.tree_of(period))
            if alike not in known:
                known[alike] = mechanism_for(settings, period, revision)
            planned += known[alike].plan(n_steps, calendar.first_step(period))
        yield planned
