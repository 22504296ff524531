"""Compares all mechanisms on three public series: by how much they miss, what they cost, how long they take.

The load of the 12 French regions in 2016 (a day of half-hours as period and window, alpha 1 MW), flu visits
(weeks, a year, one visit) and unemployment (months, a year, one person). All of epsilon goes to the series
themselves: no hierarchy, no bound. Joint noise is priced for customers whose readings of a day are all in one
region; Gaussian noise has delta 1e-6, and its plan's cost is in rho. The inputs are public, so their errors
may be printed; of private ones they are raw data. Noise is simulated; the same seeds give the same figures
whatever the number of processes.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from optstream import AggregationTree, EquallySpaced, OptStream, PrivacyModel, secure_noise, simulated_noise
from optstream.measurement import L1Sampling
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Gaussian,
    Laplace,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.base import Mechanism
from optstream.privacy import Spend, worst_window
from studies.benchmarks.measure import Data, Seed, show, table, timed, tracked
from studies.evaluation.series import CALENDAR, LOAD, Values, read_flu, read_load, read_unemployment

EPSILONS = ("1", "0.1", "0.01")
DELTA = "1e-6"
SECURE_PERIODS = 7
PEER = "Laplace = Uniform"

Key = tuple[str, str, str]
"""Series, mechanism, epsilon."""


class Name(StrEnum):
    """A public series."""

    LOAD = "load"
    FLU = "flu"
    UNEMPLOYMENT = "unemployment"


EVERY = list(Name)


@dataclass(frozen=True, eq=False)
class PublicSeries:
    """Plain series, (n_periods, n_series, n_steps), in `unit`, and the guarantee for their release.

    alpha: one person's change of a step. n_points: of OptStream and Fourier. threshold: of L1 sampling.
    deviation: how far a series is taken to move in a step, a round number that everybody knows.
    """

    name: str
    unit: str
    values: Values
    alpha: str
    resolution: str
    n_points: int
    threshold: str
    deviation: float
    first_step: int = 0

    @property
    def window(self) -> int:
        """Steps: a period."""
        return int(self.values.shape[2])


def read_series(name: Name, data: Path) -> PublicSeries:
    """Return a public series. Raises DumpError as the readers."""
    if name is Name.LOAD:
        first = date(2016, 1, 1)
        values = read_load(data / LOAD, first, date(2016, 12, 31))[1]
        start = CALENDAR.first_step(first)
        return PublicSeries(name, "MW", values, "1", "0.001", 10, "1000", 100.0, start)
    if name is Name.FLU:
        return PublicSeries(name, "visits", _years(read_flu(data), 52), "1", "1", 10, "2000", 316.0)
    years = _years(read_unemployment(data), 12)
    return PublicSeries(name, "thousands", years, "0.001", "0.001", 4, "50", 30.0)


def _years(values: Values, length: int) -> Values:
    whole = len(values) // length
    return values[: whole * length].reshape(whole, 1, length)


def _optstream(model: PrivacyModel, series: PublicSeries, sampling: EquallySpaced | L1Sampling) -> OptStream:
    """All of epsilon for the series themselves; a root above several is derived from them."""
    names = [str(number) for number in range(series.values.shape[1])]
    several = len(names) > 1
    tree = AggregationTree.from_parents({"all": None} | (dict.fromkeys(names, "all") if several else {}))
    shares = ["0", "1"] if several else ["1"]
    return OptStream(model, tree, sampling=sampling, features=[], level_shares=shares, lower_bound=None)


def _joint(model: PrivacyModel, series: PublicSeries) -> Laplace:
    return Laplace(model, "joint", (series.window,), series.values.shape[1], 1)


def _gaussian(model: PrivacyModel, _: PublicSeries) -> Gaussian:
    return Gaussian(
        PrivacyModel(model.epsilon, model.window_length, model.alpha, model.resolution, delta=DELTA)
    )


MECHANISMS: dict[str, Callable[[PrivacyModel, PublicSeries], Mechanism]] = {
    PEER: lambda model, _: Laplace(model),
    "Laplace, joint noise": _joint,
    "Gaussian, delta 1e-6": _gaussian,
    "Sample": lambda model, _: Sample(model),
    "Fourier": lambda model, series: Fourier(model, series.n_points),
    "BudgetDistribution": lambda model, _: BudgetDistribution(model),
    "BudgetAbsorption": lambda model, _: BudgetAbsorption(model),
    "PeGaSus, median": lambda model, _: PeGaSus(model),
    "PeGaSus, average": lambda model, _: PeGaSus(model, smoother="average"),
    "Fast": lambda model, series: Fast(model, series.n_points, process_deviation=series.deviation),
    "Fast, fixed rate": lambda model, series: Fast(
        model, series.n_points, sampling="fixed", process_deviation=series.deviation
    ),
    "OptStream, equal": lambda model, series: _optstream(model, series, EquallySpaced(series.n_points)),
    "OptStream, L1": lambda model, series: _optstream(
        model, series, L1Sampling(series.n_points, series.threshold)
    ),
}


@dataclass(frozen=True)
class Row:
    """One trial of a key, or several together. error: mean absolute, a step, over all series, in their unit.

    epsilon: of the plan. budget: what was asked. worst: what this very history's worst window costs.
    microseconds: a step and series, measured and estimated. standard_error: of the error, over trials; nan of
    a single one.
    """

    error: float
    epsilon: Fraction
    budget: Fraction
    worst: Fraction
    microseconds: float
    standard_error: float = float("nan")


def together(trials: Sequence[Row]) -> Row:
    """Return the mean error with its standard error, the largest epsilons, the median time."""
    errors = np.array([trial.error for trial in trials])
    return Row(
        error=float(errors.mean()),
        epsilon=max(trial.epsilon for trial in trials),
        budget=trials[0].budget,
        worst=max(trial.worst for trial in trials),
        microseconds=float(np.median([trial.microseconds for trial in trials])),
        standard_error=float(errors.std(ddof=1) / np.sqrt(errors.size)) if errors.size > 1 else float("nan"),
    )


def run_trial(name: str, series: PublicSeries, epsilon: str, seed: tuple[int, ...] | None) -> Row:
    """Release the series period by period with one mechanism. seed: None for secure noise."""
    model = PrivacyModel(epsilon, series.window, series.alpha, series.resolution)
    mechanism = MECHANISMS[name](model, series)
    noise = secure_noise() if seed is None else simulated_noise(np.random.SeedSequence(seed))
    n_series, spends = series.values.shape[1], list[Spend]()

    def release_all() -> list[np.ndarray]:
        state, released = None, []
        for number, values in enumerate(series.values):
            first_step = series.first_step + number * series.window
            release = mechanism.release(values, noise=noise, first_step=first_step, state=state)
            state = release.state
            spends.extend(release.spends)
            released.append(release.values[-n_series:])
        return released

    taken, released = timed(release_all)
    return Row(
        error=float(np.abs(np.array(released) - series.values).mean()),
        epsilon=mechanism.epsilon,
        budget=mechanism.model.budget,
        worst=worst_window(spends, series.window).epsilon,
        microseconds=1e6 * taken.wall / series.values.size,
    )


def compare(series: Mapping[str, PublicSeries], trials: int, seed: int, processes: int) -> dict[Key, Row]:
    """Run every key; the trials of a key are spread over processes."""
    keys = [(name, mechanism, epsilon) for epsilon in EPSILONS for name in series for mechanism in MECHANISMS]
    # One thread a process: the matrices are small, and the cores are taken by other rows.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        jobs = {
            key: [
                pool.submit(run_trial, key[1], series[key[0]], key[2], (seed, trial))
                for trial in range(trials)
            ]
            for key in keys
        }
        watched = tracked(jobs.items(), "rows")
        return {key: together([job.result() for job in running]) for key, running in watched}


def secure_microseconds(series: PublicSeries) -> dict[str, float]:
    """Return a step and series with the noise of publication, each mechanism on its first periods."""
    few = replace(series, values=series.values[:SECURE_PERIODS])
    run_trial(PEER, few, "1", None)  # so that nobody pays for loading the sampler
    return {name: run_trial(name, few, "1", None).microseconds for name in MECHANISMS}


def table_of(
    rows: Mapping[Key, Row], series: Mapping[str, PublicSeries], secure: Mapping[str, float]
) -> Table:
    """Return errors with their standard errors; * marks the least of a column's block."""
    errors = [f"{one.name}, {one.unit}" for one in series.values()]
    made = table(["ε", "mechanism"], [*errors, "ε plan", "µs a step", "secure"])
    for epsilon in EPSILONS:
        least = {name: min(rows[name, other, epsilon].error for other in MECHANISMS) for name in series}
        for mechanism in MECHANISMS:
            own = {name: rows[name, mechanism, epsilon] for name in series}
            made.add_row(
                epsilon,
                mechanism,
                *(_error(row, row.error == least[name]) for name, row in own.items()),
                f"{float(max(row.epsilon for row in own.values())):.6g}",
                f"{next(iter(own.values())).microseconds:.0f}",
                f"{secure[mechanism]:.0f}" if mechanism in secure else "",
            )
        made.add_section()
    return made


def _error(row: Row, is_least: bool) -> str:
    digits = 0 if row.error >= 100 else 1 if row.error >= 10 else 3
    return f"{row.error:,.{digits}f} ± {row.standard_error:,.{digits}f}{' *' if is_least else '  '}"


def over_budget(rows: Mapping[Key, Row]) -> list[Key]:
    """Return rows whose plan costs more than asked, or whose history more than its plan. Exact."""
    return [key for key, row in rows.items() if row.epsilon > row.budget or row.worst > row.epsilon]


def main(
    data: Data,
    trials: Annotated[int, typer.Option(min=1, help="Of each row.")] = 30,
    periods: Annotated[int | None, typer.Option(min=1, help="Only so many of each series.")] = None,
    only: Annotated[list[Name], typer.Option("--series", help="May be repeated.")] = EVERY,
    seed: Seed = 2016,
    processes: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 2,
) -> None:
    """Run every row and print."""
    every = {name: read_series(name, data) for name in only}
    series = {str(name): replace(one, values=one.values[:periods]) for name, one in every.items()}
    rows = compare(series, trials, seed, processes)
    for one in series.values():
        n_periods, n_series, n_steps = one.values.shape
        show(
            f"{one.name}: {n_series} series, {n_periods} periods of {n_steps} steps, w = {one.window}, alpha "
            f"{one.alpha} {one.unit}, {one.n_points} points, L1 threshold {one.threshold}, mean "
            f"{one.values.mean():,.0f}"
        )
    show(
        f"mean absolute error a step ± its standard error over {trials} trials, seed {seed}; "
        "µs a step and series of the first series, with simulated and with secure noise",
        table_of(rows, series, secure_microseconds(next(iter(series.values())))),
        f"rows that cost more than was asked, or than their plan: {over_budget(rows) or 'none'}",
    )
