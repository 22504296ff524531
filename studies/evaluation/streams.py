"""Studies of what a mechanism makes of its own past: a stream from its first day, and days unlike all others.

The load is 2013 to 2016; nothing is learned from raw values, and a stream's past is what was drawn of it.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from optstream.errors import ParameterError
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource
from optstream.stream import Measured
from studies.evaluation.build import on_series
from studies.evaluation.data import ALL_YEARS, BEGINNING, Load, Span, StudyData, Values
from studies.evaluation.experiments import CONTENDERS, LEAD_DAYS, Cell, Trial, TrialResult
from studies.evaluation.happenings import HAPPENINGS, JOINS, NOTHING, before, changed
from studies.evaluation.metrics import covered, mean_absolute_error, step_errors
from studies.evaluation.releases import Released, release_days

STREAM_SPANS = {span.name: span for span in (ALL_YEARS, BEGINNING)}
LEARNED_DAYS = 28
"""Of a stream, after which its bands and revisions are looked at."""
REVISED_AFTER, REVISED_EVERY = (1, 7, 14), 7
DAYS_AFTER = 3
MOST_LEAD_DAYS = 35
"""Days before a day unlike all others, for a mechanism that learns: past its first three lessons."""
FIRST = "the first day of a stream"


def stream(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return a stream from its first day: errors of each year, of the first day, bands, and revised
    estimates.
    """
    span, load = Span.named(cell.span, STREAM_SPANS), _history(data)
    rows = span.rows(load, 0)
    truth = load.values[rows.start : rows.stop]
    mechanism = on_series(cell, load.regions, load.public_days)
    again = Revisions(mechanism, len(truth)) if mechanism.revises else None
    looks = trial == cell.trials[0]
    released = release_days(
        mechanism,
        truth,
        load.running_day(rows.start),
        noise,
        accounted=looks,
        told=again.take if again else None,
    )
    values = _leaves(released.values, truth)
    metrics = {**step_errors(values, truth), "first": mean_absolute_error(values[0], truth[0])}
    metrics["mean_load"] = float(truth.mean())
    for year, days in _by_year(span):
        own = slice(days.start, days.stop)
        metrics[f"mae_{year}"] = mean_absolute_error(values[own], truth[own])
        if released.errors is not None:
            late = slice(max(days.start, LEARNED_DAYS), days.stop)
            metrics[f"covered_{year}"] = covered(values[late], truth[late], released.errors[late])
    if released.errors is not None:
        late = slice(LEARNED_DAYS, None)
        metrics["covered"] = covered(values[late], truth[late], released.errors[late])
    if again is not None:
        metrics |= again.errors(values, truth)
    return TrialResult(trial, metrics, released.drawn, released.drawn_aligned), mechanism.epsilon


class Revisions:
    """Every seventh day estimated again, from what was measured in so many days after it.

    It is told each day's measurements once, and keeps those of a fortnight.
    """

    def __init__(self, mechanism: Mechanism, n_days: int) -> None:
        self.mechanism = mechanism
        self.days = range(LEARNED_DAYS, n_days - max(REVISED_AFTER), REVISED_EVERY)
        self.recent = deque[Measured](maxlen=max(REVISED_AFTER) + 1)
        self.told = 0
        self.found: dict[int, list[Values]] = {after: [] for after in REVISED_AFTER}

    def take(self, measured: Measured) -> None:
        """The next day's measurements."""
        self.recent.append(measured)
        for after, found in self.found.items():
            if self.told - after in self.days:
                first, *later = list(self.recent)[-after - 1 :]
                found.append(self.mechanism.revise(first, later).values)
        self.told += 1

    def errors(self, values: Values, truth: Values) -> dict[str, float]:
        """Return how far they miss, beside the same days as they were first published."""
        days = list(self.days)
        return {"revised_0": mean_absolute_error(values[days], truth[days])} | {
            f"revised_{after}": mean_absolute_error(np.maximum(found, 0.0), truth[days])
            for after, found in self.found.items()
        }


def unusual(cell: Cell, data: StudyData, noise: NoiseSource, trial: int) -> Trial:
    """Return the errors on a day on which something happens, and on the three days after it; and without any
    past.
    """
    span, load = Span.of_day(cell.span), _history(data)
    lead = LEAD_DAYS if CONTENDERS[cell.mechanism].lead_days == LEAD_DAYS else MOST_LEAD_DAYS
    rows = span.rows(load, lead)
    start = load.running_day(rows.start)
    mechanism = on_series(cell, load.regions, load.public_days)
    past = load.values[rows.start : rows.start + lead]
    days = load.values[rows.start + lead : rows.start + lead + 1 + DAYS_AFTER]
    metrics, ordinary = dict[str, float](), _past(mechanism, past, start, noise)
    for what in HAPPENINGS:
        known = ordinary
        if what == JOINS:
            known = _past(mechanism, before(past, what, days[0]), start, noise)
        truth = changed(days, what)
        found = release_days(mechanism, truth, start + lead, noise, accounted=False, state=known.state)
        values = _leaves(found.values, truth)
        metrics[what] = mean_absolute_error(values[0], truth[0])
        metrics[f"{what}, after"] = mean_absolute_error(values[1:], truth[1:])
        if what == NOTHING:
            metrics["mae"] = metrics[what]
    cold = release_days(mechanism, days[:1], start + lead, noise, accounted=False)
    metrics[FIRST] = mean_absolute_error(_leaves(cold.values, days[:1]), days[:1])
    return TrialResult(trial, metrics, ordinary.drawn, ordinary.drawn_aligned), mechanism.epsilon


def _past(mechanism: Mechanism, days: Values, first_day: int, noise: NoiseSource) -> Released:
    return release_days(mechanism, days, first_day, noise, only_measured=len(days))


def _leaves(values: Values, truth: Values) -> Values:
    """Return the released leaves; a root above plain series is derived, and load is not negative."""
    return np.maximum(values[:, -truth.shape[1] :], 0.0)


def _by_year(span: Span) -> Sequence[tuple[int, range]]:
    years = [span.day(number).year for number in range(span.n_days)]
    return [
        (year, range(years.index(year), years.index(year) + years.count(year))) for year in sorted(set(years))
    ]


def _history(data: StudyData) -> Load:
    if data.history is None:
        raise ParameterError("data hold no load of 2013 to 2016, which studies of a stream's past need")
    return data.history
