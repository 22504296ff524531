"""Three public series for comparing mechanisms: what each is, whom it would protect, over which window."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_year import FILE, read_year
from tasks.evaluation.data import read_flu, read_unemployment


@dataclass(frozen=True, eq=False)
class PublicSeries:
    """Plain series, (n_periods, n_series, n_steps), in `unit`, and the promise under which they are released.

    window: steps. alpha: one person's change of a step. n_points: of OptStream and Fourier. threshold: of L1
    sampling. deviation: how far a series is taken to move in a step, a round number that everybody knows.
    """

    name: str
    unit: str
    values: NDArray[np.float64]
    first_steps: tuple[int, ...]
    window: int
    alpha: str
    resolution: str
    n_points: int
    threshold: str
    deviation: float


def load_of_2016(data: Path) -> PublicSeries:
    """The load of the 12 French regions in 2016, half-hours by day. Raises DumpError as `read_year`."""
    year = read_year(data / FILE)
    return PublicSeries(
        "load", "MW", year.load_mw, year.first_steps,
        window=48, alpha="1", resolution="0.001", n_points=10, threshold="1000", deviation=100.0,
    )  # fmt: skip


def flu(data: Path) -> PublicSeries:
    """Visits for influenza-like illness at age 5 to 24, nation, weekly, whole years from 2006 week 40."""
    facts = {"alpha": "1", "resolution": "1", "n_points": 10, "threshold": "2000", "deviation": 316.0}
    return _years("flu", "visits", read_flu(data), 52, **facts)


def unemployment(data: Path) -> PublicSeries:
    """Unemployment level, thousands, monthly, whole years from 1972."""
    facts = {"alpha": "0.001", "resolution": "0.001", "n_points": 4, "threshold": "50", "deviation": 30.0}
    return _years("unemployment", "thousands", read_unemployment(data), 12, **facts)


READERS: dict[str, Callable[[Path], PublicSeries]] = {
    "load": load_of_2016,
    "flu": flu,
    "unemployment": unemployment,
}


def _years(name: str, unit: str, values: NDArray[np.float64], length: int, **facts) -> PublicSeries:
    """Whole years of a single series, each a period and a window."""
    whole = len(values) // length
    shaped = values[: whole * length].reshape(whole, 1, length)
    starts = tuple(range(0, whole * length, length))
    return PublicSeries(name, unit, shaped, starts, window=length, **facts)
