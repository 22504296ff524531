"""What a spend counts in temporal leakage: per step when one step changes, per period when all of it does."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import Ledger, ReleaseRecord, ReleaseState
from optstream.privacy.spends import CappedSpend, JointSpend, PeriodSpend, Spend, StepSpend
from optstream.stream import Calendar, day_of, days_from, period_from
from studies.leakage.loss import Floats
from tasks.config import Settings


def step_charges(spend: Spend) -> Floats:
    """Return what each step of the spend's period loses when only that step changes.

    A step spend its charges; a period spend charges[1] at each of its steps; a capped spend its unit charge
    at each, for any may be chosen; a joint spend its unit charge at each step that is measured. The
    recursions of leakage hold for measurements that are joint over steps too (docs/methods/leakage.md,
    section 3).

    spend: of one measurement. Returns shape (n_steps,). Raises ParameterError for a spend of no known kind:
    it has no price.
    """
    match spend:
        case StepSpend():
            # each distinct weight is priced once, exactly
            priced = {weight: float(weight * spend.unit_charge) for weight in set(spend.weights)}
            return np.array([priced[weight] for weight in spend.weights])
        case PeriodSpend():
            return np.full(spend.n_steps, float(spend.charges[1]))
        case CappedSpend():
            return np.full(spend.n_steps, float(spend.unit_charge) if spend.cap else 0.0)
        case JointSpend():
            return np.array(spend.weights) * float(spend.unit_charge)
    raise ParameterError(f"temporal leakage cannot price a {type(spend).__name__}: it is of epsilon alone")


def period_charge(spend: Spend, window_length: int) -> float:
    """Return what the spend loses when all steps of its period change.

    spend: of one measurement. window_length: a capped spend holds its cap in every window, a longer period
    perhaps several times. Raises ParameterError for a spend of no known kind.
    """
    match spend:
        case StepSpend():
            return float(sum(spend.weights) * spend.unit_charge)
        case PeriodSpend():
            return float(spend.charges[-1])
        case CappedSpend():
            windows = -(-spend.n_steps // window_length)
            return float(min(spend.n_steps, windows * spend.cap) * spend.unit_charge)
        case JointSpend():
            return float(sum(spend.largest_parts) * spend.unit_charge)
    raise ParameterError(f"temporal leakage cannot price a {type(spend).__name__}: it is of epsilon alone")


# The charged history of a stream, time point by time point, as temporal leakage counts it.

By = Literal["step", "period"]
LONGEST_HISTORY = 10_000_000


@dataclass(frozen=True, eq=False)
class History:
    """What a stream was charged, time point by time point, from its first released day to its last.

    by: whether a time point is a step or a day ("period"), whose hours add up. epsilons: (n,), 0 where
    nothing was released. days: all of them, also those without release. starts: (n_days + 1,), the time
    points at which days begin. n_releases: counted; n_reserved: left out, for nothing is drawn yet.
    """

    by: By
    calendar: Calendar
    epsilons: Floats
    days: tuple[date, ...]
    starts: NDArray[np.int64]
    n_releases: int
    n_reserved: int

    def when(self, index: int) -> str:
        """The date of a time point and, of a step, its local time."""
        day = int(np.searchsorted(self.starts, index, side="right")) - 1
        if self.by == "period":
            return self.days[day].isoformat()
        times = self.calendar.local_times(self.days[day])
        return times[index - int(self.starts[day])].isoformat(sep=" ", timespec="minutes")

    def worst_of_days(self, series: Floats) -> Floats:
        """The largest entry of each day, shape (n_days,)."""
        return np.maximum.reduceat(series, self.starts[:-1])


def history_of(settings: Settings, ledger: Ledger, by: By) -> History | None:
    """The charged history of the configured stream; None if nothing was drawn yet.

    Counts every release that was drawn, PUBLISHED, DRAWN or VOID, and each revision: all are charged. With
    by="step" a spend counts what one step is charged, a period spend at each of its steps; with by="period"
    what its period is charged when all of its steps change, the hours of a day together. A customer is in
    one node of each level, so levels add up. Streams that share the population are not counted.
    Raises ConfigurationError if the calendar is not the ledger's, and for more than 10 million time points.
    """
    records = ledger.releases(settings.stream.name)
    drawn = [record for record in records if record.state is not ReleaseState.RESERVED]
    if not drawn:
        return None
    calendar = settings.calendar
    released = [day_of(period_from(record.period)) for record in drawn]
    days = tuple(days_from(min(released), max(released)))
    steps = np.array([calendar.first_step(day) for day in (*days, days[-1] + timedelta(days=1))])
    starts = steps - steps[0] if by == "step" else np.arange(len(days) + 1)
    if starts[-1] > LONGEST_HISTORY:
        raise ConfigurationError(
            f"the history from {days[0]} to {days[-1]} has {starts[-1]:,} steps; at most {LONGEST_HISTORY:,} "
            "are followed one by one: use --by period"
        )
    epsilons = np.zeros(int(starts[-1]))
    for record, day in zip(drawn, released, strict=True):
        _check_calendar(record, day, calendar)
        if by == "step":
            _add_steps(epsilons, record, int(steps[0]))
        else:
            window = settings.privacy.window
            epsilons[(day - days[0]).days] += sum(period_charge(one, window) for one in record.spends)
    return History(by, calendar, epsilons, days, starts, len(drawn), len(records) - len(drawn))


def _check_calendar(record: ReleaseRecord, day: date, calendar: Calendar) -> None:
    first, end = calendar.first_step(day), calendar.first_step(day + timedelta(days=1))
    if not first <= record.first_step <= record.first_step + record.n_steps <= end:
        raise ConfigurationError(
            f"the ledger counts the steps of {day} otherwise than the configured calendar; use the "
            "configuration with which the stream was released"
        )


def _add_steps(epsilons: Floats, record: ReleaseRecord, first_step: int) -> None:
    """Add what each step of a release is charged, in place."""
    for spend in record.spends:
        place = spend.first_step - first_step
        epsilons[place : place + spend.n_steps] += step_charges(spend)
