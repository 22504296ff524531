"""The noise scales that the papers take, which cost more than the epsilon that they are made for.

`epsilon` of these mechanisms is what any sliding window really costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from optstream.measurement.sampling import L1Sampling
from optstream.mechanisms import Fourier, OptStream
from optstream.mechanisms.optstream import LevelPlan, repeated_cost
from optstream.noise import NoiseSource
from optstream.privacy import Spend, worst_window
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.rules import WindowBudget
from optstream.privacy.sparse_vector import SparseVectorScales, sparse_vector_scales
from optstream.stream import PrivatePeriod, State

ROOT_BITS = 32
"""Binary places of a square root, before a scale is rounded up to a float."""


@dataclass(frozen=True)
class PaperLevelPlan(LevelPlan):
    """A level by the scales of the OptStream paper: Theorem 9 for sums, 2 alpha (w - k) for L1 scores."""

    @property
    def features_scale(self) -> Fraction:
        """The sums' scale, as if a window moved a feature by alpha in all."""
        wanted = self.alpha_units * len(self.features) / self.epsilon_features
        return Fraction(round_up_to_float(wanted))

    def sampler_scales(self, n_steps: int) -> SparseVectorScales | None:
        """Return the sparse vector's scales; None where nothing is asked."""
        if super().sampler_scales(n_steps) is None:
            return None
        assert isinstance(self.sampling, L1Sampling)
        window, n_samples = self.model.window_length, self.sampling.n_samples
        return sparse_vector_scales(
            2 * self.alpha_units * max(window - n_samples, 1),
            self.sampling.points_of_period(n_steps, window) - 1,
            self.epsilon_sampling,
            self.sampling.allocation,
        )

    def sampler_charges(self, n_steps: int) -> tuple[Fraction, ...]:
        """Return at least all of epsilon for any change, as the paper counts it."""
        first, *charges = super().sampler_charges(n_steps)
        if self.sampler_scales(n_steps) is None:
            return (first, *charges)
        return (first, *(max(charge, self.epsilon_sampling) for charge in charges))

    @property
    def epsilon(self) -> Fraction:
        """What periods of `shortest_period` in a row cost any window; longer ones cost more with L1 sampling.

        Without a window rule a window over two periods may hold the points of both.
        """
        if not isinstance(self.sampling, L1Sampling):
            return super().epsilon
        length, window = self.shortest_period, self.model.window_length
        starts = range(0, (-(-window // length) + 2) * length, length)
        points = worst_window([self._undecided(length, start, ()) for start in starts], window).epsilon
        sampler = repeated_cost(self.sampler_charges(length), self.model)
        features = (
            len(self.features) * window * self.alpha_units / self.features_scale if self.features else 0
        )
        return points + sampler + features


class PaperOptStream(OptStream):
    """OptStream by the paper's scales. With L1 sampling the last steps are taken unasked when only enough
    for all points are left (Algorithm 3), and no rule looks at other periods.
    """

    @property
    def levels(self) -> tuple[PaperLevelPlan, ...]:
        """The measured levels by the paper's scales, root first."""
        return tuple(PaperLevelPlan(**vars(plan)) for plan in super().levels)

    def _spends(
        self, n_steps: int, first_step: int, points: Mapping[int, tuple[int, ...]] | None, state: State | None
    ) -> tuple[Spend, ...]:
        return super()._spends(n_steps, first_step, points, None)

    def _choose(
        self, period: PrivatePeriod, noise: NoiseSource, state: State | None
    ) -> dict[int, tuple[int, ...]]:
        asked = super()._choose(period, noise, None)
        return {plan.level: self._with_last_steps(asked[plan.level], period.n_steps) for plan in self.levels}

    def _with_last_steps(self, asked: tuple[int, ...], n_steps: int) -> tuple[int, ...]:
        assert isinstance(self.sampling, L1Sampling)
        window, points = self.model.window_length, list(asked)
        missing = self.sampling.points_of_period(n_steps, window) - len(asked)
        rule = WindowBudget(self.sampling.n_samples, window, 0, n_steps, [(step, 1) for step in asked])
        for step in range(n_steps - missing, n_steps):
            if rule.allowed()[step]:
                rule.take(step)
                points.append(step)
        return tuple(points)


@dataclass(frozen=True)
class PaperFourier(Fourier):
    """Fourier by its paper's scale, sqrt(k min(w, shortest_period)) alpha / epsilon."""

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on every coordinate, in units of the resolution, exactly a float."""
        steps = min(self.model.window_length, self._shortest)
        # a rational root, at most 2^-32 too large and never too small
        root = Fraction(isqrt(self.n_coefficients * steps << 2 * ROOT_BITS) + 1, 1 << ROOT_BITS)
        return self._scale(self.model.pure_epsilon / root)
