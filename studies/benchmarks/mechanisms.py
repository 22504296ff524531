"""Compares all mechanisms on three public series: error, cost and time.

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
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
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


class Name(StrEnum):
    """A public series."""

    LOAD = "load"
    FLU = "flu"
    UNEMPLOYMENT = "unemployment"


EVERY = list(Name)


@dataclass(frozen=True, eq=False)
class PublicSeries:
    """Plain series, (n_periods, n_series, n_steps), in `unit`, and the guarantee for their release."""

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


def run_trial(name: str, series: PublicSeries, epsilon: str, seed: tuple[int, ...] | None) -> dict[str, Any]:
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
    worst = worst_window(spends, series.window).epsilon
    return {
        "epsilon": epsilon,
        "mechanism": name,
        "series": series.name,
        "error": float(np.abs(np.array(released) - series.values).mean()),
        "plan": float(mechanism.epsilon),
        "over": mechanism.epsilon > mechanism.model.budget or worst > mechanism.epsilon,
        "microseconds": 1e6 * taken.wall / series.values.size,
    }


def compare(series: Sequence[PublicSeries], trials: int, seed: int, processes: int) -> pl.DataFrame:
    """Return the means over trials of each epsilon, mechanism and series."""
    keys = [(name, one, epsilon) for epsilon in EPSILONS for name in MECHANISMS for one in series]
    # One thread a process: the matrices are small, and the cores are taken by other rows.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(run_trial, *key, (seed, trial)) for key in keys for trial in range(trials)]
        rows = pl.DataFrame([job.result() for job in tracked(jobs, "trials")])
    error = pl.col("error")
    return rows.group_by("epsilon", "mechanism", "series", maintain_order=True).agg(
        error.mean(),
        deviation=(error.std() / pl.len().sqrt()).fill_null(float("nan")),
        plan=pl.col("plan").max(),
        over=pl.col("over").any(),
        microseconds=pl.col("microseconds").median(),
    )


def secure_microseconds(series: PublicSeries) -> dict[str, float]:
    """Return a step and series with the noise of publication, each mechanism on its first periods."""
    few = replace(series, values=series.values[:SECURE_PERIODS])
    run_trial(PEER, few, "1", None)  # so that nobody pays for loading the sampler
    return {name: run_trial(name, few, "1", None)["microseconds"] for name in MECHANISMS}


def table_of(means: pl.DataFrame, series: Sequence[PublicSeries], secure: Mapping[str, float]) -> Table:
    """Return errors with their standard errors; * marks the least of a column's block."""
    made = table(
        ["ε", "mechanism"], [*(f"{one.name}, {one.unit}" for one in series), "ε plan", "µs a step", "secure"]
    )
    marked = means.with_columns(least=pl.col("error") == pl.col("error").min().over("epsilon", "series"))
    for epsilon in EPSILONS:
        for mechanism in MECHANISMS:
            own = marked.filter(epsilon=epsilon, mechanism=mechanism)
            errors = [_error(row) for row in own.iter_rows(named=True)]
            figures = f"{max(own['plan']):.6g}", f"{own['microseconds'][0]:.0f}", f"{secure[mechanism]:.0f}"
            made.add_row(epsilon, mechanism, *errors, *figures)
        made.add_section()
    return made


def _error(row: Mapping[str, Any]) -> str:
    digits = 0 if row["error"] >= 100 else 1 if row["error"] >= 10 else 3
    return f"{row['error']:,.{digits}f} ± {row['deviation']:,.{digits}f}{' *' if row['least'] else '  '}"


def main(
    data: Data,
    trials: Annotated[int, typer.Option(min=1, help="Of each row.")] = 30,
    periods: Annotated[int | None, typer.Option(min=1, help="Only so many of each series.")] = None,
    only: Annotated[list[Name], typer.Option("--series", help="May be repeated.")] = EVERY,
    seed: Seed = 2016,
    processes: Annotated[int, typer.Option(min=1, help="Trials at a time.")] = 2,
) -> None:
    """Run every row and print."""
    every = [read_series(name, data) for name in only]
    series = [replace(one, values=one.values[:periods]) for one in every]
    means = compare(series, trials, seed, processes)
    for one in series:
        n_periods, n_series, n_steps = one.values.shape
        show(
            f"{one.name}: {n_series} series, {n_periods} periods of {n_steps} steps, w = {one.window}, alpha "
            f"{one.alpha} {one.unit}, {one.n_points} points, L1 threshold {one.threshold}, mean "
            f"{one.values.mean():,.0f}"
        )
    show(
        f"mean absolute error a step ± its standard error over {trials} trials, seed {seed}; "
        "µs a step and series of the first series, with simulated and with secure noise",
        table_of(means, series, secure_microseconds(series[0])),
        f"rows that cost more than was asked, or than their plan: {means.filter('over').rows() or 'none'}",
    )
