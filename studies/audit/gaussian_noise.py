"""Gaussian noise: its exact epsilon at a delta by enumeration, and sums that are charged wrongly."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optstream.mechanisms import Gaussian
from optstream.noise import NoiseSource, discrete_gaussian
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import root_above
from studies.audit.attack import AuditResult
from studies.audit.controls import Control, Integers
from studies.audit.histories import Outputs

MODEL = PrivacyModel("1", 4, 1, resolution=1, delta="1/1000")
"""One customer moves a step by one unit, so that sigma is small."""
REACH = 14
"""Sigmas beyond which a discrete Gaussian has less than 1e-40 of its weight."""
LARGEST_EPSILON, HALVINGS = 64.0, 60


def sigma_for(squares: int) -> float:
    """Return the sigma, rounded up, at which a window whose squared moves, in units, add up to this costs all
    of rho.
    """
    return root_above(Fraction(squares) / (2 * MODEL.budget))


@dataclass(frozen=True)
class EnumeratedGaussian:
    """The exact loss of a window whose answers all move, each by `move` units; sigma is in units too.

    claimed: epsilon at `MODEL`'s delta.
    """

    name: str
    neighbours: str
    sigma: float
    n_answers: int
    move: int
    claimed: float = float(MODEL.epsilon)

    def delta(self, epsilon: float) -> float:
        """Return the least delta, within 1e-12, at which these neighbours are hidden at an epsilon, the
        hockey-stick divergence.

        The sum of all noise alone decides the logarithm of the ratio of probabilities, so its law is
        convolved.
        """
        reach = math.ceil(REACH * self.sigma)
        k = np.arange(-reach, reach + 1)
        one = np.exp(-(k**2) / (2 * self.sigma**2))
        law = np.array([1.0])
        for _ in range(self.n_answers):
            law = np.convolve(law, one / one.sum())
        total = np.arange(law.size) - self.n_answers * reach
        loss = (2 * total * self.move + self.n_answers * self.move**2) / (2 * self.sigma**2)
        return float(np.sum(law * np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))))

    def enumerate(self) -> AuditResult:
        """Return the least epsilon at the model's delta, from exact probabilities."""
        low, high, delta = 0.0, LARGEST_EPSILON, float(MODEL.delta)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        event = f"all outcomes whose ratio is above e^{low:.4g}"
        return AuditResult.enumerated(self.name, self.neighbours, self.claimed, low, event, delta)


def enumerated_window() -> EnumeratedGaussian:
    """Return the mechanism that measures every step, where a whole window changes."""
    sigma = float(Gaussian(MODEL).sigma)
    return EnumeratedGaussian("Gaussian, window of 4", "all 4 steps", sigma, MODEL.window_length, 1)


def small_sigma() -> EnumeratedGaussian:
    """Return the same with a sigma that is a fifth too small, which is broken."""
    sigma = 0.8 * float(Gaussian(MODEL).sigma)
    return EnumeratedGaussian(
        "Gaussian, sigma a fifth too small", "all 4 steps", sigma, MODEL.window_length, 1
    )


def sum_of_steps(*, squared: bool) -> Control:
    """Return one sum of a window's steps with Gaussian noise.

    All steps of a window move it by as many units, whose square it is charged. Broken: it is charged a square
    for each step, as if they were answers of their own.
    """
    n_steps = MODEL.window_length
    sigma = sigma_for(n_steps**2 if squared else n_steps)

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        return Outputs.of_numbers(series.sum() + discrete_gaussian(noise, sigma, (n_runs, 1)))

    name = "Gaussian sum" if squared else "Gaussian sum charged step by step"
    before, after = (np.full(n_steps, level, dtype=np.int64) for level in (0, 1))
    return Control(
        name, f"all {n_steps} steps", float(MODEL.epsilon), before, after, draw, float(MODEL.delta)
    )
