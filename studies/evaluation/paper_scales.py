"""The noise scales that papers take, which cost more than they say: for experiments and audits alone."""

from dataclasses import fields, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from optstream.measurement.sampling import Choice, L1Sampling
from optstream.mechanisms import Fourier, OptStream
from optstream.mechanisms.optstream import SAMPLING, LevelPlan
from optstream.privacy import PeriodSpend, Spend, worst_window
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.sparse_vector import SparseVectorScales, sparse_vector_scales
from optstream.stream import State

ROOT_BITS = 32
"""Binary places of a square root, before a scale is rounded up to a float."""


class PaperLevelPlan(LevelPlan):
    """A level's plan by OptStream's Theorem 9, its Algorithm 3 and section 5.1."""

    @property
    def features_scale(self) -> Fraction:
        """The scale of the features' noise: alpha for a whole window."""
        return Fraction(
            round_up_to_float(self.alpha_units * Fraction(len(self.features)) / self.epsilon_features)
        )

    def sampler_scales(self, n_steps: int) -> SparseVectorScales | None:
        """Return the sparse vector's noise, for scores that move by 2 alpha (w - k)."""
        if not isinstance(self.sampling, L1Sampling) or super().sampler_scales(n_steps) is None:
            return None
        window = self.model.window_length
        sensitivity = 2 * self.alpha_units * max(window - self.sampling.n_samples, 1)
        points = self.sampling.points_of_period(n_steps, window)
        return sparse_vector_scales(sensitivity, points - 1, self.epsilon_sampling, self.sampling.allocation)

    def sampler_charges(self, n_steps: int) -> tuple[Fraction, ...]:
        """Return what choosing the points costs, as the paper counts it: all of epsilon for any change."""
        charges = super().sampler_charges(n_steps)
        if not charges[-1]:
            return charges
        return (charges[0], *(max(charge, self.epsilon_sampling) for charge in charges[1:]))

    @property
    def epsilon(self) -> Fraction:
        """What this plan, repeated, costs any window; one over two periods may hold the points of both."""
        cost = self.point_charges * self.alpha_units / self.samples_scale
        if isinstance(self.sampling, L1Sampling):
            length, window = self.shortest_period, self.model.window_length
            starts = [number * length for number in range(-(-window // length) + 2)]
            charges = self.sampler_charges(length)
            points = [self._undecided(length, start, ()) for start in starts]
            chosen = [PeriodSpend(0, SAMPLING, start, charges) for start in starts]
            cost = worst_window(points, window).epsilon + worst_window(chosen, window).epsilon
        if self.features:
            cost += len(self.features) * self.model.window_length * self.alpha_units / self.features_scale
        return cost


@lru_cache(maxsize=64)
def _levels(plans: tuple[LevelPlan, ...]) -> tuple[PaperLevelPlan, ...]:
    return tuple(
        PaperLevelPlan(**{field.name: getattr(plan, field.name) for field in fields(plan)}) for plan in plans
    )


class PaperOptStream(OptStream):
    """OptStream with the paper's scales and without a rule for windows over two periods."""

    @property
    def levels(self) -> tuple[LevelPlan, ...]:
        """The measured levels' parts of the budget, root first."""
        return _levels(super().levels)

    def _spends(
        self, n_steps: int, first_step: int, points: object, state: State | None
    ) -> tuple[Spend, ...]:
        return super()._spends(n_steps, first_step, points, None)  # type: ignore[arg-type]  # as it is there

    def _choices(self, n_steps: int, first_step: int, state: State | None) -> list[Choice]:
        return [replace(one, take_remaining=True) for one in super()._choices(n_steps, first_step, None)]


class PaperFourier(Fourier):
    """Fourier with the scale of its paper, sqrt(k * min(w, shortest_period)) * alpha / epsilon."""

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on every coordinate, in units of the resolution, exactly a float."""
        number = self.n_coefficients * min(self.model.window_length, self._shortest)
        # at most 2^-32 too large and never too small
        root = Fraction(isqrt(number << 2 * ROOT_BITS) + 1, 1 << ROOT_BITS)
        return self._scale(self.model.pure_epsilon / root)
