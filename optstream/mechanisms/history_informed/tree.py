"""Blocks measured at every level of a tree, one posterior over all of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.gaussian_process.filter import FilterState
from optstream.estimation.gaussian_process.history import BlockHistory, n_series_of
from optstream.mechanisms.hierarchical import NAME as LEVELS
from optstream.mechanisms.hierarchical import Hierarchical, level_states
from optstream.mechanisms.history_informed.changed_tree import GUESSED, carried_levels, guesses, refined
from optstream.mechanisms.history_informed.covariate_memory import COVARIATES, late_part, used_covariates
from optstream.mechanisms.history_informed.history_informed import READY, HistoryInformed
from optstream.mechanisms.history_informed.small_counts import small_leaf_level
from optstream.mechanisms.history_informed.tree_choice import expected_figures
from optstream.mechanisms.history_informed.tree_estimates import TreeEstimates
from optstream.mechanisms.history_informed.tree_levels import (
    Levels,
    chosen_shares,
    states_with_parts,
    tree_figures,
    with_the_same_blocks,
)
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.series import SeriesMechanism
from optstream.mechanisms.state import memory_of
from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.privacy.exact import Exact
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream import AggregationTree, BlockSums, Measured, PrivatePeriod, State
from optstream.stream.hierarchy.tree_map import TreeMap
from optstream.stream.lattice import refuse_margin

ELSEWHERE = "elsewhere"
"""In a state: spends that lie on no level that is measured now."""
LEARNED = ("prior", "began", "learned", "events", GUESSED, COVARIATES)
"""What the tree's state holds beside its levels'; covariates on its way to a draw alone."""


@dataclass(frozen=True, init=False)
class HistoryInformedTree(Hierarchical):
    """`Hierarchical` `HistoryInformed`, but all levels are measured at the same blocks and estimated at once.

    A leaf is what all leaves share and what is its own; a node is the sum of its leaves. So a nation's blocks
    sharpen its regions and theirs the nation, as far as the learned prior says, and what comes out adds up
    (`estimation.gaussian_process.tree_posterior`, exact). Where the posterior takes a leaf below
    `lower_bound`, the least-squares fit to it by its variances that respects the bound is published.

    Of counts the leaves may be so small that noise hides them at any block: then the deepest level has one
    block a window of its own, and its leaves are shares of their parents (`estimation.counts`). Sizes are
    learned apart for busy and empty nodes, a count varies around what is expected of it by as much as that
    is, and bands are of whole numbers.

    Args:
        mechanism: A HistoryInformed, made with the whole stream's model; `scale` is of a typical leaf. Blocks
            that it does not name are those with the least error that the prior expects of all levels
            together, from epsilon, alpha, `scale`, the shares and the tree alone (`choose_tree_blocks`).
        tree: As in `Hierarchical`.
        level_shares: As in `Hierarchical`, or "model" for those with the least such error
            (`choose_level_shares`).
        lower_bound: As in `Hierarchical`.

    Raises:
        ParameterError: As `Hierarchical`, for another pattern, and for "model" without a scale.
    """

    revises: ClassVar[bool] = True
    has_self_check: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False

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
            shares = chosen_shares(mechanism, tree, shares)
        for one in mechanism.covariates:
            if len(one.values) not in (1, len(tree.nodes)):
                raise ParameterError(
                    f"covariate {one.name!r} of HistoryInformedTree must have one row of values, or one for "
                    f"each of {len(tree.nodes)} nodes; got {len(one.values)}"
                )
        super().__init__(mechanism, tree, shares, lower_bound)

    @property
    def levels(self) -> tuple[tuple[int, SeriesMechanism], ...]:
        """The measured levels and their mechanisms, root first."""
        return _with_the_same_blocks(self)

    @property
    def pattern(self) -> HistoryInformed:
        """The `mechanism`, with its own type."""
        assert isinstance(self.mechanism, HistoryInformed)
        return self.mechanism

    def expected_by_level(self) -> NDArray[np.float64]:
        """Return what the prior expects of each level, as `Mechanism.expected_by_level`."""
        figures = tree_figures(self.pattern, self.tree)
        return expected_figures(self.tree, figures, self.level_shares, self.pattern.scale)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return each level's state, from that level's spends, and what the tree learned."""
        charged = list(spends)
        state = super().recall(charged, before)
        assert state is not None  # every level has one
        known = memory_of(before, LEVELS)
        measured = {level for level, _ in self.levels}
        elsewhere = [spend_to_document(spend) for spend in charged if spend.level not in measured]
        return {**state, ELSEWHERE: elsewhere, **{key: known[key] for key in LEARNED if key in known}}

    @property
    def small_level(self) -> int | None:
        """The level of small counts that is measured at blocks of its own (`small_leaf_level`); else None."""
        return small_leaf_level(self.tree, self.pattern.figures, self.level_shares)

    def carried_over(self, state: State, between: TreeMap, first_step: int) -> State | None:
        """Return what the tree before had learned and measured, at the nodes of this one (`changed_tree`)."""
        if between.is_renaming:
            return state
        levels, known = level_states(state), _guessed(state)
        if known:
            # what was guessed at an earlier change, as it is known by now
            histories = {int(level): self._belief(own).history for level, own in levels.items() if own}
            told = {str(level): one.to_document() for level, one in refined(known, histories).items()}
            levels = {level: {**own, "history": told[level]} if own else own for level, own in levels.items()}
        carried = carried_levels(levels, between)
        return {**state, "levels": carried, GUESSED: guesses(between, first_step)}

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' plans in a row, at blocks for which all levels together have headroom."""
        return super().plan(n_steps, first_step, self._with_parts(state, n_steps, first_step))

    def _with_parts(self, state: State | None, n_steps: int, first_step: int) -> State:
        """Return the state, each level told which blocks are measured (`states_with_parts`)."""
        states = level_states(state)
        spent = [one for known in states.values() for one in (known or {}).get("spends", ())]
        others = [spend_from_document(one) for one in (*spent, *(state or {}).get(ELSEWHERE, ()))]
        period = range(first_step, first_step + n_steps)
        told = states_with_parts(self._sets_of_levels, states, others, self.model, period)
        return {"mechanism": LEVELS, **(state or {}), "levels": told}

    @property
    def _sets_of_levels(self) -> tuple[Levels, ...]:
        """The measured levels, those together that are measured at the same blocks; root first."""
        small = tuple(one for one in self._informed if one[0] == self.small_level)
        return tuple(levels for levels in (self._dense, small) if levels)

    @property
    def _dense(self) -> Levels:
        """The levels that are measured at common blocks and have one posterior."""
        return tuple(one for one in self._informed if one[0] != self.small_level)

    @property
    def _informed(self) -> Levels:
        """The `levels`, with their own type."""
        return tuple((level, own) for level, own in self.levels if isinstance(own, HistoryInformed))

    def fitted(self, measured: Measured) -> Estimate:
        """Return the posterior mean of every node and its variance; consistent, and not below the bound."""
        return self._estimates.estimate(measured, *self._known(measured)).values

    def events(self, measured: Measured) -> tuple[int, ...]:
        """Return the days that were found unlike all others, as `HistoryInformed.events` does; free."""
        belief, histories = self._known(measured)
        dense = {level: histories[level] for level, _ in self._dense}
        return self._estimates.events(measured, belief, dense)

    def _known(self, measured: Measured) -> tuple[FilterState, dict[int, BlockHistory]]:
        """Return what the tree had learned before, and each level's blocks, the period's own among them.

        Raises ParameterError for measurements of other levels.
        """
        if len(measured.parts) != len(self.levels):
            raise ParameterError(
                f"these measurements are of {len(measured.parts)} levels, the mechanism measures "
                f"{len(self.levels)}: estimate them with the level shares under which they were drawn"
            )
        belief = self.pattern._belief(_learned(measured.before), 0)
        # what each level left: its own blocks are there
        return belief, refined(_guessed(measured.before), _left_by(self, measured))

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return None: sizes, kernels and events were learned from the same blocks, so nothing is linear."""
        return None

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements, standard errors included; repeatable, free."""
        return self._with_errors(measured, *self._known(measured))

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return the same period estimated again, from what was measured after it too; free."""
        return self._with_errors(measured, *self._known_since(measured, later))

    def _known_since(
        self, measured: Measured, later: Sequence[Measured]
    ) -> tuple[FilterState, dict[int, BlockHistory]]:
        """Return what the tree had learned after the last of the later periods, and each level's blocks."""
        last = later[-1] if later else measured
        used = used_covariates(measured, *later, day=self.pattern.public_days.day_of(measured.first_step))
        belief = self.pattern._belief({**_learned(last.state), **used}, 0)
        histories = dict(_left_by(self, last))
        own = _left_by(self, measured) if self.pattern.is_far(measured, last) else {}
        for place, (level, _) in enumerate(self.levels):
            parts = [one.parts[place] for one in (measured, *later)]
            histories[level] = histories[level].completed(parts)
            histories[level] = histories[level].with_those(own.get(level, BlockHistory.empty(0)))
        return belief, refined(_guessed(last.state), histories)

    def measured(self, measured: Measured) -> bool:
        """Return whether its parts are block sums at each measured level's nodes of this tree."""
        sizes = [len(self.tree.levels[level]) for level, _ in self.levels]
        of_blocks = all(isinstance(part.answers, BlockSums) for part in measured.parts)
        return of_blocks and sizes == [len(part.points) for part in measured.parts]

    def _with_errors(
        self, measured: Measured, belief: FilterState, histories: Mapping[int, BlockHistory]
    ) -> Release:
        estimate = self._estimates.estimate(measured, belief, histories)
        found, doubt = estimate.values, estimate.doubt
        release = self._release(measured, found.values, np.sqrt(found.variances), found.optimality, doubt)
        before = found.values if found.unbounded is None else found.unbounded
        return replace(release, bands=found.bands, covariates=belief.covariates, unbounded_of=lambda: before)

    @property
    def _estimates(self) -> TreeEstimates:
        """How it is estimated."""
        return TreeEstimates(self.pattern, self.tree, self.small_level, self.lower_bound)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        # learned before the first sample: what fails here has drawn nothing
        state = self.prepared(state, period.first_step)
        belief = self.pattern._belief(_learned(state), 0)
        elsewhere = (state or {}).get(ELSEWHERE, [])
        drawn = super()._draw(period, noise, self._with_parts(state, period.n_steps, period.first_step))
        assert drawn.state is not None
        end = period.first_step + period.n_steps
        seen = self.pattern._still_seen([spend_from_document(one) for one in elsewhere], end)
        own = level_states(drawn.state)[str(self._dense[-1][0])]
        began = own["began"] if own else None
        learned = {key: value for key, value in belief.to_document().items() if key in LEARNED}
        after = {key: value for key, value in learned.items() if key != COVARIATES}
        after["began"] = began if belief.began is None else belief.began
        oldest = end - self.pattern.history_days * self.pattern.public_days.steps_per_day
        guessed = [one for one in _guessed(state) if one["since"] > oldest]
        guessed_part = {GUESSED: guessed} if guessed else {}
        return replace(
            drawn,
            before={"mechanism": LEVELS, **learned, **guessed_part, **late_part(state)},
            state={**drawn.state, ELSEWHERE: seen, **after, **guessed_part},
            # all blocks of weeks: once, in the state
            parts=tuple(replace(part, before=None, state=None) for part in drawn.parts),
        )

    def prepared(self, state: State | None, first_step: int) -> State | None:
        """Judge the last day, and learn again when due: before anything is drawn, for it may fail."""
        level_states(state)  # refuses another's
        known = self.pattern.known_covariates(first_step)
        if (state or {}).get(READY) == first_step or not (state or known):
            return state
        asked = {"mechanism": LEVELS, "levels": {}, **(state or {})}
        learned = _learned(replace(self._refreshed(asked, first_step), covariates=()).to_document())
        return {**asked, **learned, **known, READY: first_step}

    def _refreshed(self, state: State | None, first_step: int) -> FilterState:
        """Return what the tree learned so far, learned again when due."""
        levels = level_states(state)
        histories = {level: self._belief(levels.get(str(level))).history for level, _ in self._dense}
        known = self.pattern.known_with(histories.values())
        belief = self.pattern._belief({**_learned(state), **known}, 0)
        return self._estimates.refreshed(belief, refined(_guessed(state), histories), first_step)

    def _belief(self, document: Mapping[str, Any] | None) -> FilterState:
        given = (document or {}).get("history")
        return self.pattern._belief(document, n_series_of(given) if given else 0)


def _guessed(state: State | None) -> list[dict[str, Any]]:
    """What was guessed of leaves that a change of the tree brought, while their past is looked at."""
    return list((state or {}).get(GUESSED, ()))


@lru_cache(maxsize=1)
def _left_by(whole: HistoryInformedTree, measured: Measured) -> dict[int, BlockHistory]:
    """What each level left after a period: all new estimates of a night ask for that of its newest one."""
    known = level_states(measured.state)
    return {level: whole._belief(known.get(str(level))).history for level, _ in whole.levels}


def _learned(state: State | None) -> dict[str, Any]:
    return {key: state[key] for key in LEARNED if state and key in state}


@lru_cache(maxsize=256)
def _with_the_same_blocks(whole: HistoryInformedTree) -> tuple[tuple[int, SeriesMechanism], ...]:
    found: list[tuple[int, Any]] = list(super(HistoryInformedTree, whole).levels)
    return with_the_same_blocks(
        tuple(found), whole.tree, whole.pattern, whole.level_shares, whole.small_level
    )
