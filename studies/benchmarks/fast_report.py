"""Reruns figures 6 to 18 of FAST's technical report, algorithms and constants as printed (section 6).

    python -m studies.benchmarks.fast_report --data FOLDER [--trials 30] [--seed 0]

Average relative errors (Definition 2, sanity bound 1) on flu and unemployment, one user changing each step
by one at most, epsilon for the whole series; a release of zeros has error 1. "sign printed" is the interval
law of equation 28, "turned" the one with which a large error shortens the interval; errors keep their sign
(equation 21) or not. Every row costs epsilon, which the report promises of a user's whole series; rows
"a year kept" promise it of any year, as a stream without end needs, and the last table has the accountant's
epsilon of both promises for each. The traffic counts of Seattle are not to be had: figures 12 to 15 are of
these two. Noise is simulated; the series are public.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from optstream import PrivacyModel, simulated_noise
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms import Fast, Fourier, Laplace
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource
from optstream.privacy import Spend, worst_window
from optstream.privacy.spends import CappedSpend, StepSpend
from studies.benchmarks.harness.measure import command, parser, show, table
from studies.benchmarks.peers.fast_as_printed import (
    AsPrinted,
    Predictor,
    adaptive,
    fixed_rate,
    next_steps,
    sampled,
)
from studies.evaluation.data import Values
from studies.evaluation.metrics import relative_error
from studies.papers.data import read_flu, read_unemployment

STEPS = {"flu": 209, "unemployment": 478}
YEAR = {209: 52, 478: 12}
"""Steps of a year, by the length of the series."""
EPSILON = 0.01
"""Of figures 9 to 15."""
COEFFICIENTS = 10
"""k of DFT, which the report does not state."""
PREDICTORS: tuple[Predictor, ...] = ("kalman", "linear", "noisy")
Released = Callable[[Values, NoiseSource], Values]


def _fast(epsilon: str, window: int, **others: Any) -> Mechanism:
    return Fast(PrivacyModel(epsilon, window, 1), window // 4, **others)


OURS: dict[str, Callable[[str, int], Mechanism]] = {
    "ours (Fast)": _fast,
    "ours, fixed": lambda epsilon, n_steps: _fast(epsilon, n_steps, sampling="fixed"),
    "DFT, k = 10": lambda epsilon, n_steps: Fourier(PrivacyModel(epsilon, n_steps, 1), COEFFICIENTS),
    "Laplace": lambda epsilon, n_steps: Laplace(PrivacyModel(epsilon, n_steps, 1)),
    "ours, a year kept": lambda epsilon, n_steps: _fast(epsilon, YEAR[n_steps]),
    "ours, fixed, a year kept": lambda epsilon, n_steps: _fast(epsilon, YEAR[n_steps], sampling="fixed"),
    "Laplace, a year kept": lambda epsilon, n_steps: Laplace(PrivacyModel(epsilon, YEAR[n_steps], 1)),
}
"""Mechanisms of `optstream`, from epsilon and the number of steps."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__, data=True, seed=0)
    options.add_argument("--trials", type=int, default=30, help="of each figure (default: 30)")
    given = options.parse_args(arguments)
    series = {"flu": read_flu(given.data), "unemployment": read_unemployment(given.data)}
    cut = {name: values[: STEPS[name]] for name, values in series.items()}
    rows = table(["figure", "what"], [f"{name} ± s.e." for name in cut])
    for figure, what, released in runs():
        found = [errors(released, values, given.trials, given.seed) for values in cut.values()]
        rows.add_row(figure, what, *(f"{one.mean():.3g} ± {spread(one):.1g}" for one in found))
    show(rows, f"{given.trials} trials; average relative error, a release of zeros has 1")
    kept = table(
        ["16, 18: epsilon at α = 1"], [f"{name}, {of}" for name in cut for of in ("the series", "any year")]
    )
    costs = [epsilons(values, given.seed) for values in cut.values()]
    for what in costs[0]:
        kept.add_row(what, *(f"{cost:.3g}" for one in costs for cost in one[what]))
    show(kept)


def runs() -> list[tuple[str, str, Released]]:
    """Return every row: figure, setting, and what it releases of a series."""
    usual = AsPrinted()
    laws = {
        f"sign {'printed' if sign else 'turned'}, errors {'signed' if signed else 'by size'}": replace(
            usual, printed_sign=sign, signed=signed
        )
        for sign, signed in product((True, False), repeat=2)
    }
    found = [
        ("6, 8", f"α = {epsilon:g}, {predictor}", _predicted(predictor, epsilon, usual))
        for epsilon, predictor in product((1.0, 0.1, 0.01), PREDICTORS)
    ]
    for q in (1e-5, 1e-3, 0.1, 10.0):
        found += [("9", f"Q = {q:g}", _predicted("kalman", EPSILON, replace(usual, process_variance=q)))]
    for r in (0.1, 10.0, 1000.0):
        found += [("10", f"R = {r:g}", _predicted("kalman", EPSILON, replace(usual, noise_variance=r)))]
    found += [("11", f"fixed, {share:.0%}", _fixed(share, EPSILON, usual)) for share in (0.25, 0.5, 0.75, 1)]
    found += [("11", f"adaptive, {name}", _adaptive(0.25, EPSILON, law)) for name, law in laws.items()]
    for share in (0.15, 0.25, 0.5, 0.75, 1):
        found += [("12", f"adaptive, M = {share:.0%}", _adaptive(share, EPSILON, usual))]
    for (p, i, d), time in product(((0.9, 0.1, 0.0), (0.8, 0.1, 0.1), (1.0, 0.0, 0.0)), (5, 10, 20, 40)):
        law = replace(usual, proportional=p, integral=i, derivative=d, integration_time=time)
        found += [("13", f"gains {p}, {i}, {d}, T_i = {time}", _adaptive(0.25, EPSILON, law))]
    for point in (0.1, 0.2, 0.4, 0.8):
        found += [("14", f"ξ = {point}", _adaptive(0.25, EPSILON, replace(usual, set_point=point)))]
    for step in (1.0, 5.0, 10.0, 20.0):
        found += [("15", f"θ = {step:g}", _adaptive(0.25, EPSILON, replace(usual, interval_step=step)))]
    for epsilon in (1.0, 0.1, 0.01):
        found += [("16, 18", f"α = {epsilon:g}, Algorithm 3", _adaptive(0.25, epsilon, usual))]
        found += [("16, 18", f"α = {epsilon:g}, fixed, 25%", _fixed(0.25, epsilon, usual))]
        found += [("16, 18", f"α = {epsilon:g}, {name}", _ours(name, epsilon)) for name in OURS]
    return found


def errors(released: Released, series: Values, trials: int, seed: int) -> Values:
    """Return the average relative error of each trial, (trials,); of the steps that are released."""
    found = np.empty(trials)
    for trial in range(trials):
        values = released(series, simulated_noise([seed, trial]))
        found[trial] = relative_error(values, series[-values.size :], AsPrinted().floor)
    return found


def spread(errors: Values) -> float:
    """Return the standard error of their mean, 0 of a single one."""
    return float(errors.std(ddof=1) / errors.size**0.5) if errors.size > 1 else 0.0


def epsilons(series: Values, seed: int) -> dict[str, tuple[float, float]]:
    """Return what figures 16 and 18 cost at alpha = 1, by name: of the whole series, and of the worst year.

    The accountant's figures; Algorithm 3 may measure any M steps, as far as it is known beforehand. seed: of
    the noise, which decides what is measured where a year is kept.
    """
    n_steps, most = series.size, series.size // 4
    taken = np.isin(np.arange(n_steps), sampled(n_steps, most)).astype(int)
    spends: dict[str, tuple[Spend, ...]] = {
        "Algorithm 3": (CappedSpend(0, SAMPLES, 0, n_steps, most, (), Fraction(most), 1),),
        "fixed, 25%": (StepSpend(0, SAMPLES, 0, tuple(taken.tolist()), Fraction(most), 1),),
    }
    for name, of in OURS.items():
        measured = of("1", n_steps).measure(series[None], noise=simulated_noise(seed), first_step=0)
        spends[name] = measured.spends
    return {
        name: (float(worst_window(one, n_steps).epsilon), float(worst_window(one, YEAR[n_steps]).epsilon))
        for name, one in spends.items()
    }


def _laplace(epsilon: float) -> Released:
    return lambda series, noise: series + noise.discrete_laplace(series.size / epsilon, series.shape)


def _predicted(predictor: Predictor, epsilon: float, constants: AsPrinted) -> Released:
    noisy = _laplace(epsilon)
    return lambda series, noise: next_steps(noisy(series, noise), predictor, constants)


def _fixed(share: float, epsilon: float, constants: AsPrinted) -> Released:
    return lambda series, noise: fixed_rate(series, epsilon, int(share * series.size), constants, noise)


def _adaptive(share: float, epsilon: float, constants: AsPrinted) -> Released:
    def released(series: Values, noise: NoiseSource) -> Values:
        most = max(int(share * series.size), constants.integration_time)
        return adaptive(series, epsilon, most, constants, noise)[0]

    return released


def _ours(name: str, epsilon: float) -> Released:
    def released(series: Values, noise: NoiseSource) -> Values:
        mechanism = OURS[name](str(epsilon), series.size)
        found: Values = mechanism.release(series[None], noise=noise).values[0]
        return found

    return released


if __name__ == "__main__":
    command(main)
