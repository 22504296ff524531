"""What OptStream will spend: noise scales and spends from shares, before anything is drawn. All public."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from optstream.measurement import EquallySpaced
from optstream.measurement.linear import SAMPLES, feature_stage
from optstream.measurement.priced import LinearSpend, query_weights
from optstream.measurement.sampling import L1Sampling, Sampling
from optstream.mechanisms.joint_groups import PointGroups
from optstream.privacy import (
    CappedSpend,
    JointSpend,
    PeriodSpend,
    PrivacyModel,
    Spend,
    StepSpend,
    worst_window,
)
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.model import Calibration
from optstream.privacy.sensitivity import l1_score_change
from optstream.privacy.sparse_vector import SparseVectorScales, sparse_vector_scales
from optstream.stream import Feature

SAMPLING = "sampling"


@dataclass(frozen=True)
class LevelPlan:
    """One measured level's part of the budget, and the scales that follow from it.

    epsilon_sampling is 0 with equal spacing, epsilon_features is 0 without features. leaves_changed: how
    many leaves one customer can change at a step. shortest_period: no period is shorter. n_nodes: of the
    level. groups: of joint noise on the points; None for Laplace noise.
    """

    level: int
    leaves_changed: int
    model: PrivacyModel
    sampling: Sampling
    features: tuple[str, ...]
    calibration: Calibration
    epsilon_sampling: Fraction
    epsilon_samples: Fraction
    epsilon_features: Fraction
    shortest_period: int
    n_nodes: int = 1
    groups: PointGroups | None = None

    @property
    def point_charges(self) -> int:
        """How many unit charges the points of a window cost: the points, or the groups that it meets."""
        return self.sampling.n_samples if self.groups is None else self.groups.worst

    @property
    def alpha_units(self) -> int:
        """The most by which a level's values move together at one step."""
        return self.leaves_changed * self.model.alpha_units

    @property
    def samples_scale(self) -> Fraction:
        """The scale of the points' noise: any window holds k points, each charged alpha / scale (Lemmas 3, 4
        and 7), or meets so many groups of them (Lemma 16).
        """
        return _rounded_up(self.alpha_units * self.point_charges / self.epsilon_samples)

    @property
    def features_scale(self) -> Fraction:
        """The scale of the features' noise: any window holds w steps of each feature, each charged alpha /
        scale (Lemma 3).

        The paper's calibration takes alpha for a whole window (its Theorem 9), which is too little.
        """
        steps = self.model.window_length if self.calibration == "strict" else 1
        return _rounded_up(self.alpha_units * steps * len(self.features) / self.epsilon_features)

    def largest_scale(self, n_steps: int) -> Fraction:
        """Return the largest scale of the level's noise in a period of this length; the sampler's grows with
        the length.
        """
        sampler = self.sampler_scales(n_steps)
        scales: list[Fraction] = [
            self.samples_scale,
            *((sampler.threshold, sampler.query) if sampler else ()),
        ]
        scales += [self.features_scale] if self.features else []
        return max(scales)

    def sampler_scales(self, n_steps: int) -> SparseVectorScales | None:
        """Return the sparse vector's noise for a period of this length; None where nothing is asked."""
        if not isinstance(self.sampling, L1Sampling):
            return None
        window = self.model.window_length
        points = self.sampling.points_of_period(n_steps, window)
        segment = self.sampling.longest_segment(n_steps, window)
        if segment < 2:
            return None  # no step lies between two points, so nothing private is ever asked
        if self.calibration == "paper":
            sensitivity = 2 * self.alpha_units * max(window - self.sampling.n_samples, 1)
            epsilon = self.epsilon_sampling
        else:
            sensitivity = 2 * self.alpha_units * (segment - 1)
            epsilon = self.epsilon_sampling / _worst_overlap(self)
        return sparse_vector_scales(sensitivity, points - 1, epsilon, self.sampling.allocation)

    def sampler_charges(self, n_steps: int) -> tuple[Fraction, ...]:
        """Return what choosing the points costs when n of a period's steps change, n = 0 .. n_steps (Lemma
        6).
        """
        return _sampler_charges(self, n_steps)

    def spends(
        self,
        n_steps: int,
        first_step: int,
        points: Sequence[int] | None,
        taken: Sequence[int],
        features: Sequence[Feature],
    ) -> tuple[Spend, ...]:
        """Return the level's spends for one period: the sampler's, where it costs something, the points', and
        one for each feature.

        points: the measured steps, or None while they are not chosen: then the worst outcome of the rule.
        taken: points of other periods, running indices, as first_step is.
        """
        found: list[Spend] = []
        charges = self.sampler_charges(n_steps)
        if charges[-1]:
            found.append(PeriodSpend(self.level, SAMPLING, first_step, charges))
        if points is None:
            found.append(self._undecided(n_steps, first_step, taken))
        else:
            found.append(self._points(points, n_steps, first_step))
        for feature in features:
            stage = feature_stage(feature)
            found.append(self._linear(stage, feature.parts, n_steps, first_step, self.features_scale))
        return tuple(found)

    def _points(self, points: Sequence[int], n_steps: int, first_step: int) -> LinearSpend:
        if self.groups is None:
            own = [range(step, step + 1) for step in points]
            return self._linear(SAMPLES, own, n_steps, first_step, self.samples_scale)
        groups, scale, alpha = self.groups.of(points), self.samples_scale, self.model.alpha_units
        return JointSpend(
            self.level, SAMPLES, first_step, n_steps, groups, scale, alpha, self.n_nodes, self.leaves_changed
        )

    def is_own(self, spend: Spend) -> bool:
        """Return whether a spend of this level and another period is one that its plan makes, whole or with
        groups left out: False for other points or groups, or a larger charge.

        Such spends of different periods, in any order, leave every window within `epsilon`.
        """
        if not isinstance(spend, StepSpend | JointSpend):
            return False
        if spend.stage != SAMPLES:
            named = spend.stage in {f"feature {name}" for name in self.features}
            of_step = named and isinstance(spend, StepSpend)
            return of_step and spend.unit_charge <= self.alpha_units / self.features_scale
        points = equal_points(self, spend.n_steps, spend.first_step)
        measured = {step for step, weight in enumerate(spend.weights) if weight}
        # by the charge: after an amendment another plan may have the same scale for larger changes
        dearer = spend.unit_charge > self.alpha_units / self.samples_scale
        if points is None or dearer or not measured <= set(points):
            return False
        groups = self.groups
        if groups is None or not isinstance(spend, JointSpend):
            return groups is None and isinstance(spend, StepSpend)
        single = all(len(part) == 1 for part in spend.parts)
        return single and all(len(group) >= groups.least for group in spend.groups)

    def _linear(
        self, stage: str, parts: Sequence[range], n_steps: int, first_step: int, scale: Fraction
    ) -> StepSpend:
        weights, alpha = query_weights(parts, n_steps), self.model.alpha_units
        return StepSpend(self.level, stage, first_step, weights, scale, alpha, self.leaves_changed)

    def _undecided(self, n_steps: int, first_step: int, taken: Sequence[int]) -> CappedSpend:
        return CappedSpend(
            self.level,
            SAMPLES,
            first_step,
            n_steps,
            cap=self.sampling.n_samples,
            taken=tuple(taken),
            scale=self.samples_scale,
            alpha_units=self.model.alpha_units,
            leaves_changed=self.leaves_changed,
        )

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        """Return the sampler's scales, by what they are added to."""
        sampler = self.sampler_scales(n_steps)
        return {"threshold": sampler.threshold, "scores": sampler.query} if sampler else {}

    @property
    def epsilon(self) -> Fraction:
        """What this level's plan, repeated without end, costs any window."""
        model, sampling = self.model, self.sampling
        unit = self.alpha_units / self.samples_scale
        points = self.point_charges * unit
        if isinstance(sampling, L1Sampling):
            if self.calibration == "strict":
                # what the scales were divided for: periods of any lengths, also those that ask more
                points += self.epsilon_sampling
            else:
                points = self._repeated_cost() + _repeated(self.sampler_charges(self.shortest_period), model)
        if self.features:
            points += len(self.features) * model.window_length * self.alpha_units / self.features_scale
        return points

    def _repeated_cost(self) -> Fraction:
        """Return the cost where plans repeat; the paper has no window rule: a window that straddles periods
        may hold the points of both.
        """
        length = self.shortest_period
        n_periods = -(-self.model.window_length // length) + 2
        plans = [self._undecided(length, number * length, ()) for number in range(n_periods)]
        return worst_window(plans, self.model.window_length, self.model.windows).epsilon


def equal_points(plan: LevelPlan, n_steps: int, first_step: int) -> tuple[int, ...] | None:
    """Return the points of a period where the rule is public; None where they are still to be chosen."""
    if isinstance(plan.sampling, EquallySpaced):
        return plan.sampling.positions(n_steps, first_step, plan.model.window_length)
    return None


@lru_cache(maxsize=256)
def _sampler_charges(plan: LevelPlan, n_steps: int) -> tuple[Fraction, ...]:
    scales = plan.sampler_scales(n_steps)
    if scales is None or not isinstance(plan.sampling, L1Sampling):
        return (Fraction(0),) * (n_steps + 1)
    segment = plan.sampling.longest_segment(n_steps, plan.model.window_length)
    losses = [scales.loss(plan.alpha_units * l1_score_change(n, segment)) for n in range(n_steps + 1)]
    if plan.calibration == "paper":
        # as the paper counts it: all of epsilon for any change
        losses[1:] = [max(loss, plan.epsilon_sampling) for loss in losses[1:]]
    return tuple(losses)


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(round_up_to_float(scale))


def _repeated(charges: tuple[Fraction, ...], model: PrivacyModel) -> Fraction:
    """Return the worst window over periods of one length that follow each other, each charged alike."""
    length = len(charges) - 1
    n_periods = -(-model.window_length // length) + 2
    spends = [PeriodSpend(0, SAMPLING, number * length, charges) for number in range(n_periods)]
    return worst_window(spends, model.window_length, model.windows).epsilon


@lru_cache(maxsize=256)
def _worst_overlap(plan: LevelPlan) -> Fraction:
    """Return how many times a period's sampling cost a window can meet, over periods of any allowed lengths.

    Lemma 7 (docs/privacy.md): relative to the full cost, shorter periods cost a window more (the profile
    falls with the period's length, by parity), so periods of the shortest length are the worst.
    """
    sampling, window = plan.sampling, plan.model.window_length
    assert isinstance(sampling, L1Sampling)
    length = plan.shortest_period
    # Shorter ones than this ask nothing.
    while sampling.longest_segment(length, window) < 2:
        length += 1
    shortest = sampling.longest_segment(length, window) - 1
    envelope = [Fraction(0)] * (length + 1)
    for inner in (shortest, shortest + 1):
        for n in range(length + 1):
            moved = math.ceil(plan.alpha_units * l1_score_change(n, inner + 1))
            envelope[n] = max(envelope[n], Fraction(moved, 2 * plan.alpha_units * inner))
    return _repeated(tuple(envelope), plan.model)
