"""Sums of published values over nodes and days, with standard errors, from the published measurements."""

from collections.abc import Collection, Sequence
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
from optstream.mechanisms.history_informed.tree import HistoryInformedTree

MOST_DAYS_APART = 56
"""Errors of days further apart are taken for independent: what is measured is looked at for so long."""


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
    counted in for days up to `MOST_DAYS_APART` from each other (`HistoryInformedTree.error_covariance`).
    Takes about as long as an estimate of each day.

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
    if all(isinstance(day.mechanism, HistoryInformedTree) for day in days):
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
    """Return the standard error by each day's posterior: its own variance, and its covariances with the days
    before it.

    Each night learns anew how readings vary, so the posteriors are not of one model, and where errors nearly
    cancel their sum may come out too small, or negative. What the last day's posterior alone leaves in doubt
    of all days is the least that it can be: the earlier estimates knew less.
    """
    variance, least = 0.0, 0.0
    for place, day in enumerate(days):
        mechanism, measured = day.mechanism, day.measured
        assert isinstance(mechanism, HistoryInformedTree)
        before = days[max(0, place - MOST_DAYS_APART) : place + 1]
        asked = range(before[0].measured.first_step, measured.first_step + measured.n_steps)
        sums = np.stack([_weights(one, steps, asked) for one in before])
        found = mechanism.error_covariance(measured, day.later, asked, sums)
        if found is None:
            return None
        leaves = mechanism.tree.leaves_in(nodes)
        with_each = np.einsum("i,isj,j->s", leaves, found[:, :, :, -1], leaves)
        variance += float(2.0 * with_each[:-1].sum() + with_each[-1])
        least = float(np.einsum("i,isjt,j->", leaves, found, leaves))
    return sqrt(max(variance, least))


def _weights(day: DayMeasurements, steps: Collection[int] | None, asked: range) -> NDArray[np.float64]:
    """Return which of the asked steps are of a day, and of the steps that are summed: 1, else 0."""
    measured, found = day.measured, np.zeros(len(asked))
    chosen = range(measured.n_steps) if steps is None else sorted(set(steps))
    if not chosen or chosen[0] < 0 or chosen[-1] >= measured.n_steps:
        raise ParameterError(
            f"steps of a sum must be at least one, from 0 to {measured.n_steps - 1} on {day.period}"
        )
    found[[measured.first_step + step - asked.start for step in chosen]] = 1.0
    return found
