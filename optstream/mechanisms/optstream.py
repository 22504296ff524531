"""OptStream: sample, perturb, reconstruct, and make the hierarchy consistent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import reconstruct
from optstream.estimation.least_squares import BoundRule, Consistent, consistent
from optstream.estimation.problem import LeastSquares, least_squares, with_unmeasured_leaves
from optstream.estimation.variances import interpolated_variances, noise_variances
from optstream.history.between_points import missed_variances
from optstream.measurement import EquallySpaced, L1Sampling, measure_points_and_sums
from optstream.measurement.priced import query_weights
from optstream.measurement.sampling import Choice, Sampling, check_n_samples, choose_level_points
from optstream.measurement.sums import SAMPLES, feature_stage
from optstream.mechanisms.base import (
    LARGEST_SCALE,
    Mechanism,
    checked_level_shares,
    checked_shares,
    known_spends,
    measured_steps,
    points_after,
    state_of_spends,
)
from optstream.mechanisms.joint_groups import JointTerms, Noise, PointGroups
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import (
    CappedSpend,
    JointSpend,
    PeriodSpend,
    PrivacyModel,
    Spend,
    StepSpend,
    worst_window,
)
from optstream.privacy.exact import Exact, plain, round_up_to_float, whole
from optstream.privacy.rules import WindowBudget, groups_with_headroom
from optstream.privacy.sparse_vector import SparseVectorScales, l1_score_change, sparse_vector_scales
from optstream.stream import AggregationTree, Feature, Lattice, Measured, PrivatePeriod, State

MOST_TOGETHER = 3000
"""With a margin and features: nodes of the margin and above the regions, times steps, of one dense system."""


def settled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return OptStream's parameters, checked and in their final types. Raises ParameterError."""
    weights, features = given["weights"], given["features"]
    if weights not in ("variance", "paper"):
        raise ParameterError(f'weights of OptStream must be "variance" or "paper"; got {weights!r}')
    _check_features(features)
    _check_margin(given["tree"], features)
    sampling, window = given["sampling"], given["model"].window_length
    if not isinstance(sampling, (EquallySpaced, L1Sampling)):
        raise ParameterError(f"sampling of OptStream must be EquallySpaced or L1Sampling; got {sampling!r}")
    check_n_samples(sampling.n_samples, window, type(sampling).__name__)
    return {
        **given,
        "level_shares": checked_level_shares(given["level_shares"], given["tree"]),
        "stage_shares": _stage_shares(given["stage_shares"], sampling, features),
        "shortest_period": _shortest_period(given["shortest_period"], features, window),
    }


def _check_features(features: Sequence[Feature]) -> None:
    if len({feature.name for feature in features}) != len(features):
        raise ParameterError("features of OptStream must have different names")
    if len({feature.n_steps for feature in features}) > 1:
        raise ParameterError("features of OptStream must partition periods of one length")


def _check_margin(tree: AggregationTree, features: Sequence[Feature]) -> None:
    if not isinstance(tree, Lattice) or not features:
        return
    n_nodes = len(tree.nodes) - len(tree.leaves) - len(tree.tree.levels[-2])
    if n_nodes * features[0].n_steps > MOST_TOGETHER:
        raise ParameterError(
            f"features of OptStream with margin {tree.margin!r:.80} are for at most {MOST_TOGETHER:,} of "
            "steps times nodes of the margin and above the regions, for they hang all steps together; got "
            f"{features[0].n_steps} times {n_nodes}: leave the features out, or let the larger of both "
            "dimensions be the regions"
        )


def stage_names(sampling: EquallySpaced | L1Sampling, features: Sequence[Feature]) -> tuple[str, ...]:
    """Return the stages that share a level's epsilon, in order."""
    first = ("sampling",) if isinstance(sampling, L1Sampling) else ()
    return (*first, "samples", *(("features",) if features else ()))


def _stage_shares(
    given: Sequence[Any] | None, sampling: EquallySpaced | L1Sampling, features: Sequence[Feature]
) -> tuple[Fraction, ...]:
    names = stage_names(sampling, features)
    shares = given if given is not None else [Fraction(1, len(names))] * len(names)
    checked = checked_shares(shares, len(names), f"stage_shares ({', '.join(names)})")
    if 0 in checked:
        raise ParameterError("stage_shares must be above 0 for each stage; leave features out instead")
    return checked


def _shortest_period(given: Any, features: Sequence[Feature], window: int) -> int:
    length = features[0].n_steps if features else window
    if given is None:
        return length
    if not features and isinstance(given, int) and given > window:
        return window  # a period counts as no longer than a window
    return whole(given, "shortest_period of OptStream", 1, length)


SAMPLING = "sampling"


@dataclass(frozen=True)
class LevelPlan:
    """One measured level's part of the budget, and the scales that follow from it.

    epsilon_sampling is 0 with equal spacing, epsilon_features is 0 without features; `groups` is None for
    Laplace noise on the points.
    """

    level: int
    model: PrivacyModel
    sampling: Sampling
    features: tuple[str, ...]
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
        return self.model.leaves_per_step * self.model.alpha_units

    @property
    def samples_scale(self) -> Fraction:
        """The scale of the points' noise: a window holds k points (Lemmas 3, 4, 7) or groups (Lemma 16)."""
        return _rounded_up(self.alpha_units * self.point_charges / self.epsilon_samples)

    @property
    def features_scale(self) -> Fraction:
        """The scale of the features' noise: a window holds w steps of each, each charged (Lemma 3)."""
        changes = self.model.window_length * len(self.features)
        return _rounded_up(self.alpha_units * changes / self.epsilon_features)

    def largest_scale(self, n_steps: int) -> Fraction:
        """Return the largest noise scale in a period of this length, with which the sampler's grows."""
        scales = [self.samples_scale, *self.period_scales(n_steps).values()]
        return max([*scales, self.features_scale] if self.features else scales)

    def sampler_scales(self, n_steps: int) -> SparseVectorScales | None:
        """Return the sparse vector's noise for a period of this length; None where it has no queries."""
        if not isinstance(self.sampling, L1Sampling):
            return None
        window = self.model.window_length
        points = self.sampling.points_of_period(n_steps, window)
        segment = self.sampling.longest_segment(n_steps, window)
        if segment < 2:
            return None  # no step lies between two points, so there is no private query
        sensitivity = 2 * self.alpha_units * (segment - 1)
        epsilon = self.epsilon_sampling / _worst_overlap(self)
        return sparse_vector_scales(sensitivity, points - 1, epsilon, self.sampling.allocation)

    def sampler_charges(self, n_steps: int) -> tuple[Fraction, ...]:
        """Return the cost of choosing the points for n changed steps, n = 0 .. n_steps (Lemma 6)."""
        return _sampler_charges(self, n_steps)

    def spends(
        self,
        n_steps: int,
        first_step: int,
        points: Sequence[int] | None,
        taken: Sequence[int],
        features: Sequence[Feature],
    ) -> tuple[Spend, ...]:
        """Return the level's spends for one period: the sampler's, the points', and one for each feature.

        `points` of None are the worst outcome of the rule with `taken`, the points of other periods.
        """
        found: list[Spend] = []
        charges = self.sampler_charges(n_steps)
        if charges[-1]:
            found.append(PeriodSpend(self.level, SAMPLING, first_step, charges))
        found.append(self._points(points, n_steps, first_step, taken))
        alpha, leaves = self.model.alpha_units, self.model.leaves_per_step
        for feature in features:
            stage, weights = feature_stage(feature), query_weights(feature.parts, n_steps)
            scale = self.features_scale
            found.append(StepSpend(self.level, stage, first_step, weights, scale, alpha, leaves))
        return tuple(found)

    def _points(
        self, points: Sequence[int] | None, n_steps: int, first_step: int, taken: Sequence[int]
    ) -> Spend:
        at, scale = (self.level, SAMPLES, first_step), self.samples_scale
        alpha, leaves = self.model.alpha_units, self.model.leaves_per_step
        if points is None:
            return CappedSpend(*at, n_steps, self.sampling.n_samples, tuple(taken), scale, alpha, leaves)
        if self.groups is None:
            weights = query_weights([range(step, step + 1) for step in points], n_steps)
            return StepSpend(*at, weights, scale, alpha, leaves)
        return JointSpend(*at, n_steps, self.groups.of(points), scale, alpha, self.n_nodes, leaves)

    def is_own(self, spend: Spend) -> bool:
        """Return whether a spend of another period is one of this plan, whole or with groups left out.

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
        if self.groups is None or isinstance(spend, StepSpend):
            return self.groups is None and isinstance(spend, StepSpend)
        single = all(len(part) == 1 for part in spend.parts)
        return single and all(len(group) >= self.groups.least for group in spend.groups)

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        """Return the sampler's scales, by the name of their draw."""
        sampler = self.sampler_scales(n_steps)
        return {"threshold": sampler.threshold, "scores": sampler.query} if sampler else {}

    @property
    def epsilon(self) -> Fraction:
        """What this level's plan, repeated without end, costs any window."""
        # the sampler's scales were divided for all of it: periods of any lengths, also of more queries
        cost = self.point_charges * self.alpha_units / self.samples_scale + self.epsilon_sampling
        if self.features:
            changes = len(self.features) * self.model.window_length
            cost += changes * self.alpha_units / self.features_scale
        return cost


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
    return tuple(losses)


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(round_up_to_float(scale))


@lru_cache(maxsize=256)
def _worst_overlap(plan: LevelPlan) -> Fraction:
    """Return how many times a period's sampling cost a window can meet, over periods of any allowed lengths.

    Lemma 7 (docs/privacy.md): relative to the full cost, shorter periods cost a window more (the profile
    falls with the period's length, by parity), so periods of the shortest length are the worst.
    """
    sampling, window = plan.sampling, plan.model.window_length
    assert isinstance(sampling, L1Sampling)
    length = plan.shortest_period
    # Shorter ones than this have no queries.
    while sampling.longest_segment(length, window) < 2:
        length += 1
    shortest = sampling.longest_segment(length, window) - 1
    envelope = [Fraction(0)] * (length + 1)
    for inner in (shortest, shortest + 1):
        for n in range(length + 1):
            moved = math.ceil(plan.alpha_units * l1_score_change(n, inner + 1))
            envelope[n] = max(envelope[n], Fraction(moved, 2 * plan.alpha_units * inner))
    n_periods = -(-window // length) + 2
    spends = [PeriodSpend(0, SAMPLING, number * length, tuple(envelope)) for number in range(n_periods)]
    return worst_window(spends, window).epsilon


# The state: points of other periods that windows of the next can see, {"points": {level: steps}}.

NAME = "OptStream"


def state_of(levels: Sequence[LevelPlan], spends: Iterable[Spend]) -> State:
    """Return the state that the spends of other periods imply, earlier and later ones."""
    known = list(spends)
    points = {
        plan.level: measured_steps((one for one in known if one.level == plan.level), SAMPLES)
        for plan in levels
    }
    return {"points": {str(level): [step for step, _ in steps] for level, steps in points.items()}}


def other_plans(levels: Sequence[LevelPlan], spends: Sequence[Spend]) -> State | None:
    """Return other periods' spends as a state if some are of another plan, at a level with joint noise."""
    joint = {plan.level: plan for plan in levels if plan.groups}
    near = [spend for spend in spends if spend.level in joint]
    once = len({(spend.level, spend.stage, spend.first_step) for spend in near}) == len(near)
    if once and all(joint[spend.level].is_own(spend) for spend in near):
        return None
    return state_of_spends(near, NAME)


def measured_points(spends: Iterable[Spend]) -> dict[int, tuple[int, ...]]:
    """Return each level's measured points of a period, from its start, by its spends."""
    return {
        spend.level: tuple(step for step, weight in enumerate(spend.weights) if weight)
        for spend in spends
        if isinstance(spend, StepSpend | JointSpend) and spend.stage == SAMPLES
    }


def taken_points(plan: LevelPlan, state: State | None) -> tuple[int, ...]:
    """Return the points of other periods that the level's rule counts.

    A state of another origin raises ParameterError: read as "no points", it would void the guarantee.
    """
    if state is None:
        return ()
    try:
        taken = tuple(state["points"][str(plan.level)])
    except (KeyError, TypeError) as error:
        raise ParameterError(
            f'state of OptStream must be {{"points": {{"{plan.level}": [steps]}}}}, as releases have it'
        ) from error
    if any(isinstance(step, bool) or not isinstance(step, int) for step in taken):
        raise ParameterError("state of OptStream must hold running step indices, integers")
    return taken


def choices(plans: Sequence[LevelPlan], n_steps: int, first_step: int, state: State | None) -> list[Choice]:
    """Return how each level's points of a period are to be chosen."""
    found = []
    for plan in plans:
        sampling, window = plan.sampling, plan.model.window_length
        assert isinstance(sampling, L1Sampling)
        taken = [(step, 1) for step in taken_points(plan, state)]
        rule = WindowBudget(sampling.n_samples, window, first_step, n_steps, taken)
        n_points = sampling.points_of_period(n_steps, window)
        threshold_units = round(sampling.threshold / plan.model.resolution)
        found.append(Choice(plan.level, n_points, threshold_units, rule, plan.sampler_scales(n_steps)))
    return found


@dataclass(frozen=True, init=False)
class OptStream(Mechanism):
    """The mechanism of the OptStream paper on a tree, or on one with a margin, which is one more level.

    Every node measures the sampled steps and the sums of each feature's parts with Laplace noise; the steps
    between are reconstructed and fitted from those noisy numbers, so that nodes add up and no value lies
    below the bound. With equal spacing the plan is public and every period costs the same; with L1 sampling a
    level's points are chosen by its noisy scores.

    Source: Fioretto and Van Hentenryck, OptStream, Algorithms 1 to 4.

    Args:
        model: The privacy guarantee.
        tree: The hierarchy.
        sampling: Which steps are measured; its n_samples in [2, w].
        features: Partitions of the period, all of one length, of different names.
        level_shares: Of epsilon, exact, one for each level, root first, adding up to at most 1; 0 above the
            leaves means derived.
        stage_shares: Of a level's epsilon, exact, above 0, adding up to at most 1, for (samples, features),
            or (sampling, samples, features) with L1 sampling, without "features" where there are none; None
            for equal ones.
        weights: "variance" or "paper" (`estimation.make_consistent`).
        lower_bound: Of every leaf, in the unit of the readings; None for no bound. Where it is met, parents
            keep their estimates (`estimation.make_consistent`'s "held") but for weights="paper".
        post_processing: False leaves out features and program: the perturbed points, reconstructed.
        shortest_period: Steps of the shortest period that will ever be released, at least 1, for L1 sampling;
            None for the features' length, or a window without features.
        noise: Of the points, as in `Laplace`; "joint" only where they are equally spaced. Sums always have
            Laplace noise.
        period_lengths: As in `Laplace`.
        declared_leaves: As in `Laplace`.

    Raises:
        ParameterError: A parameter is outside its range, or the noise would outgrow the integers.
    """

    model: PrivacyModel
    tree: AggregationTree
    sampling: EquallySpaced | L1Sampling
    features: tuple[Feature, ...]
    level_shares: tuple[Fraction, ...]
    stage_shares: tuple[Fraction, ...]
    weights: str
    lower_bound: float | None
    post_processing: bool
    shortest_period: int
    noise: Noise | None
    period_lengths: tuple[int, ...] | None
    declared_leaves: int | None
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
        lower_bound: float | None = 0.0,
        post_processing: bool = True,
        shortest_period: int | None = None,
        noise: Noise | None = "laplace",
        period_lengths: tuple[int, ...] | None = None,
        declared_leaves: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        given["features"] = tuple(features) if post_processing else ()
        for name, value in settled({name: plain(value) for name, value in given.items()}).items():
            object.__setattr__(self, name, value)
        self._check_scales(self.features[0].n_steps if self.features else self.shortest_period)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over what is only read
        """Whether measurements depend on earlier ones, so that periods go one by one."""
        return isinstance(self.sampling, L1Sampling)

    @property
    def reads_spends(self) -> bool:
        """Whether what other periods spent leaves out points: chosen ones, or groups of joint noise."""
        return self.adaptive or any(level.groups for level in self.levels)

    @property
    def noise_is_known(self) -> bool:  # type: ignore[override]  # mypy: a property over what is only read
        return not self.adaptive

    @property
    def levels(self) -> tuple[LevelPlan, ...]:
        return _levels(self)

    @property
    def by_level(self) -> dict[int, LevelPlan]:
        return {plan.level: plan for plan in self.levels}

    def foreseen(self) -> "OptStream":
        """Return itself, or with equally spaced points where the draw would choose them."""
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
        n_steps, first_step, after = period.n_steps, period.first_step, None
        spends = self.plan(n_steps, first_step, state)
        points = measured_points(spends)
        if self.adaptive:
            chosen = choices(self.levels, n_steps, first_step, state)
            points = choose_level_points(period, self.tree, chosen, noise)
            spends = self._spends(n_steps, first_step, points, state)
            before, end = {} if state is None else state["points"], first_step + n_steps
            known = {
                level: {*before.get(str(level), ()), *(first_step + step for step in own)}
                for level, own in points.items()
            }
            window = self.model.window_length
            after = {"points": {str(level): points_after(own, end, window) for level, own in known.items()}}
        return measure_points_and_sums(
            period, self.tree,
            points=points, features=self.features, spends=spends, noise=noise, state=after,
        )  # fmt: skip

    def _consistent(self, measured: Measured) -> Consistent:
        if not self.post_processing:
            return Consistent(reconstruct(measured), None)
        seen = self._as_weighed(measured)
        return consistent(seen, self.tree, self.features, self.weights, self.lower_bound)

    def estimate(self, measured: Measured) -> Release:
        """Compute the release; its `standard_errors` include the error of lines between points."""
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

    def program(self, release: Release) -> tuple[LeastSquares, BoundRule]:
        """Return the least squares of its estimate, and how that meets the lower bound."""
        seen = self._as_weighed(release.measured)
        rule: BoundRule = "joint" if self.weights == "paper" else "held"
        return least_squares(seen, self.tree, self.features, self.weights), rule

    def _as_weighed(self, measured: Measured) -> Measured:
        return with_unmeasured_leaves(measured, self.tree) if self.reads_spends else measured

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the measured steps of other periods; their spends for joint noise near another plan."""
        if self.adaptive:
            return state_of(self.levels, spends)
        return other_plans(self.levels, list(spends)) if self.reads_spends else None

    def _with_headroom(self, plan: tuple[Spend, ...], state: State | None) -> tuple[Spend, ...]:
        """Return the plan without the groups for which some window has no headroom at their level."""
        known, found = known_spends(state, NAME), list[Spend]()
        for spend in plan:
            if known and isinstance(spend, JointSpend):
                most, window = self.by_level[spend.level].epsilon, self.model.window_length
                others = [one for one in (*known, *plan) if one.level == spend.level and one is not spend]
                groups = groups_with_headroom(
                    spend.groups, spend.first_step, spend.unit_charge, others, window, most
                )
                spend = replace(spend, groups=groups)
            found.append(spend)
        return tuple(found)

    def _spends(
        self, n_steps: int, first_step: int, points: Mapping[int, tuple[int, ...]] | None, state: State | None
    ) -> tuple[Spend, ...]:
        """Return the levels' spends of a period; `points` is None while they are not chosen."""
        found = list[Spend]()
        for level in self.levels:
            chosen = None if points is None else points[level.level]
            taken = taken_points(level, state)
            found += level.spends(n_steps, first_step, chosen, taken, self.features)
        return tuple(found)

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
    names, epsilon = stage_names(mechanism.sampling, mechanism.features), mechanism.model.pure_epsilon
    stages = {name: epsilon * share for name, share in zip(names, mechanism.stage_shares, strict=True)}
    return tuple(
        LevelPlan(
            level=level,
            model=mechanism.model,
            sampling=mechanism.sampling,
            features=tuple(feature.name for feature in mechanism.features),
            epsilon_sampling=share * stages.get("sampling", Fraction(0)),
            epsilon_samples=share * stages["samples"],
            epsilon_features=share * stages.get("features", Fraction(0)),
            shortest_period=mechanism.shortest_period,
            n_nodes=len(mechanism.tree.levels[level]),
            groups=_groups(mechanism, level, share * stages["samples"]),
        )
        for level, share in enumerate(mechanism.level_shares)
        if share > 0
    )


def _groups(mechanism: OptStream, level: int, epsilon: Fraction) -> PointGroups | None:
    """Return a level's groups of joint noise, which may be required and impossible: ParameterError."""
    n_nodes = len(mechanism.tree.levels[level])
    terms = JointTerms(mechanism.noise, mechanism.period_lengths, n_nodes, mechanism.declared_leaves)
    if not isinstance(mechanism.sampling, EquallySpaced):
        if mechanism.noise == "joint":
            raise ParameterError(
                'noise = "joint" of OptStream is for equally spaced points: how many points L1 sampling '
                "takes of a period is an outcome"
            )
        return None
    unit_scale = mechanism.model.leaves_per_step * mechanism.model.alpha_units / epsilon
    return terms.point_groups(mechanism.model, mechanism.sampling, unit_scale)


@lru_cache(maxsize=64)
def _cost(mechanism: OptStream) -> Fraction:
    return sum((level.epsilon for level in mechanism.levels), Fraction(0))


@lru_cache(maxsize=512)
def _public_plan(mechanism: OptStream, residue: int, n_steps: int) -> tuple[Spend, ...]:
    """Return the spends of a period that starts at this residue modulo the window, as if at that step."""
    points = {level.level: equal_points(level, n_steps, residue) or () for level in mechanism.levels}
    return mechanism._spends(n_steps, residue, points, None)
