"""BROKEN ON PURPOSE: mechanisms that cost more than they claim, each next to its honest twin.

They show that the audit would catch such a mistake, and that it does not cry wolf over the same mechanism
made right. Never use one to release anything. All claim epsilon for one change of a made-up series; numbers
are integers of some unit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource, discrete_gaussian
from optstream.privacy.exact import root_above
from studies.audit.attack import AuditResult
from studies.audit.enumeration import MODEL, exact_bound, first_above
from studies.audit.histories import Outputs

Integers = NDArray[np.int64]
Draw = Callable[[Integers, int, NoiseSource], Outputs]

ALPHA = 1000
"""The most that one reading may change, in units."""


@dataclass(frozen=True, eq=False)
class Control:
    """A small mechanism on two series, `one` and `other`; `draw(series, n_runs, noise)` runs it.

    claimed: its epsilon, at `delta`.
    """

    name: str
    neighbours: str
    claimed: float
    one: Integers
    other: Integers
    draw: Draw
    delta: float = 0.0

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return the outputs of runs on one side."""
        return self.draw((self.one, self.other)[side], n_runs, noise)


def _series(length: int, level: int = 0) -> Integers:
    return np.full(length, level, dtype=np.int64)


def counting_query(*, inverted: bool) -> Control:
    """Return one sum; noise of scale sensitivity / epsilon, or, broken, epsilon / sensitivity.

    Counted in people: the sensitivity is 1, and at epsilon = 1/2 the inverted scale is 1/2 instead of 2.
    """
    epsilon, sensitivity = 0.5, 1.0
    scale = epsilon / sensitivity if inverted else sensitivity / epsilon

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        return Outputs.of_numbers(series.sum() + noise.discrete_laplace(scale, (n_runs, 1)))

    name = "noise of inverted scale" if inverted else "counting query"
    return Control(name, "one more", epsilon, _series(1, 40), _series(1, 41), draw)


def fourier(*, normalised: bool) -> Control:
    """Return the first three Fourier coefficients of 48 steps, noise for an orthonormal transform.

    Five real coordinates (root two times real and imaginary parts), rounded to integers: for an orthonormal
    transform they move by at most sqrt(5) * ALPHA * sqrt(48) in L1, and by 5 more for rounding. Broken: the
    transform is not normalised, and moves sqrt(48) times as much.
    """
    epsilon, steps, kept = 1.0, 48, 3
    n_coordinates = 2 * kept - 1
    scale = (np.sqrt(n_coordinates * steps) * ALPHA + n_coordinates) / epsilon

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        transform = np.fft.rfft(series, norm="ortho" if normalised else None)[:kept]
        parts = np.sqrt(2) * np.concatenate([transform[1:].real, transform[1:].imag])
        exact = np.rint(np.concatenate([transform[:1].real, parts])).astype(np.int64)
        return Outputs.of_numbers(exact + noise.discrete_laplace(float(scale), (n_runs, n_coordinates)))

    name = "Fourier transform" if normalised else "unnormalised Fourier transform"
    return Control(name, "all 48 steps", epsilon, _series(steps), _series(steps, ALPHA), draw)


def fourier_phase() -> Control:
    """Return one Fourier coefficient in polar form. Broken: the noise is on its size, the phase is exact."""
    epsilon, steps = 1.0, 48
    scale = float(np.sqrt(steps)) * ALPHA / epsilon
    wave = np.rint(5 * ALPHA * np.cos(2 * np.pi * np.arange(steps) / steps)).astype(np.int64)
    other = wave.copy()
    other[steps // 4] += ALPHA  # a quarter wave off: it turns the phase

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        coefficient = np.fft.rfft(series, norm="ortho")[1]
        size = np.rint(np.abs(coefficient)) + noise.discrete_laplace(scale, (n_runs,))
        return Outputs.of_numbers(np.stack([size, np.full(n_runs, np.angle(coefficient))], axis=1))

    return Control("Fourier coefficient with exact phase", "one step", epsilon, wave, other, draw)


def scaled_noise(*, by_raw_mean: bool) -> Control:
    """Return eight points of a series of small loads, each with an eighth of epsilon.

    Broken: the noise is a share of the series' raw mean, for a constant relative error; the noise's own
    size then tells the mean.
    """
    epsilon, points = 1.0, 8
    one, other = _series(points, ALPHA), _series(points, 2 * ALPHA)
    scale = points * ALPHA / epsilon

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        relative = float(series.mean()) / ALPHA if by_raw_mean else 1.0
        return Outputs.of_numbers(series + noise.discrete_laplace(scale * relative, (n_runs, points)))

    name = "raw mean used as a scale" if by_raw_mean else "points of known scale"
    return Control(name, "all 8 steps", epsilon, one, other, draw)


def points(*, raw: bool) -> Control:
    """Return four points, each with a quarter of epsilon. Broken: the last is published without noise."""
    epsilon, count = 1.0, 4
    scale = count * ALPHA / epsilon

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        drawn = noise.discrete_laplace(scale, (n_runs, count))
        if raw:
            drawn[:, -1] = 0
        return Outputs.of_numbers(series + drawn)

    name = "one step published raw" if raw else "points"
    return Control(name, "all 4 steps", epsilon, _series(count), _series(count, ALPHA), draw)


def redrawn() -> Control:
    """Return one sum. Broken: drawn again until it lies within a scale of the truth, since then it looks
    good.
    """
    epsilon = 1.0
    scale = ALPHA / epsilon

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        drawn = noise.discrete_laplace(scale, (n_runs, 1))
        while (poor := np.abs(drawn) > scale).any():
            drawn[poor] = noise.discrete_laplace(scale, (int(poor.sum()),))
        return Outputs.of_numbers(series.sum() + drawn)

    name = "release redrawn until it looks good"
    return Control(name, "one step", epsilon, _series(1), _series(1, ALPHA), draw)


@dataclass(frozen=True)
class SparseVector:
    """The sparse vector technique with one positive answer, over queries that may rise and fall.

    Right are threshold noise of scale 2 * sensitivity / epsilon and query noise of twice that, fresh for
    each query. Broken: `query_factor` below 4, or `shared`, one query noise for all of them.
    """

    name: str
    query_factor: float = 4.0
    shared: bool = False
    claimed: float = 1.0
    sensitivity: int = 10
    n_queries: int = 200
    threshold: int = 5
    neighbours: str = "all queries down but the last, which rises"

    @property
    def sides(self) -> tuple[Integers, Integers]:
        """The queries' exact answers on either side."""
        other = _series(self.n_queries, -self.sensitivity)
        other[-1] = self.sensitivity
        return _series(self.n_queries), other

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of the queries'."""
        unit = self.sensitivity / self.claimed
        return 2 * unit, self.query_factor * unit

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return which query came out above first, n_queries if none did."""
        at_threshold, at_query = self.scales
        limits = self.threshold + noise.discrete_laplace(at_threshold, (n_runs, 1))
        drawn = noise.discrete_laplace(at_query, (n_runs, 1 if self.shared else self.n_queries))
        above = self.sides[side] + drawn >= limits
        first = np.where(above.any(axis=1), above.argmax(axis=1), self.n_queries)
        return Outputs(np.empty((n_runs, 0)), first[:, None])

    def enumerate(self) -> AuditResult:
        """Audit it by exact enumeration: a bound that holds for certain."""
        one, other = (
            first_above([int(query) for query in queries], self.threshold, *self.scales, shared=self.shared)
            for queries in self.sides
        )
        bound, outcome = exact_bound(one, other)
        never = outcome == self.n_queries
        event = "no query above" if never else f"query {outcome} of {self.n_queries} is the first above"
        return AuditResult.enumerated(self.name, self.neighbours, self.claimed, bound, event)


def sum_of_steps(*, squared: bool) -> Control:
    """Return one sum of a window's steps with Gaussian noise."""
    n_steps = MODEL.window_length
    squares = Fraction(n_steps**2 if squared else n_steps)
    sigma = root_above(squares / (2 * MODEL.budget))

    def draw(series: Integers, n_runs: int, noise: NoiseSource) -> Outputs:
        return Outputs.of_numbers(series.sum() + discrete_gaussian(noise, sigma, (n_runs, 1)))

    name = "Gaussian sum" if squared else "Gaussian sum charged step by step"
    before, after = (np.full(n_steps, level, dtype=np.int64) for level in (0, 1))
    return Control(
        name, f"all {n_steps} steps", float(MODEL.epsilon), before, after, draw, float(MODEL.delta)
    )
