"""Every mechanism on a public series: one trial, its error, its cost, its time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.public_series import PublicSeries
from optstream import AggregationTree, EquallySpaced, OptStream, PrivacyModel, secure_noise, simulated_noise
from optstream.measurement import L1Sampling
from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Laplace,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.mechanism import Mechanism
from optstream.privacy import worst_window

Build = Callable[[PrivacyModel, PublicSeries], Mechanism]


def _optstream(model: PrivacyModel, series: PublicSeries, sampling) -> OptStream:
    """All of epsilon for the series themselves; a root above several is derived from them."""
    names = [str(number) for number in range(series.values.shape[1])]
    several = len(names) > 1
    tree = AggregationTree.from_parents({"all": None} | (dict.fromkeys(names, "all") if several else {}))
    shares = ["0", "1"] if several else ["1"]
    return OptStream(model, tree, sampling=sampling, features=[], level_shares=shares, lower_bound=None)


FIELD: dict[str, Build] = {
    "Laplace = Uniform": lambda model, _: Laplace(model),
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
class Trial:
    """error: mean absolute, a step, over all series. epsilon: of the plan. worst: of this very history.

    microseconds: a step and series, measured and estimated.
    """

    error: float
    epsilon: Fraction
    worst: Fraction
    microseconds: float


def run_trial(name: str, series: PublicSeries, epsilon: str, seed: tuple[int, ...] | None) -> Trial:
    """Release the series period by period with one mechanism. seed: None for secure noise."""
    model = PrivacyModel(epsilon, series.window, series.alpha, series.resolution)
    mechanism = FIELD[name](model, series)
    noise = secure_noise() if seed is None else simulated_noise(np.random.SeedSequence(seed))
    n_series, state, spends, released = series.values.shape[1], None, [], []
    started = time.perf_counter()
    for values, first_step in zip(series.values, series.first_steps, strict=True):
        release = mechanism.release(values, noise=noise, first_step=first_step, state=state)
        state = release.state
        spends += release.spends
        released.append(release.values[-n_series:])
    seconds = time.perf_counter() - started
    return Trial(
        error=float(np.abs(np.array(released) - series.values).mean()),
        epsilon=mechanism.epsilon,
        worst=worst_window(spends, series.window).epsilon,
        microseconds=1e6 * seconds / series.values.size,
    )
