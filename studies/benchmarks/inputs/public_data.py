"""The public series, and the guarantee under which they are released. Used by `mechanisms`."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.papers.data import CALENDAR, LOAD, read_flu, read_load, read_unemployment

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublicSeries:
    """Plain series, (n_periods, n_series, n_steps), in `unit`, and the guarantee for their release.

    window: steps. alpha: one person's change of a step. n_points: of OptStream and Fourier. threshold: of L1
    sampling. deviation: how far a series is taken to move in a step, a round number that everybody knows.
    """

    name: str
    unit: str
    values: Values
    first_steps: tuple[int, ...]
    window: int
    alpha: str
    resolution: str
    n_points: int
    threshold: str
    deviation: float


def load_of_days(data: Path, first: date, n_days: int) -> tuple[tuple[str, ...], Values]:
    """Return the French regions and their load from a day on, (n_days, n_regions, 48)."""
    return read_load(data / LOAD, first, first + timedelta(days=n_days - 1))


def load_of_2016(data: Path) -> PublicSeries:
    """Return the load of the 12 French regions in 2016, half-hours by day. Raises as `read_load`."""
    first = date(2016, 1, 1)
    _, values = load_of_days(data, first, 366)
    return _in_periods(
        "load", "MW", values, CALENDAR.first_step(first),
        alpha="1", resolution="0.001", n_points=10, threshold="1000", deviation=100.0,
    )  # fmt: skip


def flu(data: Path) -> PublicSeries:
    """Return visits for influenza-like illness at age 5 to 24, weekly, whole years from 2006 week 40."""
    return _in_periods(
        "flu", "visits", _whole_years(read_flu(data), 52),
        alpha="1", resolution="1", n_points=10, threshold="2000", deviation=316.0,
    )  # fmt: skip


def unemployment(data: Path) -> PublicSeries:
    """Return the unemployment level, thousands, monthly, whole years from 1972."""
    return _in_periods(
        "unemployment", "thousands", _whole_years(read_unemployment(data), 12),
        alpha="0.001", resolution="0.001", n_points=4, threshold="50", deviation=30.0,
    )  # fmt: skip


SERIES: dict[str, Callable[[Path], PublicSeries]] = {
    "load": load_of_2016,
    "flu": flu,
    "unemployment": unemployment,
}


def _in_periods(name: str, unit: str, values: Values, first_step: int = 0, **terms: Any) -> PublicSeries:
    """Return the series with a window of a period."""
    n_periods, _, n_steps = values.shape
    first_steps = tuple(first_step + number * n_steps for number in range(n_periods))
    return PublicSeries(name, unit, values, first_steps, window=n_steps, **terms)


def _whole_years(values: Values, length: int) -> Values:
    whole = len(values) // length
    return values[: whole * length].reshape(whole, 1, length)
