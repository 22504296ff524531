"""Exact probabilities over discrete noise: of a sparse vector, our L1 sampler, and Gaussian noise.

Nothing is sampled: the omitted part of a sum is bounded and counted against the bound, so the epsilon
found is a lower bound for certain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optstream.measurement import L1Sampling
from optstream.mechanisms import Gaussian, OptStream
from optstream.privacy import PrivacyModel
from studies.audit.attack import AuditResult

Floats = NDArray[np.float64]

REACH = 60
"""Noise beyond this many scales is left out: a mass of e^-60 at most, which is counted."""

ROUNDING = 1e-9
"""More than floating point can be wrong by, relative to a probability."""


def first_above(
    queries: Sequence[int], threshold: int, threshold_scale: float, query_scale: float, shared: bool = False
) -> Floats:
    """Return the probability of each outcome of a sparse vector that stops at its first positive answer.

    Query i comes out above if queries[i] + noise >= threshold + threshold noise, all noise discrete
    Laplace; `shared`: one query noise serves every query. Returns (n_queries + 1): above first at query 0, 1,
    …, and last never. Truncated: each may lack up to e^-60 (`REACH`), and none is too large.
    """
    exact = np.asarray(queries, dtype=np.int64)
    noise, mass = _laplace(threshold_scale)
    if shared:
        # Only the difference of the two noises matters: it must reach threshold - query.
        other, its_mass = _laplace(query_scale)
        mass = np.convolve(its_mass, mass[::-1])
        difference = np.arange(other[0] - noise[-1], other[-1] - noise[0] + 1)
        highest = np.maximum.accumulate(exact)
        reached = np.array([mass[difference >= threshold - query].sum() for query in highest])
        return np.concatenate([np.diff(reached, prepend=0.0), [mass.sum() - reached[-1]]])
    below = _mass_below(query_scale, threshold + noise[:, None] - exact[None, :])
    with np.errstate(divide="ignore"):
        logarithms = np.log(below)
    silent = np.exp(np.concatenate([np.zeros((noise.size, 1)), np.cumsum(logarithms, axis=1)], axis=1))
    outcomes: Floats = np.concatenate([mass @ (silent[:, :-1] * (1 - below)), [mass @ silent[:, -1]]])
    return outcomes


def exact_bound(one: Floats, other: Floats) -> tuple[float, int]:
    """Return the largest |log ratio| of an outcome's probability on two sides, and which outcome shows it.

    one, other: from `first_above`. What truncation and rounding may hide is taken off, so the bound holds for
    certain; where one side makes an outcome impossible it is large and finite. An outcome rarer than what
    was left out shows nothing.
    """
    left_out = 2 * np.exp(-REACH)
    with np.errstate(divide="ignore"):
        bounds = [
            np.log(np.maximum(a * (1 - ROUNDING) - 1e-30, 0.0)) - np.log(b * (1 + ROUNDING) + left_out)
            for a, b in ((one, other), (other, one))
        ]
    largest = np.maximum(*bounds)
    outcome = int(np.argmax(largest))
    return max(0.0, float(largest[outcome])), outcome


def _laplace(scale: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the integers within reach, rising, and their probabilities under discrete Laplace noise."""
    reach = int(np.ceil(REACH * scale))
    values = np.arange(-reach, reach + 1)
    mass: Floats = np.exp(-np.abs(values) / scale) * np.tanh(0.5 / scale)
    return values, mass


def _mass_below(scale: float, limits: NDArray[np.int64]) -> Floats:
    """Return P(noise < limit) for each limit."""
    step = np.exp(-1.0 / scale)
    tail = np.exp(-np.maximum(limits, 1) / scale) / (1 + step)
    mass: Floats = np.where(limits >= 1, 1 - tail, np.exp(-(1 - np.minimum(limits, 0)) / scale) / (1 + step))
    return mass


@dataclass(frozen=True, eq=False)
class EnumeratedSampler:
    """The exact law of the second point, if any, of a period's L1 sampler of one node and two points."""

    name: str
    mechanism: OptStream
    base: tuple[int, ...]

    @property
    def neighbours(self) -> str:
        """The pair's neighbouring streams."""
        return f"worst of all {3 ** len(self.base)} changes of a period of {len(self.base)}"

    @cached_property
    def claimed(self) -> float:
        """The accountant's charge for the sampling of a period whose steps all change."""
        return float(self.mechanism.levels[0].sampler_charges(len(self.base))[-1])

    def probabilities(self, series: tuple[int, ...]) -> Floats:
        """Return how likely each of the steps 1, 2, …, n_steps - 2 is the second point, and, last, that none
        of them is, (n_steps - 1,). (Whether the last step is then taken unasked is no matter of chance.)
        """
        scales = self.mechanism.levels[0].sampler_scales(len(series))
        sampling = self.mechanism.sampling
        assert scales is not None
        assert isinstance(sampling, L1Sampling)
        threshold = round(sampling.threshold / self.mechanism.model.resolution)
        # noise and threshold are integers: a score reaches them where its integer part does
        scores = [int(l1_score(series[: step + 1])) for step in range(1, len(series) - 1)]
        return first_above(scores, threshold, float(scales.threshold), float(scales.query))

    def enumerate(self) -> AuditResult:
        """Audit every change of at most alpha a step, up, down or none."""
        before = self.probabilities(self.base)
        found = []
        for change in product((-1, 0, 1), repeat=len(self.base)):
            moved = tuple(value + step for value, step in zip(self.base, change, strict=True))
            found.append((*exact_bound(before, self.probabilities(moved)), change))
        bound, outcome, change = max(found)
        asked = outcome < len(self.base) - 2
        what = f"second point at step {outcome + 1}" if asked else "no score above"
        event = f"{what} when the readings change by {change}"
        return AuditResult.enumerated(self.name, self.neighbours, self.claimed, bound, event)


def l1_score(series: tuple[int, ...]) -> Fraction:
    """Return the distance of the inner values from the line between both ends, summed, exact."""
    last = max(len(series) - 1, 1)
    return sum(
        (
            abs(value - series[0] - Fraction(step, last) * (series[-1] - series[0]))
            for step, value in enumerate(series)
        ),
        Fraction(0),
    )


MODEL = PrivacyModel("1", 4, 1, resolution=1, delta="1/1000")
"""Of Gaussian noise: one customer moves a step by one unit, so that sigma is small."""
SIGMAS = 14
"""Sigmas beyond which a discrete Gaussian has less than 1e-40 of its weight."""
LARGEST_EPSILON, HALVINGS = 64.0, 60


@dataclass(frozen=True)
class EnumeratedGaussian:
    """The exact loss of a window whose answers all move, each by `move` units; sigma is in units too."""

    name: str
    neighbours: str
    sigma: float
    n_answers: int
    move: int
    claimed: float = float(MODEL.epsilon)

    def delta(self, epsilon: float) -> float:
        """Return the least delta, within 1e-12, at which these neighbours are hidden at an epsilon, the
        hockey-stick divergence.
        """
        reach = math.ceil(SIGMAS * self.sigma)
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


def enumerated_window(name: str = "Gaussian, window of 4", factor: float = 1.0) -> EnumeratedGaussian:
    """Return the mechanism that measures every step, where a whole window changes; sigma times a factor."""
    sigma = factor * float(Gaussian(MODEL).sigma)
    return EnumeratedGaussian(name, "all 4 steps", sigma, MODEL.window_length, 1)
