"""FAST's technical report as it is printed: its predictors, Algorithms 3 and 6, constants of section 6.

What `mechanisms.Fast` does otherwise, and why, is in docs/methods/mechanisms.md. Here one finite series of
counts is protected as a whole (one user changes every step by 1 at most), and nothing is published.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.fast import ConstantState, StraightLine
from optstream.noise import NoiseSource
from studies.evaluation.data import Values

LARGEST_EXPONENT = 100.0
Predictor = Literal["kalman", "linear", "noisy"]


@dataclass(frozen=True)
class AsPrinted:
    """The report's constants, section 6; those that it does not state are marked.

    Attributes:
        process_variance: Q.
        noise_variance: R, which the report tunes; the noise's true variance is 2 (M / alpha)^2.
        proportional: C_p.
        integral: C_i.
        derivative: C_d.
        integration_time: T_i, samples: so many first steps are all measured, and published as measured.
        interval_step: theta.
        set_point: xi.
        shortest: minI; not stated, 1.
        first_variance: P before the first prediction (Algorithm 3, line 7).
        floor: delta of Definitions 2 and 5; not stated, 1.
        printed_sign: Whether the interval law has the exponent -(D - xi) / xi of equation 28, with which a
            large error lengthens the interval; otherwise it shortens it.
        signed: Whether errors keep their sign, as in equation 21.
    """

    process_variance: float = 0.001
    noise_variance: float = 10.0
    proportional: float = 0.9
    integral: float = 0.1
    derivative: float = 0.0
    integration_time: int = 20
    interval_step: float = 5.0
    set_point: float = 0.4
    shortest: int = 1
    first_variance: float = 100.0
    floor: float = 1.0
    printed_sign: bool = True
    signed: bool = True

    def feedback(self, errors: list[tuple[int, float]]) -> float:
        """Return D of equation 25, from the (step, error) of the samples so far."""
        at, last = errors[-1]
        recent = sum(error for _, error in errors[-self.integration_time :]) / self.integration_time
        slope = (last - errors[-2][1]) / (at - errors[-2][0]) if len(errors) > 1 else 0.0
        return self.proportional * last + self.integral * recent + self.derivative * slope

    def interval_after(self, interval: float, feedback: float) -> float:
        """Return the interval of equation 28."""
        exponent = (feedback - self.set_point) / self.set_point
        change = 1 - math.exp(min(-exponent if self.printed_sign else exponent, LARGEST_EXPONENT))
        return max(interval + self.interval_step * change, float(self.shortest))


def next_steps(noisy: Values, predictor: Predictor, constants: AsPrinted) -> Values:
    """Return what is said of steps 2 to T - 1 by one step before, every step being measured (section 6.1).

    noisy: every step's noisy value, (T,). predictor: "kalman"; "linear", the line through the last two;
    "noisy", each step's own noisy value. constants: Q and R. Returns (T - 2,): the first two steps are needed
    for a line.
    """
    if predictor == "noisy":
        return noisy[2:].copy()
    constant = ConstantState(constants.process_variance, constants.noise_variance, {})
    tracker = StraightLine(constants.noise_variance, {}) if predictor == "linear" else constant
    found = np.empty(noisy.size - 2)
    for step, value in enumerate(noisy):
        prior = tracker.prior(step)
        if step >= 2 and prior is not None:
            found[step - 2] = prior.mean[0]
        tracker.correct(step, np.array([value]))
    return found


def adaptive(
    series: Values, epsilon: float, n_samples: int, constants: AsPrinted, noise: NoiseSource
) -> tuple[Values, int]:
    """Return what Algorithm 3 releases of a series, and how many steps it measured, each for epsilon / M.

    series: integer counts, (T,). epsilon: of the whole series (the report's alpha). n_samples: M, at least
    `integration_time`. constants: the report's, or varied. noise: M values of scale M / epsilon. Returns
    (T,), and a number in [T_i, M].
    """
    drawn = iter(noise.discrete_laplace(n_samples / epsilon, (n_samples,)).tolist())
    released, taken, errors = np.empty(series.size), 0, list[tuple[int, float]]()
    interval, variance = float(constants.shortest), constants.first_variance
    for step, value in enumerate(series.tolist()):
        if step < constants.integration_time:
            released[step], taken = value + next(drawn), taken + 1
            continue
        prior, variance = released[step - 1], variance + constants.process_variance
        released[step] = prior
        if step % int(interval) or taken == n_samples:
            continue
        gain = variance / (variance + constants.noise_variance)
        posterior = prior + gain * (value + next(drawn) - prior)
        released[step], taken, variance = posterior, taken + 1, (1 - gain) * variance
        error = (posterior - prior) / max(posterior if constants.signed else abs(posterior), constants.floor)
        errors.append((step, error if constants.signed else abs(error)))
        interval = constants.interval_after(interval, constants.feedback(errors))
    return released, taken


def sampled(n_steps: int, n_samples: int) -> NDArray[np.int64]:
    """Return the steps that a fixed rate measures: M of T at equal distances, the first one among them."""
    places: NDArray[np.int64] = np.arange(n_samples) * n_steps // n_samples
    return places


def fixed_rate(
    series: Values, epsilon: float, n_samples: int, constants: AsPrinted, noise: NoiseSource
) -> Values:
    """Return what Algorithm 6 releases: M samples at equal distances, filtered; predictions between them.

    n_samples: M in [1, T]. constants: Q and R. noise: M values of scale M / epsilon. Returns (T,).
    """
    drawn = noise.discrete_laplace(n_samples / epsilon, (n_samples,))
    noisy = dict(zip(sampled(series.size, n_samples).tolist(), drawn.tolist(), strict=True))
    released, variance = np.empty(series.size), constants.first_variance
    for step, value in enumerate(series.tolist()):
        prior = released[step - 1] if step else value + noisy[0]
        variance += constants.process_variance
        released[step] = prior
        if step in noisy:
            gain = variance / (variance + constants.noise_variance)
            released[step], variance = prior + gain * (value + noisy[step] - prior), (1 - gain) * variance
    return released
