"""Blocks measured at drifting times, and all other steps estimated from earlier measurements."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.estimate import UNKNOWN
from optstream.estimation.least_squares import BoundRule, consistent
from optstream.estimation.problem import LeastSquares, least_squares
from optstream.estimation.replicates import keys_of, normals
from optstream.history.blocks import BlockHistory
from optstream.history.changed_tree import GUESSED, carried_levels, guesses, refined
from optstream.history.counts import fit_counts, published_counts, seen_counts, tree_above, typical_above
from optstream.history.filter import (
    NEAR_DAYS,
    FilterState,
    Histories,
    around,
    fit_tree,
    n_fitted,
    nothing_measured,
    seen_tree,
    star,
    with_new_blocks,
)
from optstream.history.posterior import Seen
from optstream.history.prior import (
    COMPONENTS,
    COUNT_COMPONENTS,
    CUSTOMER_COMPONENTS,
    DAY_OF_THE_WEEK,
    Component,
    constant,
)
from optstream.history.self_check import OFF, hour_factors
from optstream.measurement.blocks import BLOCKS, DriftingBlocks, drifting_blocks, measure_blocks
from optstream.measurement.sums import LinearSpend
from optstream.mechanisms.base import (
    Mechanism,
    SelfCheck,
    SeriesMechanism,
    check_positive,
    memory_of,
    own_state,
)
from optstream.mechanisms.blocks import (
    SMALL_BLOCKS,
    SMALL_LENGTH,
    Figures,
    choose_blocks,
    choose_level_shares,
    choose_plan_blocks,
    expected_figures,
    small_leaf_level,
)
from optstream.mechanisms.hierarchical import NAME as LEVELS
from optstream.mechanisms.hierarchical import Hierarchical, level_states
from optstream.mechanisms.joint import JointMechanism, Noise
from optstream.mechanisms.period_release import Release
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.exact import Exact, make_plain, whole
from optstream.privacy.rules import Horizon, Layer, parts_with_headroom
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream import AggregationTree, BlockSums, Measured, PrivatePeriod, State
from optstream.stream.changes import TreeMap
from optstream.stream.covariate import Covariate
from optstream.stream.lattice import refuse_margin
from optstream.stream.private_period import public_part, with_raw_of
from optstream.stream.public_days import PublicDays

NAME = "HistoryInformed"
PARTS = "parts"  # key of a state on its way to a draw: the parts that a tree chose for all levels
READY = "ready"  # likewise: the first step that it was prepared for
ELSEWHERE = "elsewhere"  # key of a state: spends that lie on no level that is measured now
COVARIATES, LATE = "covariates", "late covariates"
"""Public covariates in a state and in `Measured.before`: those of the draw, and those for later estimates."""
MOST_LATE = 3  # periods, the last ones, from which a new estimate takes a covariate's values
LEARNED = ("prior", "hours", "spread", "began", "learned", "events", GUESSED, COVARIATES)
"""Keys of a state: the learned parameters; covariates only on the way to a draw."""


Errors = Callable[[int], NDArray[np.float64]]  # makes draws of the errors of an estimate


def _guessed(state: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the guessed shares of leaves that a change of the tree brought (`changed_tree.guesses`)."""
    return list((state or {}).get(GUESSED, ()))


class InformedMechanism(Mechanism):
    """From blocks of several nights to values; plain series are leaves under a root that nobody measures."""

    revises: ClassVar[bool] = True
    has_self_check: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    new_state: ClassVar[Mapping[str, Any]]  # of a stream that begins

    @property
    def pattern(self) -> "HistoryInformed":
        """The parameters."""
        own: Any = self
        found: HistoryInformed = getattr(self, "mechanism", own)
        return found

    @property
    @abstractmethod
    def _levels(self) -> tuple[int, ...]:
        """The levels of the tree that are measured."""

    @property
    def small_level(self) -> int | None:
        """The level of small counts that is measured at blocks of its own (`small_leaf_level`); else None."""
        return None

    @abstractmethod
    def _states(self, state: State | None) -> Mapping[str, Any]:
        """Return each level's own state."""

    def fitted(self, measured: Measured) -> Estimate:
        """Return the posterior mean of every node and its variance; consistent, and not below the bound."""
        return self._estimated(measured, *self._known(measured))[0]

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements, standard errors included; repeatable."""
        return self._with_errors(measured, *self._known(measured))

    def self_check(self, measured: Measured) -> SelfCheck:
        """Judge the days that are known, this period's included: one is unlike all others where its blocks
        miss their predictions by more than known noise can. A level is off at twice what the prior expects,
        once it has learned; errors are wider there."""
        belief, histories = self._known(measured)
        steps, near = self._period_and_nearby_blocks(measured, self._dense_only(histories))
        seen = self._look(near, belief.events)
        if seen is None:
            return SelfCheck(belief.events)
        fitted, events = belief.answer(seen, steps)
        off = () if belief.learned is None else np.flatnonzero(fitted.by_level >= OFF).tolist()
        return SelfCheck(events, tuple(off))

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return the same period estimated again, with later measurements; without them, from its state. The
        last period's state reaches `NEAR_DAYS` back; after more, this period's state is read too."""
        periods = (measured, *later)
        last, day_of = periods[-1], self.pattern.public_days.day_of
        day = day_of(measured.first_step)
        far = _left_by(self, measured) if day_of(last.first_step) - day > NEAR_DAYS else {}
        parts = [self._parts(one) for one in periods]
        histories = {
            level: left.completed(one[level] for one in parts).joined_with(far.get(level, NOTHING))
            for level, left in _left_by(self, last).items()
        }
        # each covariate's newest values in the states of the last periods, late ones for this day included
        newest: dict[str, Any] = {}
        for before in (one.before or {} for one in periods[-MOST_LATE:]):
            late = [one for one in before.get(LATE, ()) if Covariate.from_document(one).has_value_on(day)]
            newest |= {one["name"]: one for one in (*late, *before.get(COVARIATES, ()))}
        used = {COVARIATES: list(newest.values())} if newest else {}
        belief = self._belief({**(last.state or {}), **used})
        return self._with_errors(measured, belief, self._refined(last.state, histories))

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return None: sizes, kernels and events were learned from the same blocks, so nothing is linear."""
        return None

    def prepared(self, state: State | None, first_step: int) -> State | None:
        """Judge the last day, with its own covariates, and learn when due, before the draw: it may fail."""
        memory = own_state(state, self.new_state["mechanism"])
        known = self.pattern._known_covariates(first_step)
        if memory.get(READY) == first_step or not (memory or known):
            return state
        histories = self._refined(memory, self._dense_only(self._histories(memory)))
        newest = [int(one.starts[-1]) for one in histories.values() if one.n_blocks]
        own = self.pattern._known_covariates(max(newest)) if newest else {}
        belief = self._belief({**memory, COVARIATES: (), **own})
        learned = belief.refreshed(self._look, histories, first_step, self.pattern.relearn_days)
        documents = replace(learned, covariates=()).to_document()
        return {**self.new_state, **memory, **documents, **known, READY: first_step}

    def _histories(self, state: State | None) -> dict[int, BlockHistory]:
        known = self._states(state)
        return {
            level: BlockHistory.from_document((known.get(str(level)) or {}).get("history"))
            for level in self._levels
        }

    def _parts(self, measured: Measured) -> dict[int, Measured]:
        return dict(zip(self._levels, measured.parts or (measured,), strict=True))

    def _known(self, measured: Measured) -> tuple[FilterState, dict[int, BlockHistory]]:
        """Return the state before the period, and each level's blocks, the period's included."""
        n_parts, n_levels = len(measured.parts or (measured,)), len(self._levels)
        if n_parts != n_levels:
            raise ParameterError(
                f"these measurements are of {n_parts} levels, the mechanism measures {n_levels}: estimate "
                "them with the level shares under which they were drawn"
            )
        for part in self._parts(measured).values():
            BlockHistory.of(part)  # refuses other measurements
        return self._belief(measured.before), self._refined(measured.before, _left_by(self, measured))

    def _refined(self, state: State | None, histories: Histories) -> dict[int, BlockHistory]:
        """Return histories with what is guessed of changed leaves, without blocks whose 0 is no reading."""
        skipped = self.pattern.public_days.hold_skipped
        kept = {level: one.chosen(~skipped(one.starts, one.lengths)) for level, one in histories.items()}
        return refined(_guessed(state), kept)

    def _dense_only(self, histories: Histories) -> dict[int, BlockHistory]:
        """Return the blocks of the levels that have one posterior."""
        return {level: one for level, one in histories.items() if level != self.small_level}

    def _period_and_nearby_blocks(
        self, measured: Measured, histories: Histories
    ) -> tuple[range, dict[int, BlockHistory]]:
        """Return the period's steps, and each level's blocks around them."""
        steps = range(measured.first_step, measured.first_step + measured.n_steps)
        most = n_fitted(self._dense_only(histories))
        return steps, {level: around(history, steps, most) for level, history in histories.items()}

    def _belief(self, document: Mapping[str, Any] | None) -> FilterState:
        return FilterState.from_document(document, self.pattern.public_days, self.pattern.prior_components)

    def _look(self, histories: Histories, events: Iterable[int]) -> Seen | None:
        """Return the measurements of the levels that have one posterior, given the event days."""
        tree = self.own_tree or star(len(histories[1].sums))
        above = tree_above(tree, self.small_level)
        typical = typical_above(tree, above, self.pattern.scale_units)
        look = seen_counts if self.pattern.counts and self.own_tree else seen_tree
        found = look(histories, above, self.pattern.public_days, typical, events)
        return None if found is None else found[0]

    def _estimated(
        self, measured: Measured, belief: FilterState, histories: Histories
    ) -> tuple[Estimate, Errors | None]:
        """Return the posterior means and variances, consistent, and not below the bound, and their errors;
        0 without error at slots that the clock skips."""
        found, errors_of = self._fitted(measured, belief, histories)
        steps = measured.first_step + np.arange(measured.n_steps)
        there = ~self.pattern.public_days.hold_skipped(steps, np.ones_like(steps))
        if there.all():
            return found, errors_of

        def but_there(numbers: Any) -> Any:
            return None if numbers is None else numbers * there

        names = ("values", "variances", "unbounded", "for_sums")
        at_0 = {name: but_there(getattr(found, name)) for name in names}
        bands = found.bands and (but_there(found.bands[0]), but_there(found.bands[1]))
        return replace(found, **at_0, bands=bands), errors_of and (lambda n: but_there(errors_of(n)))

    def _fitted(
        self, measured: Measured, belief: FilterState, histories: Histories
    ) -> tuple[Estimate, Errors | None]:
        steps, near = self._period_and_nearby_blocks(measured, histories)
        scale, unit = self.pattern.scale_units, float(measured.resolution)
        tree, bound = self.own_tree, getattr(self, "lower_bound", None)
        if tree and self.pattern.counts:
            counts = fit_counts(belief, near, tree, self.small_level, steps, scale)
            of_counts = None if counts.draws is None else partial(counts.unshrunk_draws, tree)
            return published_counts(counts, measured, tree, bound), of_counts
        whole, rows = (tree, slice(None)) if tree else (star(len(measured.points)), slice(1, None))
        found = fit_tree(belief, near, whole, steps, scale)
        errors_of: Errors | None = None
        if found is None:
            values, variances = nothing_measured(whole, len(steps), scale)
        else:
            means, errors = found
            if tree is None:  # series have no shares of a sum
                errors = replace(errors, is_day=False)
            moved, variances = errors.series()
            values = means + moved

            def draws(n: int) -> NDArray[np.float64]:
                return errors.draws(n)[:, rows] * (unit * np.sqrt(factors))

            errors_of = draws

        values, variances = values[rows] * unit, variances[rows] * unit**2
        optimality, unbounded = None, None
        if tree and bound is not None and values[tree.leaf_indices].min() < bound:
            merged = measured.seen_as(values, variances)
            # leaves below the bound are raised at their siblings' cost: parents stay unbiased
            nearest = consistent(merged, tree, [], "variance", bound, "held")
            values, optimality, unbounded = nearest.values, nearest.optimality, values
        factors = np.ones((1, 1))
        if not belief.prior.hours.size:
            root = slice(1 if tree else None)  # so that errors of children add up to those of parents
            by_size = 0.5 if self.pattern.variation is None else 0.8  # customers' readings follow their size
            factors = 1.0 - by_size + by_size * hour_factors(values[root], variances[root])
        fitted = variances * factors
        if tree and (variation := self.pattern.variation) is not None:
            of_leaves = variation * np.maximum(values[tree.leaf_indices], 0.0)
            fitted = fitted + tree.add_up(of_leaves)
            if errors_of is not None:
                errors_of = partial(_with_variation, errors_of, of_leaves, tree, steps)
        return Estimate(values, fitted, optimality=optimality, unbounded=unbounded), errors_of

    def _with_errors(self, measured: Measured, belief: FilterState, histories: Histories) -> Release:
        found, errors = self._estimated(measured, belief, histories)
        return Release(
            found.values,
            measured,
            self,
            np.sqrt(found.variances),
            found.optimality,
            found.bands,
            belief.covariates,
            found.values if found.unbounded is None else found.unbounded,
            errors,
            for_sums=found.for_sums,
        )


CUSTOMERS = 24  # first key, as those of `draws`


def _with_variation(
    draws: Errors, variances: NDArray[np.float64], tree: AggregationTree, steps: range, n: int
) -> NDArray[np.float64]:
    """Return draws of errors with the variation of leaves' single steps, (n, n_nodes, n_steps)."""
    keys = CUSTOMERS, np.arange(n)[:, None, None], keys_of(tree.leaves)[:, None], np.array(steps)
    added = [tree.add_up(np.sqrt(variances) * one) for one in normals(*keys)]
    return np.asarray(draws(n) + np.stack(added))


NOTHING = BlockHistory.empty(0)


@lru_cache(maxsize=1)
def _left_by(mechanism: InformedMechanism, measured: Measured) -> dict[int, BlockHistory]:
    """Return each level's state after a period, cached: all new estimates of a night need its newest's."""
    return mechanism._histories(measured.state)


def late_part(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the part of a state for new estimates of the days before."""
    return {LATE: state[LATE]} if state and LATE in state else {}


@dataclass(frozen=True)
class HistoryInformed(InformedMechanism, JointMechanism):
    """Sums of short blocks with Laplace or joint noise; every step estimated from those of the last weeks.

    Measured are `n_blocks` blocks of `block_length` steps in any window, at times that drift through the day
    (`DriftingBlocks`, Lemma 13); joint noise is for the blocks that lie in a period whole (Lemma 16b).
    Published is the mean of a Gaussian process over all series together, given all blocks of the last
    `history_days`, with its variance. Step by step a block is cut into as many queries as it has steps:
    choose `block_length=1` there.

    Source: our own. The OptStream paper names learned temporal patterns as future work. Raises ParameterError
    as `Laplace`; and for counts of another resolution.

    Args:
        model: The privacy guarantee.
        n_blocks: m, in [1, w]; None for the least error that the prior expects, from epsilon, alpha and
            `scale` alone.
        block_length: L, in [1, w / m]; None as for `n_blocks`.
        scale: The public size of a typical series, > 0, in the unit of the readings; None if nothing is
            known: then m is a sixth of a window.
        days: The clock, the week, public holidays (`optstream.PublicDays`); None for days of w steps without
            a week.
        history_days: Days of blocks that an estimate reads, at least 1.
        relearn_days: Days between two times that the parameters are learned; 0 for never.
        components: Of the prior, with the medians that it starts from, such as those of a public proxy
            (`mechanisms.history_informed.with_medians`); by default the general ones of
            loads, of counts or of customers' sums.
        counts: Whether readings are counts, of resolution 1, which vary around their expectation by its root.
            Used by `HistoryInformedTree`, not by plain series.
        covariates: Public series that explain part of the readings, such as temperature. A period stores
            the values that it used (`Measured.before`).
        noise: As in `Laplace`.
        period_lengths: As in `Laplace`.
        n_nodes: As in `Laplace`.
        declared_leaves: As in `Laplace`.
        horizon: As in `Laplace`.
        variation: Of sums of customers' readings: the variance of a leaf's single step around what history
            expects of it, for each unit of that, in the unit of the readings. It widens bands of leaves of
            few customers, on trees, and expects more of a day's shape; None for none.
    """

    stage: ClassVar[str] = BLOCKS
    own_name: ClassVar[str] = NAME
    adaptive: ClassVar[bool] = True
    noise_is_known: ClassVar[bool] = False
    takes_covariates: ClassVar[bool] = True
    chooses_shares: ClassVar[bool] = True
    tree_class: ClassVar[str | None] = "HistoryInformedTree"
    new_state: ClassVar[Mapping[str, Any]] = {"mechanism": NAME}

    model: PrivacyModel
    n_blocks: int | None = None
    block_length: int | None = None
    scale: float | None = None
    days: PublicDays | None = None
    history_days: int = 56
    relearn_days: int = 28
    components: tuple[Component, ...] = ()
    counts: bool = False
    covariates: tuple[Covariate, ...] = ()
    noise: Noise | None = None
    period_lengths: tuple[int, ...] | None = None
    n_nodes: int | None = None
    declared_leaves: int | None = None
    horizon: Horizon | None = None
    variation: float | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        window = self.model.window_length
        if self.variation is not None:
            check_positive(self.variation, "variation of HistoryInformed")
        if self.n_blocks is not None:
            whole(self.n_blocks, "n_blocks of HistoryInformed", 1, window)
        if self.block_length is not None:
            whole(self.block_length, "block_length of HistoryInformed", 1, window // (self.n_blocks or 1))
        whole(self.history_days, "history_days of HistoryInformed", 1)
        whole(self.relearn_days, "relearn_days of HistoryInformed", 0)
        if not isinstance(self.days, PublicDays | None):
            raise ParameterError(
                "days of HistoryInformed must be optstream.PublicDays, such as "
                f"PublicDays.from_date(first_day, steps_per_day, holidays), or None; got {self.days!r:.80}"
            )
        if self.scale is not None:
            check_positive(self.scale, "scale of HistoryInformed")
        if self.counts and self.model.resolution != 1:
            raise ParameterError(
                f"counts of HistoryInformed need a resolution of 1, for counts are whole numbers; "
                f"got {self.model.resolution}"
            )
        _ = self.joint_terms.allowed(self.model)
        if self.scale is None or not (self.n_blocks is None or self.block_length is None):
            _ = self.unit_charge  # else blocks would be chosen, which takes half a second

    @cached_property
    def blocks(self) -> DriftingBlocks:
        """The rule of the blocks."""
        n_blocks, length = self.n_blocks, self.block_length
        if n_blocks is None or length is None:
            n_blocks, length = choose_blocks(self.figures((self.n_nodes,)), self.n_nodes or 1)
        return drifting_blocks(self.model.window_length, n_blocks, length, self.public_days.steps_per_day)

    @property
    def public_days(self) -> PublicDays:
        return self.days or PublicDays(self.model.window_length)

    @property
    def prior_components(self) -> tuple[Component, ...]:
        """The `components`, or the general ones of loads, of counts or of sums of customers' readings."""
        if self.components or not self.counts:
            return self.components or (COMPONENTS if self.variation is None else CUSTOMER_COMPONENTS)
        has_week = self.public_days.first_weekday is not None
        return (*COUNT_COMPONENTS, DAY_OF_THE_WEEK) if has_week else COUNT_COMPONENTS

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[LinearSpend, ...]:
        """Return one spend: the blocks for which all windows have headroom."""
        memory = own_state(state, NAME)
        return (self._spend(n_steps, first_step, self._parts_of(n_steps, first_step, memory), memory),)

    def figures(self, n_nodes: Sequence[int | None]) -> Figures:
        """Return the figures for blocks, shares and expected errors, of levels with these numbers of nodes.
        Without a public scale there is no relative noise. Joint noise required at a level that may not have
        it raises ParameterError."""
        model, noise, joint = self.model, None, list[bool]()
        lengths = self.period_lengths or (model.window_length,)
        if self.scale is not None:
            noise = float(model.leaves_per_step * model.alpha / model.pure_epsilon) / self.scale
            joint = [replace(self.joint_terms, n_nodes=n).allowed(model) for n in n_nodes]
        return Figures(
            window_length=model.window_length,
            steps_per_day=self.public_days.steps_per_day,
            relative_noise=noise,
            n_blocks=self.n_blocks,
            length=self.block_length,
            components=self.prior_components,
            count=self.scale if self.counts else None,
            joint=tuple(joint),
            ordinary=sorted(lengths)[len(lengths) // 2],
            wanted=self.noise == "joint",
            epsilon=model.pure_epsilon,
            horizon=self.horizon,
        )

    @property
    def scale_units(self) -> float | None:
        return None if self.scale is None else self.scale / float(self.model.resolution)

    def _parts_of(self, n_steps: int, first_step: int, memory: dict[str, Any]) -> tuple[range, ...]:
        if PARTS in memory:
            return tuple(range(*part) for part in memory[PARTS])
        return self._with_headroom(n_steps, first_step, memory)

    @property
    def _levels(self) -> tuple[int, ...]:
        return (1,)

    def _states(self, state: State | None) -> Mapping[str, Any]:
        return {"1": own_state(state or None, NAME)}

    def _known_covariates(self, first_step: int) -> dict[str, Any]:
        """Return the covariates known in the night that releases a period, as a part of its state."""
        day = self.public_days.day_of(first_step)
        public = (one.public(day, self.history_days) for one in self.covariates)
        known = [one for one in public if one is not None]
        parts = {
            COVARIATES: [one.to_document() for one in known if one.has_value_on(day)],
            LATE: [one.to_document() for one in known if not one.has_value_on(day)],
        }
        return {key: documents for key, documents in parts.items() if documents}

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        # learned before the first sample: what fails here has drawn nothing
        for one in self.covariates:
            if len(one.values) not in (1, period.n_leaves):
                raise ParameterError(
                    f"covariate {one.name!r} must have one row of values, or one for each of "
                    f"{period.n_leaves} series; got {len(one.values)}"
                )
        memory = own_state(self.prepared(state, period.first_step), NAME)
        parts = self._parts_of(period.n_steps, period.first_step, memory)
        spend = self._spend(period.n_steps, period.first_step, parts, memory)
        belief = self._belief(memory)
        history = BlockHistory.from_document(memory.get("history"), period.n_leaves)
        ordered = self._drawn(spend, memory, noise)
        if ordered:
            parts, spend = ordered.spend.parts, ordered.spend
        measured = measure_blocks(period, parts, spend, noise, ordered)
        own = BlockHistory.of(measured)
        after = replace(belief, covariates=())
        if belief.began is None and own.n_blocks:
            after = replace(after, began=self.public_days.day_of(int(own.starts[0])))
        kept = with_new_blocks(history, own, self.history_days, self.public_days.steps_per_day)
        known = {"mechanism": NAME, "history": history.to_document(), **belief.to_document()}
        return replace(
            measured,
            before={
                **(public_part({**known, **late_part(memory)}) or {}),
                **(ordered.left if ordered else {}),
            },
            state={
                "mechanism": NAME,
                "history": kept.to_document(),
                **after.to_document(),
                **self._kept(spend, ordered, memory),
            },
        )


# What the levels of a tree measure: common blocks, for which all levels together have headroom.

Levels = tuple[tuple[int, HistoryInformed], ...]  # measured levels and their mechanisms, root first


def tree_figures(pattern: HistoryInformed, tree: AggregationTree) -> Figures:
    """Return a tree's figures, made with the whole stream's model."""
    return pattern.figures([len(level) for level in tree.levels])


@dataclass(frozen=True, init=False)
class HistoryInformedTree(InformedMechanism, Hierarchical):
    """`Hierarchical` `HistoryInformed`, but all levels are measured at the same blocks and estimated at once.

    A leaf is the sum of a shared and an own part; a node is the sum of its leaves, so the exact posterior
    means add up. Where the posterior takes a leaf below `lower_bound`, the least-squares fit to it that
    respects the bound is published. Small counts have one block a window of their own at the deepest level,
    whose leaves are shares of their parents. Raises ParameterError as `Hierarchical`, for another pattern,
    and for "model" without a scale.

    Args:
        mechanism: A HistoryInformed, made with the whole stream's model; `scale` is of a typical leaf. Blocks
            that it does not name are those with the least expected error of all levels together, from
            epsilon, alpha, `scale`, the shares and the tree alone (`choose_tree_blocks`).
        tree: As in `Hierarchical`.
        level_shares: As in `Hierarchical`, or "model" for the least such error (`choose_level_shares`).
        lower_bound: As in `Hierarchical`.
    """

    new_state: ClassVar[Mapping[str, Any]] = {"mechanism": LEVELS, "levels": {}}
    noise_outlasts_trees: ClassVar[bool] = True
    learned_factors: ClassVar[NDArray[np.float64] | None] = None
    """Of `expected_by_level`, once learned."""

    def __init__(
        self,
        mechanism: HistoryInformed,
        tree: AggregationTree,
        level_shares: Sequence[Exact] | Literal["model"],
        lower_bound: float | None = 0.0,
    ) -> None:
        if not isinstance(mechanism, HistoryInformed):
            raise ParameterError(
                f"mechanism of HistoryInformedTree must be a HistoryInformed; got {type(mechanism).__name__}"
            )
        if mechanism.counts:
            refuse_margin(tree, "HistoryInformedTree of counts")
        shares = level_shares
        if isinstance(shares, str):
            figures = tree_figures(mechanism, tree)
            if shares != "model" or figures.relative_noise is None:
                raise ParameterError(
                    'level_shares of HistoryInformedTree must be a list of shares, or "model" with a public '
                    f"`scale`; got {shares!r}" + (" without a scale" if shares == "model" else "")
                )
            shares = choose_level_shares(tree, figures)
        for one in mechanism.covariates:
            if len(one.values) not in (1, len(tree.nodes)):
                raise ParameterError(
                    f"covariate {one.name!r} of HistoryInformedTree must have one row of values, or one for "
                    f"each of {len(tree.nodes)} nodes; got {len(one.values)}"
                )
        super().__init__(mechanism, tree, shares, lower_bound)

    @cached_property
    def levels(self) -> tuple[tuple[int, SeriesMechanism], ...]:
        """The levels' mechanisms, each with its share of epsilon and the blocks of the tree's plan. A level
        of small counts has blocks of its own. Learned parameters and covariates are the tree's."""
        pattern, small = self.pattern, self.small_level
        figures = tree_figures(pattern, self.tree)
        if figures.relative_noise is not None:
            count, length = choose_plan_blocks(self.tree, figures, self.level_shares)
            pattern = replace(pattern, n_blocks=count, block_length=length)
        pattern = replace(pattern, relearn_days=0, covariates=())
        found: dict[int, Any] = dict(self._levels_of(pattern))
        if small is not None:  # a block of a window has no other to share noise with
            length = min(SMALL_LENGTH, pattern.model.window_length)
            found[small] = replace(found[small], n_blocks=SMALL_BLOCKS, block_length=length, noise="laplace")
        return tuple(found.items())

    def with_learned(self, known: State | None, *, keeps_blocks: bool) -> "HistoryInformedTree":
        """Return the tree with the learned prior of a state as its first prior, if it has learned one.
        keeps_blocks: whether the blocks stay, with which the state was measured, and the expected errors are
        those that estimates of its last day state; else this prior chooses blocks where they are not given.
        Learned from noisy measurements, so public."""
        belief = self._belief(known)
        if belief.learned is None:
            return self
        pattern = replace(self.pattern, components=belief.prior.as_components)
        if keeps_blocks:
            pattern = replace(pattern, **self.common_blocks)  # type: ignore[arg-type]
        found = HistoryInformedTree(pattern, self.tree, self.level_shares, self.lower_bound)
        if keeps_blocks and (stated := self._stated_by_level(known, belief)) is not None:
            factors = np.insert(stated / found.expected_by_level()[:, ::2], 1, 1.0, axis=1)
            object.__setattr__(found, "learned_factors", factors)
        return found

    def _stated_by_level(self, known: State | None, belief: FilterState) -> NDArray[np.float64] | None:
        """Return root mean squares of the last day's estimates, (n_levels, 2), or None where there are none.

        Of nodes' standard errors, and of their values, which zeros miss.
        """
        histories, tree, days = self._histories(known), self.tree, self.pattern.public_days
        if any(not one.n_blocks or len(one.sums) != len(tree.levels[at]) for at, one in histories.items()):
            return None  # of another tree, or other shares
        newest = max(int(one.starts[-1]) for one in histories.values())
        first = newest - int(days.clock(np.array(newest))) % days.steps_per_day
        empty = Measured.from_public(np.zeros((len(tree.nodes), days.steps_per_day)), ())
        day = replace(empty, first_step=first, resolution=self.pattern.model.resolution)
        found, _ = self._estimated(day, belief, self._refined(known, histories))
        squares = np.stack([found.variances, found.variances + found.values**2], axis=2).mean(axis=1)
        rows = np.sqrt([squares[level.start : level.stop].mean(axis=0) for level in tree.levels])
        return rows if squares.max() < UNKNOWN / 2 else None

    @property
    def common_blocks(self) -> dict[str, int]:
        """The arguments that give the blocks of the levels that share theirs."""
        blocks = self._sets_of_levels[0][0][1].blocks
        return {"n_blocks": blocks.n_blocks, "block_length": blocks.length}

    def expected_by_level(self) -> NDArray[np.float64]:
        """Return the expected errors of each level, as `Mechanism.expected_by_level`."""
        figures = tree_figures(self.pattern, self.tree)
        found = expected_figures(self.tree, figures, self.level_shares, self.pattern.scale)
        found[:, 0] = np.sqrt(found[:, 0] ** 2 + (self.pattern.variation or 0.0) * found[:, 1])
        return found if self.learned_factors is None else found * self.learned_factors

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return each level's state, from that level's spends, and the tree's learned state."""
        charged = list(spends)
        state = super().recall(charged, before)
        assert state is not None  # every level has one
        known = memory_of(before, LEVELS)
        elsewhere = [spend_to_document(spend) for spend in charged if spend.level not in self._levels]
        return {**state, ELSEWHERE: elsewhere, **{key: known[key] for key in LEARNED if key in known}}

    @property
    def small_level(self) -> int | None:
        """The level of small counts that is measured at blocks of its own (`small_leaf_level`); else None."""
        return small_leaf_level(self.tree, self.pattern.figures(()), self.level_shares)

    def carried_over(self, state: State, between: TreeMap, first_step: int) -> State | None:
        """Return the state of the tree before at the nodes of this one (`carried_levels`)."""
        if between.is_renaming:
            return state
        levels = dict(level_states(state))
        if known := _guessed(state):  # guesses at an earlier change, corrected by later blocks
            histories = {
                int(level): BlockHistory.from_document(own.get("history"))
                for level, own in levels.items()
                if own
            }
            for level, history in refined(known, histories).items():
                levels[str(level)] = {**levels[str(level)], "history": history.to_document()}
        carried = carried_levels(levels, between)
        return {**state, "levels": carried, GUESSED: guesses(between, first_step)}

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' plans in a row, at blocks for which all levels together have headroom."""
        return super().plan(n_steps, first_step, self._with_parts(state, n_steps, first_step))

    def _with_parts(self, state: State | None, n_steps: int, first_step: int) -> State:
        """Return the levels' states with the blocks to measure: one choice for the tree (Lemma 13). A level
        that read its own past alone would miss the spends of other levels and of other plans' shares."""
        states, sets = level_states(state), self._sets_of_levels
        spent = [one for known in states.values() for one in (known or {}).get("spends", ())]
        others = [spend_from_document(one) for one in (*spent, *(state or {}).get(ELSEWHERE, ()))]
        layers = []
        for levels in sets:  # every part by itself, at the levels' total charge
            asked = [own.layer(n_steps, first_step, states.get(str(level))) for level, own in levels]
            # whole blocks alone where some level has joint noise
            parts = min((one.parts for one in asked), key=len)
            orders = [order for one in asked for order in one.orders]
            layers.append(Layer(parts, sum((one.apart for one in asked), Fraction(0)), orders))
        window, epsilon = self.model.window_length, self.model.pure_epsilon
        found = parts_with_headroom(layers, first_step, others, window, epsilon)
        chosen: dict[str, Any] = {}
        for levels, parts in zip(sets, found, strict=True):
            for level in (str(number) for number, _ in levels):
                own = states.get(level) or {}
                chosen[level] = {"mechanism": NAME, **own, PARTS: [[part.start, part.stop] for part in parts]}
        return {"mechanism": LEVELS, **(state or {}), "levels": chosen}

    @property
    def _sets_of_levels(self) -> tuple[Levels, ...]:
        """The measured levels, those together that are measured at the same blocks; root first."""
        small, levels = self.small_level, cast(Levels, self.levels)
        dense = tuple((level, own) for level, own in levels if level != small)
        alone = tuple((level, own) for level, own in levels if level == small)
        return tuple(some for some in (dense, alone) if some)

    @property
    def _levels(self) -> tuple[int, ...]:
        return tuple(level for level, _ in self.levels)

    def _states(self, state: State | None) -> Mapping[str, Any]:
        return level_states(state or None)

    def program(self, release: Release) -> tuple[LeastSquares, BoundRule]:
        """Return the least squares of its posterior, each value by its own variance."""
        assert release.standard_errors is not None
        merged = release.measured.seen_as(release.unbounded, release.standard_errors**2)
        return least_squares(merged, self.tree, [], "variance"), "held"

    def measured(self, measured: Measured) -> bool:
        """Return whether its parts are block sums at each measured level's nodes of this tree."""
        sizes = [len(self.tree.levels[level]) for level in self._levels]
        of_blocks = all(isinstance(part.answers, BlockSums) for part in measured.parts)
        return of_blocks and sizes == [len(part.points) for part in measured.parts]

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        # learned before the first sample: what fails here has drawn nothing
        state = self.prepared(state, period.first_step)
        belief = self._belief(state)
        elsewhere = (state or {}).get(ELSEWHERE, [])
        drawn = super()._draw(period, noise, self._with_parts(state, period.n_steps, period.first_step))
        assert drawn.state is not None
        end = period.first_step + period.n_steps
        seen = self.pattern._still_seen([spend_from_document(one) for one in elsewhere], end)
        own = level_states(drawn.state)[str(self._sets_of_levels[0][-1][0])]
        began = (own or {}).get("began") if belief.began is None else belief.began
        after = replace(belief, covariates=(), began=began)
        oldest = end - self.pattern.history_days * self.pattern.public_days.steps_per_day
        guessed = [one for one in _guessed(state) if one["since"] > oldest]
        guessed_part = {GUESSED: guessed} if guessed else {}
        before = {"mechanism": LEVELS, **belief.to_document(), **guessed_part, **late_part(state)}
        return replace(
            drawn,
            before=with_raw_of(before, drawn.before),
            state={**drawn.state, ELSEWHERE: seen, **after.to_document(), **guessed_part},
            # all blocks of weeks: once, in the state
            parts=tuple(replace(part, before=None, state=None) for part in drawn.parts),
        )


# Prior medians of a series that was public all along, for a stream that has learned nothing.

Medians = Mapping[str, Sequence[float]]

LEAST_MEDIAN, LARGEST_MEDIAN = 1e-9, 1e6
"""Range of a median, a relative strength or a length in days without overflow of floats."""


def with_medians(medians: Medians) -> tuple[Component, ...]:
    """Return `COMPONENTS`, those that a proxy shows with all of these medians."""
    # neither the public scale's size nor events
    shown = {one.name: one for one in COMPONENTS if one.kernel is not constant and one.gate != "event"}
    for name in [*medians, *shown]:
        if name not in shown:
            raise ParameterError(f"a proxy shows the components {', '.join(shown)}; got {name!r}")
        given, count = list(medians.get(name, ())), shown[name].n_parameters
        if len(given) != count or not all(LEAST_MEDIAN <= value <= LARGEST_MEDIAN for value in given):
            raise ParameterError(
                f"component {name!r} of a prior must have {count} numbers in [{LEAST_MEDIAN:g}, "
                f"{LARGEST_MEDIAN:g}]: shared and own strength, then lengths in days; got {given!r}"
            )
        shared, own, *lengths = (float(value) for value in given)
        shown[name] = replace(shown[name], shared=shared, own=own, lengths=tuple(lengths))
    return tuple(shown.get(one.name, one) for one in COMPONENTS)
