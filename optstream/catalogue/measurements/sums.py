"""Sums of published values over nodes and days, with standard errors, from the published measurements."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.catalogue.backends import Location
from optstream.catalogue.measurements.read_measurements import DayMeasurements, read_measurements
from optstream.catalogue.reading.selection import select_rows
from optstream.catalogue.signing import GivenKeys
from optstream.errors import ParameterError
from optstream.estimation import SumOfValues

Floats = NDArray[np.float64]
MOST_DAYS_TOGETHER = 35
"""Days whose errors are worked out together; the errors of longer spans' parts are taken for independent."""


def read_sum(
    folder: Location | str,
    nodes: Collection[str],
    first: date,
    last: date,
    steps: Collection[int] | None = None,
    public_key: GivenKeys | None = None,
) -> SumOfValues:
    """Return the sum of published values of some nodes over some days, with its standard errors.

    How the errors of values hang together is worked out again from the measurements, which must be
    published (docs/data/measurements.md). Within a day that is exact, as `Release.sum` says. Noise is drawn
    anew for each day, so days' noise is independent; what HistoryInformed leaves in doubt is not, and is
    counted in (`ErrorsOfDays`; spans of more than `MOST_DAYS_TOGETHER` days are cut into independent parts).
    Takes about as long as an estimate of each day, and longest with many blocks a day.

    Args:
        folder: A path, or the URL of a folder in an object store.
        nodes: Their names, none within another.
        first: The first local day.
        last: The last local day; each from the first on must be published.
        steps: Of each day, from 0; None for all.
        public_key: The publisher's, as for `read_published`.

    Returns:
        In the unit of the values times steps; errors as far as every day knows them.

    Raises:
        ParameterError: A day of the span is not published, a node is not there or lies in another one, or a
            day has not the steps; for a URL or key that cannot be one.
        PublicationError: As `read_measurements`.
    """
    rows = select_rows(folder, nodes, first, last, public_key)
    listed = rows["date"].unique().sort().to_list()
    if len(listed) != (last - first).days + 1:
        raise ParameterError(
            f"a sum over days needs every day from {first} to {last}; {len(listed)} of them are published"
        )
    if steps is not None:
        rows = rows.filter(pl.col("step").is_in(list(steps)))
    days = [read_measurements(folder, day, public_key) for day in listed]
    value = rows.select(pl.exclude("date", "step", "timestamp", "node", "parent", "level")).to_series(0).sum()
    return SumOfValues(float(value), *standard_errors_of_sum(days, nodes, steps))


def standard_errors_of_sum(
    days: Sequence[DayMeasurements], nodes: Collection[str], steps: Collection[int] | None = None
) -> tuple[float | None, float | None]:
    """Return the standard errors of a sum over some nodes, days and steps of each day; free.

    Args:
        days: Rising.
        nodes: As for `read_sum`.
        steps: Likewise.

    Returns:
        Of the whole error, and of the noise alone; None where a day does not know it.

    Raises:
        ParameterError: As `Release.sum`.
        PublicationError: As `DayMeasurements.release`.
    """
    if not any(day.mechanism is None or day.mechanism.days_independent for day in days):
        return _of_posteriors(days, nodes, steps), None
    whole: list[float | None] = []
    noise: list[float | None] = []
    for day in days:
        running = None if steps is None else [day.measured.first_step + step for step in steps]
        found = day.release().sum(list(nodes), running)
        whole.append(found.standard_error)
        noise.append(found.noise_standard_error)
    return _together(whole), _together(noise)


def _together(errors: Sequence[float | None]) -> float | None:
    """Return the standard error of a sum of independent parts; None where one is not known."""
    known = [one for one in errors if one is not None]
    return sqrt(sum(one**2 for one in known)) if len(known) == len(errors) else None


def _of_posteriors(
    days: Sequence[DayMeasurements], nodes: Collection[str], steps: Collection[int] | None
) -> float | None:
    """Return the standard error by the days' posteriors, `MOST_DAYS_TOGETHER` of them at a time."""
    variance = 0.0
    for first in range(0, len(days), MOST_DAYS_TOGETHER):
        part = days[first : first + MOST_DAYS_TOGETHER]
        found = errors_of_days(part, steps)
        if found is None:
            return None
        tree = part[0].mechanism.own_tree if part[0].mechanism else None
        assert tree is not None  # what is published is of a tree
        variance += found.variance(tree.leaves_in(nodes))
    return sqrt(variance)


@dataclass(frozen=True, eq=False)
class ErrorsOfDays:
    """How the errors of leaves' sums of some days hang together.

    Attributes:
        own: (n_days, n_leaves, n_leaves), of each day by its own posterior.
        together: (n_leaves, n_days, n_leaves, n_days), by the last day's, which knows all blocks of the days.
    """

    own: Floats
    together: Floats

    def variance(self, leaves: Floats) -> float:
        """Return the variance of the sum over the days of some leaves, (n_leaves,) of weights.

        The posterior of all blocks says how the days' errors hang together. Each day's own estimate may look
        at fewer blocks, and errs more: by as much the whole is widened.
        """
        own = float(np.einsum("i,dij,j->", leaves, self.own, leaves))
        alike = np.einsum("i,isjt,j->st", leaves, self.together, leaves)
        return float(alike.sum()) * max(own / float(np.trace(alike)), 1.0)


def errors_of_days(
    days: Sequence[DayMeasurements], steps: Collection[int] | None = None
) -> ErrorsOfDays | None:
    """Return how the errors of days of HistoryInformed hang together; free.

    Args:
        days: Rising, each of a mechanism whose days do not err apart.
        steps: Of each day; None for all.

    Returns:
        Of the leaves' sums over these steps; None where that is not known (`error_covariance`).

    Raises:
        ParameterError: For a step that a day does not have.
    """
    found = [covariance_together([day], steps) for day in days]
    together = found[0] if len(days) == 1 else covariance_together(days, steps)
    own = [one[:, 0, :, 0] for one in found if one is not None]
    if together is None or len(own) < len(days):
        return None
    return ErrorsOfDays(np.stack(own), together)


def covariance_together(
    days: Sequence[DayMeasurements], steps: Collection[int] | None = None
) -> Floats | None:
    """Return what `ErrorsOfDays.together` is; of a single day by the posterior that its estimate is of.

    Args:
        days: As for `errors_of_days`.
        steps: Likewise.

    Returns:
        (n_leaves, n_days, n_leaves, n_days); None as there.

    Raises:
        ParameterError: As there.
    """
    last = days[-1]
    assert last.mechanism is not None  # or it could not be asked how days err
    asked = range(days[0].measured.first_step, last.measured.first_step + last.measured.n_steps)
    sums = np.stack([_weights(day, steps, asked) for day in days])
    around = None if len(days) == 1 else asked
    return last.mechanism.error_covariance(last.measured, last.later, around, sums)


def _weights(day: DayMeasurements, steps: Collection[int] | None, asked: range) -> Floats:
    """Return which of the asked steps are of a day, and of the steps that are summed: 1, else 0."""
    measured, found = day.measured, np.zeros(len(asked))
    chosen = range(measured.n_steps) if steps is None else sorted(set(steps))
    if not chosen or chosen[0] < 0 or chosen[-1] >= measured.n_steps:
        raise ParameterError(
            f"steps of a sum must be at least one, from 0 to {measured.n_steps - 1} on {day.period}"
        )
    found[[measured.first_step + step - asked.start for step in chosen]] = 1.0
    return found
