"""OptStream: sample, perturb, reconstruct, and make the hierarchy consistent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import reconstruct
from optstream.estimation.hierarchy.error_propagation import interpolated_variances, noise_variances
from optstream.estimation.hierarchy.solve import Consistent, consistent
from optstream.estimation.hierarchy.unmeasured import with_unmeasured_leaves
from optstream.measurement import EquallySpaced, L1Sampling, measure_points_and_sums
from optstream.measurement.l1_sampling import choose_level_points
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.optstream.parameters import settled, stage_names
from optstream.mechanisms.optstream.plan import LevelPlan, equal_points
from optstream.mechanisms.optstream.points import choices, next_state, state_of, taken_points
from optstream.mechanisms.series import LARGEST_SCALE
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.exact import Exact
from optstream.privacy.model import Calibration
from optstream.stream import AggregationTree, Feature, Measured, PrivatePeriod, State


@dataclass(frozen=True, init=False)
class OptStream(Mechanism):
    """The mechanism of the OptStream paper on a tree.

    Every node measures the sampled steps and the sums of each feature's parts with Laplace noise; everything
    between is reconstructed and fitted from those noisy numbers, so that nodes add up and no value lies below
    the bound. With equal spacing the plan is public and every period costs the same; with L1 sampling a
    level's points are chosen by its noisy scores.

    Source: Fioretto and Van Hentenryck, OptStream, Algorithms 1 to 4.

    Args:
        model: What is protected.
        tree: The hierarchy.
        sampling: Which steps are measured; its n_samples in [2, w].
        features: Partitions of the period, all of one length, of different names.
        level_shares: Of epsilon, exact, one for each level, root first, adding up to at most 1; 0 above the
            leaves means derived.
        stage_shares: Of a level's epsilon, exact, above 0, adding up to at most 1, for (samples, features),
            or (sampling, samples, features) with L1 sampling, without "features" where there are none; None
            for equal ones.
        weights: "variance" or "paper" (`estimation.make_consistent`).
        calibration: "strict" costs at most epsilon in any window, without end; "paper" takes the paper's
            scales and costs more than it says, which `epsilon` of its releases states (with L1 sampling for
            periods of `shortest_period`: longer ones cost more).
        lower_bound: Of every leaf, in the unit of the readings; None for no bound. Where it is met, parents
            keep their estimates (`estimation.make_consistent`'s "held") but for weights="paper".
        post_processing: False leaves out features and program: the perturbed points, reconstructed.
        shortest_period: Steps of the shortest period that will ever be released, at least 1; None for the
            features' length, or a window without features. Only L1 sampling needs it, for short periods meet
            a window more often.

    Raises:
        ParameterError: For a parameter outside its range, naming it, its legal range and what it got; and
            where the noise would outgrow the integers.
    """

    model: PrivacyModel
    tree: AggregationTree
    sampling: EquallySpaced | L1Sampling
    features: tuple[Feature, ...]
    level_shares: tuple[Fraction, ...]
    stage_shares: tuple[Fraction, ...]
    weights: str
    calibration: Calibration
    lower_bound: float | None
    post_processing: bool
    shortest_period: int
    has_paper_scales: ClassVar[bool] = True

    def __init__(
        self,
        model: PrivacyModel,
        tree: AggregationTree,
        *,
        sampling: EquallySpaced | L1Sampling,
        features: Sequence[Feature],
        level_shares: Sequence[Exact],
        stage_shares: Sequence[Exact] | None = None,
        weights: str = "variance",
        calibration: Calibration = "strict",
        lower_bound: float | None = 0.0,
        post_processing: bool = True,
        shortest_period: int | None = None,
    ) -> None:
        given = {
            "model": model,
            "tree": tree,
            "sampling": sampling,
            "features": tuple(features) if post_processing else (),
            "level_shares": level_shares,
            "stage_shares": stage_shares,
            "weights": weights,
            "calibration": calibration,
            "lower_bound": lower_bound,
            "post_processing": post_processing,
            "shortest_period": shortest_period,
        }
        for name, value in settled(given).items():
            object.__setattr__(self, name, value)
        self._check_scales(self.features[0].n_steps if self.features else self.shortest_period)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over what is only read
        """Whether what is measured depends on what was measured before: then periods go one by one."""
        return isinstance(self.sampling, L1Sampling)

    @property
    def noise_is_known(self) -> bool:  # type: ignore[override]  # mypy: a property over what is only read
        """Whether points are chosen by a public rule."""
        return not self.adaptive

    @property
    def levels(self) -> tuple[LevelPlan, ...]:
        """The measured levels' parts of the budget, root first."""
        return _levels(self)

    @property
    def by_level(self) -> dict[int, LevelPlan]:
        """The `levels` by their number, each with its own epsilon."""
        return {plan.level: plan for plan in self.levels}

    def foreseen(self) -> "OptStream":
        """Return itself, or with equally spaced points in place of those that the draw chooses."""
        if self.noise_is_known:
            return self
        sampling = EquallySpaced(self.sampling.n_samples)
        return replace(self, sampling=sampling, stage_shares=self.stage_shares[1:])

    @property
    def epsilon(self) -> Fraction:
        """What the plan, repeated without end, costs any window: the sum of its levels' costs (Lemma 1)."""
        return _cost(self)

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' spends of a period, in a row; `state` holds the points of other periods."""
        self._check_length(n_steps)
        if self.adaptive:
            return self._spends(n_steps, first_step, None, state)
        residue = first_step % self.model.window_length
        return tuple(replace(spend, first_step=first_step) for spend in _public_plan(self, residue, n_steps))

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        n_steps, first_step = period.n_steps, period.first_step
        spends = self.plan(n_steps, first_step, state)
        if self.adaptive:
            chosen = choices(self.levels, n_steps, first_step, state)
            points = choose_level_points(period, self.tree, chosen, noise)
            spends = self._spends(n_steps, first_step, points, state)
            state = next_state(points, n_steps, first_step, self.model.window_length, state)
        else:
            points = {level.level: equal_points(level, n_steps, first_step) or () for level in self.levels}
        return measure_points_and_sums(
            period,
            self.tree,
            points=points,
            features=self.features,
            spends=spends,
            noise=noise,
            state=state,
        )

    def _consistent(self, measured: Measured) -> Consistent:
        if not self.post_processing:
            return Consistent(reconstruct(measured), None)
        seen = self._as_weighed(measured)
        return consistent(seen, self.tree, self.features, self.weights, self.lower_bound)

    def noise_variances(self, measured: Measured) -> NDArray[np.float64]:
        """Return the noise of points and features through reconstruction and least squares."""
        if not self.post_processing:
            return interpolated_variances(measured)
        return noise_variances(self._as_weighed(measured), self.tree, self.features, self.weights)

    def _as_weighed(self, measured: Measured) -> Measured:
        return with_unmeasured_leaves(measured, self.tree) if self.adaptive else measured

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the measured steps of other periods; None with equal spacing."""
        return state_of(self.levels, spends) if self.adaptive else None

    def _spends(
        self, n_steps: int, first_step: int, points: Mapping[int, tuple[int, ...]] | None, state: State | None
    ) -> tuple[Spend, ...]:
        """Return the levels' spends of a period; `points` is None while they are not chosen."""
        return tuple(
            spend
            for level in self.levels
            for spend in level.spends(
                n_steps,
                first_step,
                None if points is None else points[level.level],
                taken_points(level, state),
                self.features,
            )
        )

    def _check_length(self, n_steps: int) -> None:
        if self.features and self.features[0].n_steps != n_steps:
            raise ParameterError(
                f"the features are for periods of {self.features[0].n_steps} steps; this one has {n_steps}"
            )
        if self.adaptive and n_steps < self.shortest_period:
            raise ParameterError(
                f"shortest_period of OptStream is {self.shortest_period}, and this period has {n_steps} "
                "steps: say so in advance, for the noise depends on it"
            )
        if self.adaptive:
            self._check_scales(n_steps)

    def _check_scales(self, n_steps: int) -> None:
        if max(level.largest_scale(n_steps) for level in self.levels) > LARGEST_SCALE:
            raise ParameterError(
                f"the noise of a period of {n_steps} steps would outgrow the integers: choose a larger "
                "epsilon or a coarser resolution"
            )


@lru_cache(maxsize=512)
def _levels(mechanism: OptStream) -> tuple[LevelPlan, ...]:
    names = stage_names(mechanism.sampling, mechanism.features)
    stages = dict(zip(names, mechanism.stage_shares, strict=True))
    return tuple(
        LevelPlan(
            level=level,
            leaves_changed=mechanism.model.leaves_changed(len(mechanism.tree.leaves)),
            model=mechanism.model,
            sampling=mechanism.sampling,
            features=tuple(feature.name for feature in mechanism.features),
            calibration=mechanism.calibration,
            epsilon_sampling=mechanism.model.epsilon * share * stages.get("sampling", Fraction(0)),
            epsilon_samples=mechanism.model.epsilon * share * stages["samples"],
            epsilon_features=mechanism.model.epsilon * share * stages.get("features", Fraction(0)),
            shortest_period=mechanism.shortest_period,
        )
        for level, share in enumerate(mechanism.level_shares)
        if share > 0
    )


@lru_cache(maxsize=64)
def _cost(mechanism: OptStream) -> Fraction:
    return sum((level.epsilon for level in mechanism.levels), Fraction(0))


@lru_cache(maxsize=512)
def _public_plan(mechanism: OptStream, residue: int, n_steps: int) -> tuple[Spend, ...]:
    """Return the spends of a period that starts at this residue modulo the window, as if at that very
    step.
    """
    points = {level.level: equal_points(level, n_steps, residue) or () for level in mechanism.levels}
    return mechanism._spends(n_steps, residue, points, None)
