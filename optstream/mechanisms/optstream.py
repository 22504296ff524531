"""OptStream: sample, perturb, reconstruct, and make the hierarchy consistent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import reconstruct
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.least_squares import BoundRule, Consistent, consistent
from optstream.estimation.problem import (
    LeastSquares,
    interpolation_matrix,
    least_squares,
    with_unmeasured_leaves,
)
from optstream.estimation.variances import (
    interpolated_variances,
    known_variances,
    noise_variances,
    target_maps,
)
from optstream.history.blocks import Blocks
from optstream.history.prior import TemporalPrior
from optstream.measurement import EquallySpaced, L1Sampling, measure_points_and_sums
from optstream.measurement.ordered import Ordered, OrderTerms, draw_ordered, next_spend
from optstream.measurement.sampling import (
    Choice,
    SparseVectorScales,
    choose_level_points,
    l1_score_change,
    sparse_vector_scales,
)
from optstream.measurement.sums import SAMPLES, feature_stage, query_weights
from optstream.mechanisms.base import (
    LARGEST_SCALE,
    Mechanism,
    checked_level_shares,
    checked_shares,
    known_spends,
    measured_steps,
    memory_of,
    points_after,
)
from optstream.mechanisms.joint import JointTerms, Noise, order_spend
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import (
    CappedSpend,
    OrderSpend,
    PeriodSpend,
    PrivacyModel,
    Spend,
    StepSpend,
    worst_window,
)
from optstream.privacy.exact import Exact, one_of, plain, round_up_to_float, whole
from optstream.privacy.rules import Layer, WindowBudget, parts_with_headroom
from optstream.privacy.spends import spend_to_document
from optstream.stream import AggregationTree, Feature, Lattice, Measured, PrivatePeriod, State
from optstream.stream.private_period import with_raw_of

Floats = NDArray[np.float64]
NAME = "OptStream"
SAMPLING = "sampling"
MOST_TOGETHER = 3000
"""With a margin and features: nodes of the margin and above the regions, times steps, of one dense system."""


@dataclass(frozen=True, init=False)
class OptStream(Mechanism):
    """The mechanism of the OptStream paper on a tree, or on one with a margin, which is one more level.

    Every node measures the sampled steps and the sums of each feature's parts with Laplace noise; the steps
    between are fitted from those noisy numbers, so that nodes add up and no value lies below the bound. With
    L1 sampling a level's points are chosen by its noisy scores.

    Source: Fioretto and Van Hentenryck, OptStream, Algorithms 1 to 4. Raises ParameterError for a parameter
    outside its range, or noise that would outgrow the integers.

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
        given = {name: plain(value) for name, value in locals().items() if name != "self"}
        features = tuple(features) if post_processing else ()
        window = model.window_length
        one_of(weights, "weights of OptStream", ("variance", "paper"))
        if len({feature.name for feature in features}) != len(features):
            raise ParameterError("features of OptStream must have different names")
        if len({feature.n_steps for feature in features}) > 1:
            raise ParameterError("features of OptStream must partition periods of one length")
        if isinstance(tree, Lattice) and features:
            n_nodes, n_steps = (
                len(tree.nodes) - len(tree.leaves) - len(tree.tree.levels[-2]),
                features[0].n_steps,
            )
            if n_nodes * n_steps > MOST_TOGETHER:
                raise ParameterError(
                    f"features of OptStream with margin {tree.margin!r:.80} are for at most "
                    f"{MOST_TOGETHER:,} of steps times nodes of the margin and above the regions, for they "
                    f"hang all steps together; got {n_steps} times {n_nodes}: leave the features out, or let "
                    "the larger of both dimensions be the regions"
                )
        if not isinstance(sampling, EquallySpaced | L1Sampling):
            raise ParameterError(
                f"sampling of OptStream must be EquallySpaced or L1Sampling; got {sampling!r}"
            )
        whole(sampling.n_samples, f"n_samples of {type(sampling).__name__}", 2, window)
        given |= {"features": features, "level_shares": checked_level_shares(level_shares, tree)}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        stages = self.stages
        shares = [Fraction(1, len(stages))] * len(stages) if stage_shares is None else stage_shares
        checked = checked_shares(shares, len(stages), f"stage_shares ({', '.join(stages)})")
        if 0 in checked:
            raise ParameterError("stage_shares must be above 0 for each stage; leave features out instead")
        object.__setattr__(self, "stage_shares", checked)
        longest, shortest = features[0].n_steps if features else window, plain(shortest_period)
        if shortest is None or (not features and isinstance(shortest, int) and shortest > window):
            shortest = longest  # a period counts as no longer than a window
        whole(shortest, "shortest_period of OptStream", 1, longest)
        object.__setattr__(self, "shortest_period", shortest)
        self._check_scales(longest if features else shortest)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that share a level's epsilon, in order."""
        sampling = (SAMPLING,) if self._chooses_points else ()
        features = ("features",) if self.features else ()
        return (*sampling, SAMPLES, *features)

    @property
    def _chooses_points(self) -> bool:
        return isinstance(self.sampling, L1Sampling)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        """Whether points are chosen by earlier ones, or noise goes on, so that periods go one by one."""
        return self._chooses_points or any(level.order_terms for level in self.levels)

    @property
    def noise_is_known(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        return not self._chooses_points

    @cached_property
    def levels(self) -> "tuple[LevelPlan, ...]":
        """The measured levels, root first."""
        shares = enumerate(self.level_shares)
        return tuple(LevelPlan(self, level, share) for level, share in shares if share > 0)

    @property
    def by_level(self) -> "dict[int, LevelPlan]":
        return {plan.level: plan for plan in self.levels}

    def foreseen(self) -> "OptStream":
        """Return itself, or with equally spaced points where the draw would choose them."""
        if self.noise_is_known:
            return self
        sampling = EquallySpaced(self.sampling.n_samples)
        return replace(self, sampling=sampling, stage_shares=self.stage_shares[1:], noise="laplace")

    @cached_property
    def epsilon(self) -> Fraction:
        """What the plan, repeated without end, costs any window: the sum of its levels' costs (Lemma 1)."""
        return sum((level.epsilon for level in self.levels), Fraction(0))

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' spends of a period, in a row; `state` holds the points or spends of others."""
        if self.features and self.features[0].n_steps != n_steps:
            raise ParameterError(
                f"the features are for periods of {self.features[0].n_steps} steps; this one has {n_steps}"
            )
        if not self._chooses_points:
            return self._spends(n_steps, first_step, self._equal_points(n_steps, first_step), state)
        if n_steps < self.shortest_period:
            raise ParameterError(
                f"shortest_period of OptStream is {self.shortest_period}, and this period has {n_steps} "
                "steps: say so in advance, for the noise depends on it"
            )
        self._check_scales(n_steps)
        return self._spends(n_steps, first_step, None, state)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        n_steps, first_step, window = period.n_steps, period.first_step, self.model.window_length
        spends, ordered = self.plan(n_steps, first_step, state), dict[int, Ordered]()
        after: dict[str, Any] | None = None
        if self._chooses_points:
            rules = [level.choice(n_steps, first_step, state) for level in self.levels]
            points = choose_level_points(period, self.tree, rules, noise)
            spends = self._spends(n_steps, first_step, points, state)
            known = {
                level.level: {*level.taken(state), *(first_step + step for step in points[level.level])}
                for level in self.levels
            }
            end = first_step + n_steps
            after = {"points": {str(level): points_after(own, end, window) for level, own in known.items()}}
        else:
            points = self._equal_points(n_steps, first_step)
            for spend in spends:
                level = self.by_level[spend.level]
                if isinstance(spend, OrderSpend):
                    own = draw_ordered(spend, self._parts, str(self.sampling), level.orders_in(state), noise)
                    ordered[level.level] = own
                    points |= {level.level: tuple(part.start for part in own.spend.parts)}
        if ordered:
            spends = tuple(ordered[one.level].spend if isinstance(one, OrderSpend) else one for one in spends)
            near = [*known_spends(state, NAME), *spends]
            seen = [one for one in near if one.first_step + one.n_steps > first_step + n_steps - window]
            after = {
                "mechanism": NAME,
                "spends": [spend_to_document(one) for one in seen],
                "levels": {str(level): own.after for level, own in ordered.items()},
            }
        measured = measure_points_and_sums(
            period, self.tree, points=points, features=self.features,
            spends=spends, noise=noise, state=after, ordered=ordered,
        )  # fmt: skip
        left = {"levels": {str(level): own.left for level, own in ordered.items()}}
        return replace(measured, before=with_raw_of({}, left) or None)

    def fitted(self, measured: Measured) -> Consistent:
        """Return the perturbed points and sums as one consistent series for every node."""
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
        return replace(release, standard_errors=np.sqrt(noise**2 + missed))

    def noise_variances(self, measured: Measured) -> Floats:
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
        return with_unmeasured_leaves(measured, self.tree) if self.adaptive else measured

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return the measured steps of other periods; their spends and the orders to go on with if joint."""
        known = list(spends)
        if self._chooses_points:
            own = {level: [one for one in known if one.level == level] for level in self.by_level}
            return {"points": {str(level): measured_steps(some, SAMPLES) for level, some in own.items()}}
        if not self.adaptive:
            return None
        near = [spend_to_document(one) for one in known]
        return {**memory_of(before, NAME), "mechanism": NAME, "spends": near}

    def _parts(self, first_step: int, n_steps: int) -> list[range]:
        points = next(iter(self._equal_points(n_steps, first_step).values()))
        return [range(step, step + 1) for step in points]

    def _equal_points(self, n_steps: int, first_step: int) -> dict[int, tuple[int, ...]]:
        assert isinstance(self.sampling, EquallySpaced)
        points = self.sampling.positions(n_steps, first_step, self.model.window_length)
        return dict.fromkeys(self.by_level, points)

    def _spends(
        self, n_steps: int, first_step: int, points: Mapping[int, tuple[int, ...]] | None, state: State | None
    ) -> tuple[Spend, ...]:
        """Return the levels' spends of a period; `points` is None while they are not chosen."""
        found = list[Spend]()
        for plan in self.levels:
            chosen = None if points is None else points[plan.level]
            found += plan.spends(n_steps, first_step, chosen, state)
        return tuple(found)

    def _check_scales(self, n_steps: int) -> None:
        if max(level.largest_scale(n_steps) for level in self.levels) > LARGEST_SCALE:
            raise ParameterError(
                f"the noise of a period of {n_steps} steps would outgrow the integers: choose a larger "
                "epsilon or a coarser resolution"
            )


@dataclass(frozen=True)
class LevelPlan:
    """One measured level's part of the budget, and the scales that follow from it."""

    whole: OptStream
    level: int
    share: Fraction

    @property
    def model(self) -> PrivacyModel:
        return self.whole.model

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.whole.features

    @cached_property
    def epsilons(self) -> dict[str, Fraction]:
        """Epsilon of each stage; 0 for the sampling of equally spaced points, and without features."""
        epsilon = self.model.pure_epsilon * self.share
        own = zip(self.whole.stages, self.whole.stage_shares, strict=True)
        return {SAMPLING: Fraction(0), "features": Fraction(0)} | {name: epsilon * part for name, part in own}

    @cached_property
    def order_terms(self) -> OrderTerms | None:
        """The terms of joint noise on the points, which may be required and impossible: ParameterError."""
        whole, n_nodes = self.whole, len(self.whole.tree.levels[self.level])
        terms = JointTerms(whole.noise, whole.period_lengths, n_nodes, whole.declared_leaves)
        if isinstance(whole.sampling, EquallySpaced):
            return terms.chosen(self.model, whole.sampling.n_samples, 1)
        if whole.noise == "joint":
            raise ParameterError(
                'noise = "joint" of OptStream is for equally spaced points: which points L1 sampling takes '
                "is an outcome"
            )
        return None

    def order_spend(self, n_steps: int = 1, first_step: int = 0) -> OrderSpend:
        """Return the spend of joint noise, of orders that begin with the period, without parts."""
        assert self.order_terms is not None
        at, n_nodes = (self.level, SAMPLES, first_step, n_steps), len(self.whole.tree.levels[self.level])
        return order_spend(self.order_terms, self.model, self.epsilons[SAMPLES], at, n_nodes)

    def orders_in(self, state: State | None) -> State | None:
        """Return the level's orders in a state."""
        orders: State | None = (state or {}).get("levels", {}).get(str(self.level))
        return orders

    @cached_property
    def samples_scale(self) -> Fraction:
        """The scale of the points' noise: a window holds k points (Lemmas 3, 4, 7), or meets joint noise."""
        if self.order_terms is not None:
            return self.order_spend().scale
        return _rounded_up(self.model.moved_units * self.whole.sampling.n_samples / self.epsilons[SAMPLES])

    @cached_property
    def features_scale(self) -> Fraction:
        """The scale of the features' noise: a window holds w steps of each, each charged (Lemma 3)."""
        changes = self.model.window_length * len(self.features)
        return _rounded_up(self.model.moved_units * changes / self.epsilons["features"])

    @property
    def epsilon(self) -> Fraction:
        """What this level's plan, repeated without end, costs any window."""
        # the sampler's scales were divided for all of it: periods of any lengths, also of more queries
        a_point = self.model.moved_units / self.samples_scale
        cost = self.order_spend().unit_charge if self.order_terms else self.whole.sampling.n_samples * a_point
        cost += self.epsilons[SAMPLING]
        if self.features:
            changes = len(self.features) * self.model.window_length
            cost += changes * self.model.moved_units / self.features_scale
        return cost

    def largest_scale(self, n_steps: int) -> Fraction:
        """Return the largest noise scale in a period of this length, with which the sampler's grows."""
        scales = [self.samples_scale, *self.period_scales(n_steps).values()]
        return max([*scales, self.features_scale] if self.features else scales)

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        """Return the sampler's scales, by the name of their draw."""
        sampler = self.sampler_scales(n_steps)
        return {"threshold": sampler.threshold, "scores": sampler.query} if sampler else {}

    def sampler_scales(self, n_steps: int) -> SparseVectorScales | None:
        """Return the sparse vector's noise for a period of this length; None where it has no queries."""
        sampling, window = self.whole.sampling, self.model.window_length
        if not isinstance(sampling, L1Sampling):
            return None
        segment = sampling.longest_segment(n_steps, window)
        if segment < 2:
            return None  # no step lies between two points, so there is no private query
        sensitivity = 2 * self.model.moved_units * (segment - 1)
        overlap = worst_overlap(sampling, self.whole.shortest_period, window, self.model.moved_units)
        epsilon = self.epsilons[SAMPLING] / overlap
        n_answers = sampling.points_of_period(n_steps, window) - 1
        return sparse_vector_scales(sensitivity, n_answers, epsilon, sampling.allocation)

    def sampler_charges(self, n_steps: int) -> tuple[Fraction, ...]:
        """Return the cost of choosing the points for n changed steps, n = 0 .. n_steps (Lemma 6), if any."""
        sampling, scales = self.whole.sampling, self.sampler_scales(n_steps)
        if scales is None or not isinstance(sampling, L1Sampling):
            return ()
        segment = sampling.longest_segment(n_steps, self.model.window_length)
        changes = (self.model.moved_units * l1_score_change(n, segment) for n in range(n_steps + 1))
        return tuple(map(scales.loss, changes))

    def spends(
        self, n_steps: int, first_step: int, points: Sequence[int] | None, state: State | None
    ) -> tuple[Spend, ...]:
        """Return the level's spends for one period, the most that they can be while `points` is None."""
        alpha, leaves = self.model.alpha_units, self.model.leaves_per_step
        found, sums = list[Spend](), list[Spend]()
        if charges := self.sampler_charges(n_steps):
            found.append(PeriodSpend(self.level, SAMPLING, first_step, charges))
        for feature in self.features:
            stage, weights = feature_stage(feature), query_weights(feature.parts, n_steps)
            own = self.features_scale
            sums.append(StepSpend(self.level, stage, first_step, weights, own, alpha, leaves))
        at, scale = (self.level, SAMPLES, first_step), self.samples_scale
        if points is None:
            cap, taken = self.whole.sampling.n_samples, self.taken(state)
            return (*found, CappedSpend(*at, n_steps, cap, taken, scale, alpha, leaves), *sums)
        parts = [range(step, step + 1) for step in points]
        if self.order_terms is None:
            return (*found, StepSpend(*at, query_weights(parts, n_steps), scale, alpha, leaves), *sums)
        new, near = self.order_spend(n_steps, first_step), known_spends(state, NAME)
        spend = next_spend(new, str(self.whole.sampling), self.orders_in(state), near)
        # without the points for which some window has no headroom at this level
        others = [*(one for one in near if one.level == self.level), *sums]
        asked, window = [Layer(parts, orders=[spend])], self.model.window_length
        (kept,) = parts_with_headroom(asked, first_step, others, window, self.epsilon)
        return (*found, replace(spend, parts=kept), *sums)

    def taken(self, state: State | None) -> tuple[int, ...]:
        """Return other periods' points; ParameterError where read as "none" it would void the guarantee."""
        if state is None:
            return ()
        try:
            taken = tuple(state["points"][str(self.level)])
        except (KeyError, TypeError) as error:
            raise ParameterError(
                f'state of OptStream must be {{"points": {{"{self.level}": [steps]}}}}, as releases have it'
            ) from error
        if any(isinstance(step, bool) or not isinstance(step, int) for step in taken):
            raise ParameterError("state of OptStream must hold running step indices, integers")
        return taken

    def choice(self, n_steps: int, first_step: int, state: State | None) -> Choice:
        """Return how L1 sampling is to choose the level's points of a period."""
        sampling, window = self.whole.sampling, self.model.window_length
        assert isinstance(sampling, L1Sampling)
        taken = [(step, 1) for step in self.taken(state)]
        rule = WindowBudget(sampling.n_samples, window, first_step, n_steps, taken)
        threshold_units = round(sampling.threshold / self.model.resolution)
        n_points = sampling.points_of_period(n_steps, window)
        return Choice(self.level, n_points, threshold_units, rule, self.sampler_scales(n_steps))


def _rounded_up(scale: Fraction) -> Fraction:
    return Fraction(round_up_to_float(scale))


@lru_cache(maxsize=256)
def worst_overlap(sampling: L1Sampling, length: int, window: int, alpha_units: int) -> Fraction:
    """Return how many times a period's sampling cost a window can meet, over periods of any allowed lengths:
    periods of the shortest length are the worst (Lemma 7)."""
    # Shorter ones than this have no queries.
    while sampling.longest_segment(length, window) < 2:
        length += 1
    shortest = sampling.longest_segment(length, window) - 1
    envelope = [Fraction(0)] * (length + 1)
    for inner in (shortest, shortest + 1):
        for n in range(length + 1):
            moved = math.ceil(alpha_units * l1_score_change(n, inner + 1))
            envelope[n] = max(envelope[n], Fraction(moved, 2 * alpha_units * inner))
    n_periods = -(-window // length) + 2
    spends = [PeriodSpend(0, SAMPLING, number * length, tuple(envelope)) for number in range(n_periods)]
    return worst_window(spends, window).epsilon


# The error of an estimate from points and sums between them, judged by these points and sums themselves.
#
# The estimate of a node's series x is T y, with y = H x + noise, so its error is T noise, which is known, and
# (T H - 1) x. A priori x moves within a day with the covariance K of `history.prior`'s medians, relative to
# the size of a node; and each step varies by itself, with a variance that grows as the size. A factor c of K
# and a variance u for each unit of size show in the distances of points, and of sums, from the line through
# the others, beyond the noise.

EXPECTED, DEVIATION = 0.6, 0.5  # prior of c; by the medians alone it would be 1
CLEAR = 3.0
"""Least squared size over the variance of its noise: noise that makes a node look large makes it look
restless, too."""
ALIKE = 2.0  # neighbouring points' surprises are correlated: this many count as one


@dataclass(frozen=True, eq=False)
class _Alike:
    """Nodes that were measured at the same steps. missed: (3, n_steps), variances of the missed part by the
    shared part of K, its own part and a variance of 1 at each step. contrasts: (n, n_measurements), about 0
    for a smooth series. moved: (3, n), their variances likewise."""

    nodes: NDArray[np.intp]
    missed: Floats
    contrasts: Floats
    moved: Floats


def missed_variances(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: str | None,
    values: Floats,
    noise: Floats,
) -> Floats:
    """Return the variance of the estimate's error apart from noise, (n_nodes, n_steps); nan for unmeasured
    leaves. A judgement, not a bound: right on average if the series moves within a day as loads and counts of
    people do. The tree is taken to miss as much as a node's own estimate. `values` give the nodes' sizes."""
    # not by sizes of leaves, added up: of many leaves the noise would make most of that
    squares = (values**2 - np.nan_to_num(noise)).mean(axis=1)
    of_leaves = tree.add_up(squares[tree.leaf_indices, None])[:, 0]
    scales = np.maximum(np.stack([squares, of_leaves, squares], axis=1), 0.0)
    scales[:, 2] **= 0.5
    is_clear = squares > CLEAR * np.nan_to_num(noise).mean(axis=1)
    spread = known_variances(measured)
    groups = _groups(measured, tree, features, weights)
    strength = _strength(measured, groups, spread, scales, is_clear)
    found = np.full(values.shape, np.nan)
    for group in groups:
        found[group.nodes] = (scales[group.nodes] * strength) @ group.missed
    unknown = np.isnan(found[tree.leaf_indices]).any(axis=1)
    if not unknown.any():  # an upper level that was not measured is derived from leaves that were
        derived = np.isnan(found).any(axis=1)
        found[derived] = (scales[derived] * strength) @ groups[-1].missed
        return found
    found[tree.add_up(unknown[:, None].astype(np.float64))[:, 0] > 0] = np.nan
    return found


def _groups(
    measured: Measured, tree: AggregationTree, features: Sequence[Feature], weights: str | None
) -> list[_Alike]:
    """Return the nodes by their measured queries; root first."""
    known, found = known_variances(measured) < UNKNOWN, list[_Alike]()
    n_steps, positions = measured.n_steps, np.array(measured.positions, dtype=np.int64)
    sums = [feature.matrix for feature in features]
    seen_by = np.concatenate([np.eye(n_steps)[positions], *sums])
    maps, pattern = target_maps(measured)
    problem = None if weights is None else least_squares(measured, tree, features, weights)
    at = Blocks.at(np.arange(n_steps))
    kernels = (*TemporalPrior.broad(n_steps).covariances(at, at), np.eye(n_steps))
    alike = np.where(known.any(axis=1), pattern, -1)
    for number in dict.fromkeys(alike[alike >= 0].tolist()):
        nodes = np.flatnonzero(alike == number)
        first, mapped = nodes[0], maps[number] / float(measured.resolution)
        if problem is None:
            mapped = mapped[:n_steps]
        else:
            weighted = problem.weights[first][:, None] * problem.rows
            mapped = np.linalg.solve(problem.rows.T @ weighted, weighted.T @ mapped)
        misses = mapped @ seen_by - np.eye(n_steps)
        points = np.flatnonzero(known[first, : positions.size])
        own_sums = positions.size + np.flatnonzero(known[first, positions.size :])
        contrasts = _contrasts(seen_by, positions, points, own_sums)
        missed, moved = (
            np.stack([np.einsum("ts,su,tu->t", one, kernel, one, optimize=True) for kernel in kernels])
            for one in (misses, contrasts @ seen_by)
        )
        found.append(_Alike(nodes, missed, contrasts, moved))
    return found


def _contrasts(
    seen_by: Floats, positions: NDArray[np.int64], points: NDArray[np.intp], sums: NDArray[np.intp]
) -> Floats:
    """Return, as weights of measurements, points less the line through the others, sums less the line's."""
    n_measurements, n_steps = seen_by.shape
    if points.size < 2:
        return np.zeros((0, n_measurements))
    at, rows = positions[points], np.eye(n_measurements)[np.r_[points, sums]]
    for number in range(points.size):
        near = np.r_[max(number - 1, 0) : number, number + 1 : min(number + 2, points.size)]
        rows[number, points[near]] = [-np.interp(at[number], at[near], unit) for unit in np.eye(near.size)]
    rows[points.size :, points] = -seen_by[sums] @ interpolation_matrix(tuple(at.tolist()), n_steps).T
    return rows


def _strength(
    measured: Measured,
    groups: Sequence[_Alike],
    spread: Floats,
    scales: Floats,
    is_clear: NDArray[np.bool_],
) -> Floats:
    """Return (c, c, u): the least squares fit of the contrasts beyond noise, joined with the prior of c.
    Nodes of a group move alike, so the series' part counts once, the noise for each."""
    unit = float(measured.resolution)
    taken = np.concatenate([measured.point_values, *measured.feature_sums], axis=-1)
    noise = np.where(spread < UNKNOWN, spread, 0.0) * unit**2  # no contrast without a measurement
    gram, right = np.diag([DEVIATION**-2.0, 0.0]), np.array([EXPECTED * DEVIATION**-2.0, 0.0])
    for group in groups:
        nodes = group.nodes[is_clear[group.nodes]]
        of_noise = noise[nodes] @ (group.contrasts**2).T
        moved = scales[nodes, :2] @ group.moved[:2], scales[nodes, 2:] @ group.moved[2:]
        excess = (taken[nodes] @ group.contrasts.T) ** 2 - of_noise
        expected = EXPECTED * moved[0]
        # of a square: Laplace noise has kurtosis 6
        variance = 5.0 * of_noise**2 + 4.0 * of_noise * expected + 2.0 * nodes.size * expected**2
        weight = np.divide(1.0 / ALIKE, variance, out=np.zeros_like(variance), where=variance > 0.0)
        gram += [[float((weight * one * other).sum()) for other in moved] for one in moved]
        right += [float((weight * one * excess).sum()) for one in moved]
    # what noise alone could have made of u is taken off it (James and Stein), for u is never below 0
    alone = gram[1, 1] - gram[0, 1] ** 2 / gram[0, 0]
    fitted = right[1] - gram[0, 1] / gram[0, 0] * right[0]
    of_steps = max(fitted / alone - 1.0 / fitted, 0.0) if fitted > 0.0 and alone > 0.0 else 0.0
    factor = max((right[0] - gram[0, 1] * of_steps) / gram[0, 0], 0.0)
    return np.array([factor, factor, of_steps])
