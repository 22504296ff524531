"""OptStream: sample, perturb, reconstruct, and make the hierarchy consistent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import reconstruct
from optstream.estimation.hierarchy.between_points import missed_variances
from optstream.estimation.hierarchy.error_propagation import interpolated_variances, noise_variances
from optstream.estimation.hierarchy.solve import Consistent, consistent
from optstream.estimation.hierarchy.unmeasured import with_unmeasured_leaves
from optstream.measurement import EquallySpaced, L1Sampling, measure_points_and_sums
from optstream.measurement.l1_sampling import choose_level_points
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.joint_groups import JointTerms, Noise, PointGroups
from optstream.mechanisms.optstream.parameters import settled, stage_names
from optstream.mechanisms.optstream.plan import LevelPlan, equal_points
from optstream.mechanisms.optstream.points import (
    choices,
    measured_points,
    next_state,
    other_plans,
    spends_around,
    state_of,
    taken_points,
)
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.series import LARGEST_SCALE
from optstream.noise import NoiseSource
from optstream.privacy import JointSpend, PrivacyModel, Spend
from optstream.privacy.exact import Exact, plain
from optstream.privacy.model import Calibration
from optstream.privacy.rules.headroom import groups_with_headroom
from optstream.stream import AggregationTree, Feature, Measured, PrivatePeriod, State


@dataclass(frozen=True, init=False)
class OptStream(Mechanism):
    """The mechanism of the OptStream paper on a tree, or on one with a margin, which is one more level.

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
        noise: Of the points, "laplace", or "joint" where they are equally spaced by the strict scales; None
            for the one with less expected error of those that are allowed, as in `Laplace`. Sums always have
            Laplace noise.
        period_lengths: As in `Laplace`.
        declared_leaves: As in `Laplace`.

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
    noise: Noise | None
    period_lengths: tuple[int, ...] | None
    declared_leaves: int | None
    has_paper_scales: ClassVar[bool] = True
    takes_margin: ClassVar[bool] = True
    serves_hours: ClassVar[bool] = False

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
        noise: Noise | None = "laplace",
        period_lengths: tuple[int, ...] | None = None,
        declared_leaves: int | None = None,
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
            "noise": noise,
            "period_lengths": period_lengths,
            "declared_leaves": declared_leaves,
        }
        for name, value in settled({name: plain(value) for name, value in given.items()}).items():
            object.__setattr__(self, name, value)
        self._check_scales(self.features[0].n_steps if self.features else self.shortest_period)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over what is only read
        """Whether what is measured depends on what was measured before: then periods go one by one."""
        return isinstance(self.sampling, L1Sampling)

    @property
    def reads_spends(self) -> bool:
        """Whether what other periods spent leaves out points: chosen ones, or groups of joint noise."""
        return self.adaptive or any(level.groups for level in self.levels)

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

    def noise_per_point(self) -> dict[int, float]:
        """Return how much noise each equally spaced point of a window adds, as `Mechanism` says it."""
        unit = self.model.resolution
        plans = () if self.adaptive else self.levels
        return {plan.level: float(plan.alpha_units * unit / plan.epsilon_samples) for plan in plans}

    def foreseen(self) -> "OptStream":
        """Return itself, or with equally spaced points in place of those that the draw chooses."""
        if self.noise_is_known:
            return self
        sampling = EquallySpaced(self.sampling.n_samples)
        return replace(self, sampling=sampling, stage_shares=self.stage_shares[1:], noise="laplace")

    @property
    def epsilon(self) -> Fraction:
        """What the plan, repeated without end, costs any window: the sum of its levels' costs (Lemma 1)."""
        return _cost(self)

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' spends of a period, in a row; `state` holds the points or spends of others."""
        self._check_length(n_steps)
        if self.adaptive:
            return self._spends(n_steps, first_step, None, state)
        residue = first_step % self.model.window_length
        plan = tuple(replace(spend, first_step=first_step) for spend in _public_plan(self, residue, n_steps))
        return self._with_headroom(plan, state) if self.reads_spends else plan

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        n_steps, first_step = period.n_steps, period.first_step
        spends = self.plan(n_steps, first_step, state)
        if self.adaptive:
            chosen = choices(self.levels, n_steps, first_step, state)
            points = choose_level_points(period, self.tree, chosen, noise)
            spends = self._spends(n_steps, first_step, points, state)
            state = next_state(points, n_steps, first_step, self.model.window_length, state)
        else:
            points, state = measured_points(spends), None
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

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements, with how far it may be off between them; free.

        Args:
            measured: As for `Mechanism.estimate`.

        Returns:
            The release; its `standard_errors` count in what lines between points miss (`missed_variances`).

        Raises:
            ParameterError: As `Mechanism.estimate`.
        """
        release, seen = super().estimate(measured), self._as_weighed(measured)
        noise = release.noise_standard_errors
        if noise is None:
            return release
        weights = self.weights if self.post_processing else None
        missed = missed_variances(seen, self.tree, self.features, weights, release.values, noise**2)
        return replace(
            release, standard_errors=np.sqrt(noise**2 + missed), noise_of=partial(np.asarray, noise)
        )

    def noise_variances(self, measured: Measured) -> NDArray[np.float64]:
        """Return the noise of points and features through reconstruction and least squares."""
        if not self.post_processing:
            return interpolated_variances(measured)
        return noise_variances(self._as_weighed(measured), self.tree, self.features, self.weights)

    def _as_weighed(self, measured: Measured) -> Measured:
        return with_unmeasured_leaves(measured, self.tree) if self.reads_spends else measured

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the measured steps of other periods; what they spent, for joint noise; else None.

        Joint noise needs it beside days of another plan alone.
        """
        if self.adaptive:
            return state_of(self.levels, spends)
        sliding = self.model.windows == "sliding"
        return other_plans(self.levels, list(spends)) if sliding and self.reads_spends else None

    def _with_headroom(self, plan: tuple[Spend, ...], state: State | None) -> tuple[Spend, ...]:
        """Return the plan without the groups for which some window has no headroom at their level."""
        known, found = spends_around(state), list[Spend]()
        for spend in plan:
            if known and isinstance(spend, JointSpend):
                own = self.by_level[spend.level]
                beside = [one for one in (*known, *plan) if one.level == spend.level and one is not spend]
                groups = groups_with_headroom(
                    spend.groups,
                    spend.first_step,
                    spend.unit_charge,
                    beside,
                    self.model.window_length,
                    own.epsilon,
                )
                spend = replace(spend, groups=groups)
            found.append(spend)
        return tuple(found)

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
    together = mechanism.model.leaves_per_step
    stages = dict(zip(names, mechanism.stage_shares, strict=True))
    return tuple(
        LevelPlan(
            level=level,
            leaves_changed=together,
            model=mechanism.model,
            sampling=mechanism.sampling,
            features=tuple(feature.name for feature in mechanism.features),
            calibration=mechanism.calibration,
            epsilon_sampling=mechanism.model.pure_epsilon * share * stages.get("sampling", Fraction(0)),
            epsilon_samples=mechanism.model.pure_epsilon * share * stages["samples"],
            epsilon_features=mechanism.model.pure_epsilon * share * stages.get("features", Fraction(0)),
            shortest_period=mechanism.shortest_period,
            n_nodes=len(mechanism.tree.levels[level]),
            groups=_groups(
                mechanism, level, together, mechanism.model.pure_epsilon * share * stages["samples"]
            ),
        )
        for level, share in enumerate(mechanism.level_shares)
        if share > 0
    )


def _groups(mechanism: OptStream, level: int, together: int, epsilon: Fraction) -> PointGroups | None:
    """Return a level's groups of joint noise. Raises ParameterError if it was asked for and cannot be had."""
    n_nodes = len(mechanism.tree.levels[level])
    terms = JointTerms(mechanism.noise, mechanism.period_lengths, n_nodes, mechanism.declared_leaves)
    if not isinstance(mechanism.sampling, EquallySpaced) or mechanism.calibration == "paper":
        if mechanism.noise == "joint":
            raise ParameterError(
                'noise = "joint" of OptStream is for equally spaced points by the strict scales: how many '
                "points L1 sampling takes of a period is an outcome, and the paper's scales are its own"
            )
        return None
    unit_scale = together * mechanism.model.alpha_units / epsilon
    return terms.point_groups(mechanism.model, mechanism.sampling, unit_scale)


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
