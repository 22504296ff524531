"""Blocks measured at every level of a tree, one posterior over all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import permutations
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.least_squares import consistent
from optstream.history.blocks import BlockHistory, n_series_of
from optstream.history.blocks import Blocks as Steps
from optstream.history.count_draws import count_draws
from optstream.history.counts import (
    fit_counts,
    published_counts,
    seen_counts,
    shared_fit,
    tree_above,
    typical_above,
)
from optstream.history.filter import (
    MOST_LEARNED,
    FilterState,
    Look,
    around,
    events_of_tree,
    expected_level_errors,
    fit_tree,
    judged_tree,
    latest,
    nothing_measured,
    seen_tree,
)
from optstream.mechanisms.blocks import NAME, PARTS, Blocks, Figures, best_blocks, planned_blocks
from optstream.mechanisms.hierarchical import NAME as LEVELS
from optstream.mechanisms.hierarchical import Hierarchical, level_states
from optstream.mechanisms.history_informed import (
    COVARIATES,
    READY,
    HistoryInformed,
    late_part,
    used_covariates,
)
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.series import SeriesMechanism
from optstream.mechanisms.state import memory_of
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.exact import Exact
from optstream.privacy.rules import Layer, layers_with_headroom
from optstream.privacy.spends import groups_to_document, spend_from_document, spend_to_document
from optstream.stream import AggregationTree, BlockSums, Measured, PrivatePeriod, State
from optstream.stream.changes import TreeMap
from optstream.stream.lattice import refuse_margin

# The state of `HistoryInformedTree` over a change of its tree: a public, linear map of noisy sums.
#
# Blocks of earlier days were measured at the old nodes. A current node that is the same unit has its
# row; what was merged is added up; a part of what was split has its public share of it; units that came into
# a node or left it are added to its row or taken from it. A unit that had no readings is, for the days
# before, as large as a share of its siblings. Shares that were guessed are learned again from the blocks
# since.
#
# Privacy: none; all of it is computed from noisy sums and the public list of changes (docs/privacy.md, Lemma
# 18). Source: none; it is our own.

GUESSED = "guessed"
"""In a state: the leaves whose share of the days before was not measured, and since when each is."""
SPLIT_DEVIATION, ADDED_DEVIATION = 0.5, 1.0
"""How far, relative, the share of a part may lie from the public one; of a new unit from a typical one's."""
Histories = Mapping[int, BlockHistory]
"""Of each measured level."""
Floats = NDArray[np.float64]


def carried_levels(levels: Mapping[str, Any], between: TreeMap) -> dict[str, Any]:
    """Return the levels' states for the tree that follows.

    A history is in the order of the new tree's nodes; it is left out where it does not exist for all of them:
    a level that was not measured before, or at other blocks than the parts of its nodes.
    """
    histories = {
        int(level): BlockHistory.from_document(own["history"], n_series_of(own["history"]))
        for level, own in levels.items()
        if own and own.get("history")
    }
    found = {}
    for level, own in levels.items():
        history = _carried(histories, int(level), between) if int(level) in histories else None
        kept = {key: value for key, value in (own or {}).items() if key != "history"}
        found[level] = kept if history is None else {**kept, "history": history.to_document()}
    return found


def guesses(between: TreeMap, first_step: int) -> list[dict[str, Any]]:
    """Return the leaves whose size on earlier days was not measured, JSON-ready for a state.

    Of each its level and row, and of those that it has a share of, together with the share, its uncertainty,
    and the rows above that lack it.
    """
    return list(_guesses(between, first_step))


def refined(guessed: Sequence[Mapping[str, Any]], histories: Histories) -> dict[int, BlockHistory]:
    """Return the blocks with the guessed rows of earlier days corrected by the later blocks.

    `guessed` is of `guesses`; only rows of guessed leaves, and those above new ones, change.
    """
    if not guessed:
        return dict(histories)
    found = {level: replace(one, sums=one.sums.astype(np.float64)) for level, one in histories.items()}
    shares = [_share(one, histories) for one in guessed]
    groups: dict[tuple[Any, ...], float] = {}
    for one, share in zip(guessed, shares, strict=True):
        groups[_group(one)] = groups.get(_group(one), 0.0) + share
    for one, share in zip(guessed, shares, strict=True):
        level, row = one["at"]
        if level not in found:
            continue
        whole = groups[_group(one)]
        # where noise leaves no part anything, or readings are negative, the guesses stand: they add up to 1
        of_all = share if not one["parts"] else share / whole if whole > 0 else float(one["share"])
        was = histories[level].starts < one["since"]
        sums = of_all * histories[level].sums[one["beside"]][:, was].sum(axis=0)
        found[level].sums[row, was] = sums
        for upper, place in one["above"]:
            if upper in found and _same_blocks(found[upper], found[level]):
                found[upper].sums[place, was] += sums
    return found


def _group(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of one unit, whose shares add up to 1; a new unit is by itself."""
    return (one["at"][0], *(one["beside"] if one["parts"] else one["at"]))


def _share(one: Mapping[str, Any], histories: Histories) -> float:
    """The share of a leaf in its siblings, by the blocks since the change, joined with the guess."""
    level, row = one["at"]
    guess = float(one["share"])
    if level not in histories:
        return guess
    history = histories[level]
    since = history.starts >= one["since"]
    if not since.any():
        return guess
    weight = 1.0 / history.scales[since] ** 2
    own, siblings = history.sums[row, since], history.sums[one["beside"]][:, since].sum(axis=0)
    whole = float(siblings @ weight)
    if whole == 0:
        return guess
    measured = float(own @ weight) / whole
    # noise of own and of its siblings, over the siblings' sum
    noise = 2.0 * float(weight.sum()) * (1 + len(one["beside"]) * measured**2) / whole**2
    variance = (float(one["doubt"]) * guess) ** 2
    return max((measured / noise + guess / variance) / (1.0 / noise + 1.0 / variance), 0.0)


def _guesses(between: TreeMap, first_step: int) -> Iterator[dict[str, Any]]:
    tree = between.after
    level_of, row_of = _places(tree)
    parts_of: dict[str, list[str]] = {}
    for leaf, parts in zip(tree.leaves, between.leaves, strict=True):
        # a part that was merged with a neighbour since has a row that holds more than its share
        for old, share in parts.items() if len(parts) == 1 else ():
            if share < 1:
                parts_of.setdefault(old, []).append(leaf)
    for leaf, parts in zip(tree.leaves, between.leaves, strict=True):
        own = {"at": [level_of[leaf], row_of[leaf]], "since": first_step}
        if not parts:
            siblings = _siblings(between, leaf, level_of)
            if siblings:
                above = [[level_of[node], row_of[node]] for node in _above(tree, leaf)]
                rows = [row_of[one] for one in siblings]
                guess = {"share": 1.0 / len(rows), "doubt": ADDED_DEVIATION, "parts": False, "above": above}
                yield {**own, "beside": rows, **guess}
        elif len(parts) == 1 and next(iter(parts.values())) < 1:
            ((old, share),) = parts.items()
            siblings = [one for one in parts_of[old] if level_of[one] == level_of[leaf]]
            whole = sum(float(between.leaves[tree.leaves.index(one)].get(old, 0)) for one in siblings)
            if len(siblings) > 1:
                rows = [row_of[one] for one in siblings]
                guess = {"share": float(share) / whole, "doubt": SPLIT_DEVIATION, "parts": True, "above": []}
                yield {**own, "beside": rows, **guess}


def _siblings(between: TreeMap, leaf: str, level_of: Mapping[str, int]) -> list[str]:
    """The leaves with a past that stand nearest to a new one, on its level."""
    tree = between.after
    past = {one for one, parts in zip(tree.leaves, between.leaves, strict=True) if parts}
    for node in _above(tree, leaf):
        below = tree.leaves_in([node])
        found = [one for one, inside in zip(tree.leaves, below.tolist(), strict=True) if inside]
        found = [one for one in found if one in past and level_of[one] == level_of[leaf]]
        if found:
            return found
    return []


def _above(tree: AggregationTree, leaf: str) -> list[str]:
    """The nodes above a leaf, the nearest first."""
    found, at = [], tree.parents[tree.nodes.index(leaf)]
    while at >= 0:
        found.append(tree.nodes[at])
        at = tree.parents[at]
    return found


def _places(tree: AggregationTree) -> tuple[dict[str, int], dict[str, int]]:
    """The level of each node, and its row within that."""
    levels = dict(zip(tree.nodes, tree.depths.tolist(), strict=True))
    return levels, {tree.nodes[index]: row for level in tree.levels for row, index in enumerate(level)}


def _carried(histories: Histories, level: int, between: TreeMap) -> BlockHistory | None:
    """One level's blocks at the current nodes; None where they do not follow from the old ones."""
    before, after = between.before, between.after
    if level >= after.n_levels:
        return None
    level_of, row_of = _places(before)
    base, n_new = histories[level], len(after.levels[level])
    sums = np.zeros((n_new, base.n_blocks))
    for row, index in enumerate(after.levels[level]):
        for old, weight in _made_of(between, after.nodes[index], set(histories), level_of).items():
            source = histories.get(level_of[old])
            if source is None or not _same_blocks(source, base):
                return None
            sums[row] += weight * source.sums[row_of[old]]
    return replace(base, sums=np.round(sums))


def _made_of(
    between: TreeMap, node: str, measured: set[int], level_of: Mapping[str, int]
) -> dict[str, float]:
    """The old nodes whose sums add up to a current node, each with its weight."""
    below = between.after.leaves_in([node])
    weights: dict[str, float] = {}
    for inside, parts in zip(below.tolist(), between.leaves, strict=True):
        for old, share in parts.items() if inside else ():
            weights[old] = weights.get(old, 0.0) + float(share)
    same = between.nodes.get(node)
    if same is None or level_of[same] not in measured:
        return weights
    of_same = between.before.leaves_in([same])
    for old, inside in zip(between.before.leaves, of_same.tolist(), strict=True):
        if inside:
            weights[old] = weights.get(old, 0.0) - 1.0
    rest = {old: weight for old, weight in weights.items() if abs(weight) > 1e-12}
    return {same: 1.0, **rest} if same not in rest else {same: 1.0 + rest.pop(same), **rest}


def _same_blocks(one: BlockHistory, other: BlockHistory) -> bool:
    return np.array_equal(one.starts, other.starts) and np.array_equal(one.lengths, other.lengths)


# Which leaves are small counts, and the blocks at which they are measured: from public figures alone.

SMALL = 0.25
"""From which relative noise on a leaf, in one block a window, it is small: between 0.5, where blocks of their
own were no worse, and 0.01, where they were (docs/methods/history-informed.md)."""
SMALL_BLOCKS, SMALL_LENGTH = 1, 4
"""Of a window: the mean of fewer blocks is the less noisy, whatever their length."""
SIZES_APART = 1.5
"""Standard deviation of the logarithm of leaves' sizes, where a choice expects errors."""
SEEN_DAYS = 56
"""Of blocks that are known of a leaf, likewise."""
NODES_OF_SIZES = 40


def small_leaf_level(tree: AggregationTree, public: Figures, level_shares: Sequence[Fraction]) -> int | None:
    """Return the deepest level where its leaves are small counts; else None.

    Small is a leaf of the public `scale` whose noise, in one block a window, is more than `SMALL` of it.
    The level above must be measured, and every leaf above, for small leaves are shares of those.
    """
    deepest = tree.n_levels - 1
    noise = public.relative_noise
    if public.count is None or noise is None or not deepest or not level_shares[deepest - 1]:
        return None
    return deepest if noise / level_shares[deepest] > SMALL else None


def small_blocks(window_length: int) -> tuple[int, int]:
    """Return (m, L) of small leaves: the blocks of a window, and their steps."""
    return SMALL_BLOCKS, min(SMALL_LENGTH, window_length)


def tree_of_common_blocks(tree: AggregationTree, small: int | None) -> AggregationTree:
    """Return the tree of the levels that are measured at common blocks: all, or those above `small`."""
    return tree if small is None else tree_above(tree, small)


def figures_above(public: Figures, tree: AggregationTree, above: AggregationTree) -> Figures:
    """Return the figures of the levels above, with the relative noise of a leaf of `above`."""
    leaf = typical_above(tree, above, 1.0)
    if public.relative_noise is None or leaf is None:
        return public
    count = None if public.count is None else public.count * leaf
    return replace(public, relative_noise=public.relative_noise / leaf, count=count)


def expected_small_error(public: Figures, share: Fraction) -> float:
    """Return the expected error of small leaves, relative to the size of a typical one.

    The mean over log-normal sizes of the root of a count's variance and that of its size after `SEEN_DAYS` of
    blocks. 0 everywhere would miss by 1.
    """
    assert public.count is not None
    at, weights = np.polynomial.hermite_e.hermegauss(NODES_OF_SIZES)
    sizes = np.exp(SIZES_APART * at - SIZES_APART**2 / 2)
    windows = max(SEEN_DAYS * public.steps_per_day / public.window_length, 1.0)
    noise = public.noise(SMALL_BLOCKS, float(share)) / windows
    missed = np.sqrt(sizes / public.count + sizes**2 * noise / (sizes**2 + noise))
    return float(weights @ missed / weights.sum())


# What is measured of a tree: blocks and level shares with the least error that the prior expects.
#
# Functions of public figures: epsilon, alpha, a leaf's public size, the tree. They cost no privacy.

MOVES = (Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32))
"""Parts of epsilon that are tried in other hands, largest first."""
LEAST = Fraction(1, 32)
"""Of a level that holds leaves, which nothing else measures."""
BETTER, WORTH_IT = 0.01, 0.03
"""Relative: a gain below the first is none; what gains less than the second over equal shares is within what
a general prior can tell, and equal ones are kept."""
Shares = tuple[Fraction, ...]


@lru_cache(maxsize=256)
def choose_tree_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Blocks:
    """Return (m, L) for all levels, with the least `expected_error_of`; given values stay.

    A tree bears more blocks than one series with the same noise: its leaves inform each other.
    """
    return best_blocks(lambda *blocks: expected_error_of(tree, public, shares, blocks), public)


@lru_cache(maxsize=64)
def choose_level_shares(tree: AggregationTree, public: Figures) -> Shares:
    """Return one share for each level, root first, that add up to 1, with the least `expected_error_of`.

    By this measure equal shares are never better. The search begins with the best of some simple shares. A
    level without leaves may get nothing, and is then derived.
    """

    def blocks_of(shares: Shares) -> Blocks:
        return choose_plan_blocks(tree, public, shares)

    def error(shares: Shares, blocks: Blocks) -> float:
        return float(np.exp(np.log(expected_level_misses(tree, public, shares, blocks)).mean()))

    equal, *others = _simple(tree)
    best = min((equal, *others), key=lambda shares: error(shares, blocks_of(shares)))
    blocks = blocks_of(best)
    least = error(best, blocks)
    for move in MOVES:
        while True:
            found = min(
                ((error(one, blocks), one) for one in _moved(best, move, tree)), default=(least, best)
            )
            if not found[0] < least * (1.0 - BETTER):  # nor for nan
                break
            # the blocks follow the shares: with them it is no worse
            best, blocks = found[1], blocks_of(found[1])
            least = min(found[0], error(best, blocks))
    gain = 1.0 - error(best, blocks_of(best)) / error(equal, blocks_of(equal))
    return best if gain > WORTH_IT else equal


def expected_error_of(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> float:
    """Return the geometric mean over levels of a node's expected root mean square error, relative to its
    size.

    Geometric, so that a part of the error counts alike at every level: a nation's is much smaller than a
    leaf's, and a plain mean would sacrifice it. Leaves are taken to be of one size. Of counts it includes
    their unmeasured variation.
    """
    return float(np.exp(np.log(_posterior_errors(tree, public, shares, blocks)).mean()))


def choose_plan_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Blocks:
    """Return (m, L) of the levels that are measured at common blocks, as `choose_tree_blocks`."""
    above = tree_of_common_blocks(tree, small_leaf_level(tree, public, shares))
    return choose_tree_blocks(above, figures_above(public, tree, above), shares[: above.n_levels])


@lru_cache(maxsize=4096)
def expected_level_misses(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> Floats:
    """Return the errors of `expected_error_of` by level, (n_levels,), blocks being those of shared levels."""
    small = small_leaf_level(tree, public, shares)
    above = tree_of_common_blocks(tree, small)
    figures = figures_above(public, tree, above)
    errors = _posterior_errors(above, figures, shares[: above.n_levels], blocks)
    if small is None:
        return errors
    return np.append(errors, expected_small_error(public, shares[small]))


def misses_unmeasured(tree: AggregationTree, public: Figures) -> Floats:
    """Return `expected_level_misses` without any measurement: by the prior and the public scale alone."""
    shared, own = public.prior.variances(Steps.at(np.zeros(1, dtype=np.int64)))
    leaves = leaves_by_level(tree)
    of_counts = 0.0 if public.count is None else 1.0 / (public.count * leaves)
    return np.asarray(np.sqrt(shared + own / leaves + of_counts))


def expected_figures(tree: AggregationTree, public: Figures, shares: Shares, scale: float | None) -> Floats:
    """Return `Mechanism.expected_by_level` of a tree whose typical leaf has the public size `scale`."""
    if scale is None:
        return np.full((tree.n_levels, 3), np.nan)
    missed = expected_level_misses(tree, public, shares, choose_plan_blocks(tree, public, shares))
    blind = np.minimum(misses_unmeasured(tree, public), 1.0)
    sizes = scale * leaves_by_level(tree)
    return np.stack([missed * sizes, sizes, blind * sizes], axis=1)


def leaves_by_level(tree: AggregationTree) -> Floats:
    """Return how many leaves a node of each level covers on average, (n_levels,)."""
    return np.array([tree.leaves_below[level.start : level.stop].mean() for level in tree.levels])


@lru_cache(maxsize=4096)
def _posterior_errors(tree: AggregationTree, public: Figures, shares: Shares, blocks: Blocks) -> Floats:
    noise = public.noises(blocks, [float(share) for share in shares])
    errors = expected_level_errors(planned_blocks(public, *blocks), tree, noise)
    if public.count is None:
        return errors
    leaves = leaves_by_level(tree)
    variances = np.array([np.inf if one is None else one.variance for one in noise]) / leaves**2
    return _of_counts(errors, 1.0 / (public.count * leaves), variances, blocks, public.window_length)


def _of_counts(errors: Floats, counted: Floats, noise: Floats, blocks: Blocks, window_length: int) -> Floats:
    """Return the expected errors of counts, given those of expectations, relative to a node's size.

    A step that is measured shows its count's variation, by `count_variation`; others do not. counted:
    variance of a count. noise: of a block's mean, of the node's own measurement alone.
    """
    n_blocks, length = blocks
    explained = counted / (length * (counted + length * noise))
    measured = n_blocks * length / window_length
    remaining = 1.0 - explained if length == 1 else 1.0
    known = errors**2 * remaining + counted * (1.0 - explained)
    return np.asarray(np.sqrt(measured * known + (1.0 - measured) * (errors**2 + counted)))


def _simple(tree: AggregationTree) -> list[Shares]:
    """Return simple shares: equal, doubling from level to level in either order, all for leaves."""
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    rows = [[1] * tree.n_levels, [2**level for level in range(tree.n_levels)]]
    rows += [rows[1][::-1], [int(level in with_leaves) for level in range(tree.n_levels)]]
    return [tuple(Fraction(weight, sum(row)) for weight in row) for row in rows]


def _moved(shares: Shares, move: Fraction, tree: AggregationTree) -> Iterator[Shares]:
    """Yield the shares with so much taken from one level and given to another."""
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    for giver, taker in permutations(range(len(shares)), 2):
        left = shares[giver] - min(move, shares[giver])
        if shares[giver] and (left >= LEAST if giver in with_leaves else True):
            moved = list(shares)
            moved[taker] += shares[giver] - left
            moved[giver] = left
            yield tuple(moved)


# What is estimated of a tree from the blocks of its levels: one posterior, exact, over all of them.

"""Of each measured level."""


@dataclass(frozen=True)
class TreeEstimate:
    """An estimate, and draws of its errors, (n, n_nodes, n_steps); None where nothing was measured."""

    values: Estimate
    errors: Callable[[int], Floats | None] | None = None


@dataclass(frozen=True)
class TreeEstimates:
    """The estimates of a tree, from noisy sums and public facts.

    pattern: of all levels. small: the level with blocks of its own, if there is one. lower_bound: of every
    leaf, in the unit of the readings.
    """

    pattern: HistoryInformed
    tree: AggregationTree
    small: int | None
    lower_bound: float | None

    def estimate(self, measured: Measured, belief: FilterState, histories: Histories) -> TreeEstimate:
        """Return the posterior mean of every node and its variance; consistent, and not below the bound."""
        steps, near = period_and_nearby_blocks(measured, histories)
        scale, unit = self.pattern.scale_units, float(measured.resolution)
        if self.pattern.counts:
            shared = shared_fit(belief, near, self.tree, self.small, steps, scale)
            fit = fit_counts(shared, near, self.tree, self.small, steps, scale)
            counted = published_counts(fit, measured, self.tree, self.lower_bound)
            if shared is None:
                return TreeEstimate(counted)
            return TreeEstimate(counted, partial(count_draws, shared, near, self.tree, self.small, steps))
        found = fit_tree(belief, near, self.tree, steps, scale)
        if found is None:
            values, variances = nothing_measured(self.tree, len(steps), scale)
        else:
            values, variances = found.series(steps)
        values, variances = values * unit, variances * unit**2
        bound, optimality, unbounded = self.lower_bound, None, None
        if bound is not None and values[self.tree.leaf_indices].min() < bound:
            merged = measured.seen_as(values, variances)
            # a posterior's leaves inform their parents too, so no parent is fixed
            nearest = consistent(merged, self.tree, [], "variance", bound, "joint")
            values, optimality, unbounded = nearest.values, nearest.optimality, values
        estimate = Estimate(values, variances, optimality=optimality, unbounded=unbounded)
        if found is None:
            return TreeEstimate(estimate)
        drawn = found.errors(steps)
        return TreeEstimate(estimate, lambda n: drawn.draws(n) * unit)

    def events(self, measured: Measured, belief: FilterState, histories: Histories) -> tuple[int, ...]:
        """Return the days that were found unlike all others. histories: of the levels with one posterior."""
        steps, near = period_and_nearby_blocks(measured, histories)
        return events_of_tree(belief, near, self.above, steps, self._typical, self._look)

    def refreshed(self, belief: FilterState, histories: Histories, first_step: int) -> FilterState:
        """Return the tree's learned state, learned again when due."""
        tree, scale = self.above, self._typical
        belief = judged_tree(belief, histories, tree, first_step, scale, self._look)
        if not belief.is_due(first_step, self.pattern.relearn_days):
            return belief
        recent = {level: latest(history, MOST_LEARNED) for level, history in histories.items()}
        found = self._look(recent, tree, belief.days, scale, belief.events)
        if found is None:
            return belief
        return belief.taught(found[0], first_step)

    @property
    def above(self) -> AggregationTree:
        """The tree of the levels that have one posterior."""
        return tree_of_common_blocks(self.tree, self.small)

    @property
    def _look(self) -> Look:
        """What is seen of that tree."""
        return seen_counts if self.pattern.counts else seen_tree

    @property
    def _typical(self) -> float | None:
        """The public size of one of its leaves, in units of the resolution."""
        return typical_above(self.tree, self.above, self.pattern.scale_units)


def period_and_nearby_blocks(
    measured: Measured, histories: Histories
) -> tuple[range, dict[int, BlockHistory]]:
    """Return the period's steps, and each level's blocks around them."""
    steps = range(measured.first_step, measured.first_step + measured.n_steps)
    return steps, {level: around(history, steps) for level, history in histories.items()}


# What the levels of a tree measure: common blocks, for which all levels together have headroom.

Levels = tuple[tuple[int, HistoryInformed], ...]
"""Measured levels and their mechanisms, root first."""


def chosen_shares(pattern: HistoryInformed, tree: AggregationTree, wanted: str) -> tuple[Fraction, ...]:
    """Return the shares that the model chooses, one for each level, where `wanted` is "model"."""
    figures = tree_figures(pattern, tree)
    if wanted != "model" or figures.relative_noise is None:
        raise ParameterError(
            'level_shares of HistoryInformedTree must be a list of shares, or "model" with a public '
            f"`scale`; got {wanted!r}" + ("" if wanted != "model" else " without a scale")
        )
    return choose_level_shares(tree, figures)


def tree_figures(pattern: HistoryInformed, tree: AggregationTree) -> Figures:
    """Return the figures for blocks, shares and expected errors, made with the whole stream's model.

    Joint noise required at a level that may not have it raises ParameterError.
    """
    if pattern.figures.relative_noise is None:
        return pattern.figures
    terms = pattern.joint_terms
    joint = tuple(replace(terms, n_nodes=len(level)).allowed(pattern.model) for level in tree.levels)
    return pattern.with_joint(pattern.figures, joint)


def with_the_same_blocks(
    levels: Levels,
    tree: AggregationTree,
    pattern: HistoryInformed,
    shares: tuple[Fraction, ...],
    small: int | None,
) -> Levels:
    """Return the levels' mechanisms, each with its share of epsilon, with the blocks of the tree's plan.

    The level `small` of small counts has blocks of its own. Learned parameters and covariates are the tree's.
    """
    count, length = pattern.blocks.n_blocks, pattern.blocks.length
    figures = tree_figures(pattern, tree)
    if figures.relative_noise is not None:
        count, length = choose_plan_blocks(tree, figures, shares)
    common: dict[str, Any] = {"n_blocks": count, "block_length": length, "relearn_days": 0, "covariates": ()}
    found = [(level, replace(own, **common) if level != small else _small(own)) for level, own in levels]
    sizes = {own.joint_groups.size for _, own in found if own.joint_groups is not None}
    if len(sizes) > 1:  # where noise is small next to the grid some level may have smaller groups alone
        found = [
            (level, replace(own, group_size=min(sizes)) if level != small else own) for level, own in found
        ]
    return tuple(found)


def _small(own: HistoryInformed) -> HistoryInformed:
    """Return the mechanism of small counts: a block of a window has no other to share noise with."""
    count, length = small_blocks(own.model.window_length)
    return replace(
        own,
        n_blocks=count,
        block_length=length,
        relearn_days=0,
        covariates=(),
        noise="laplace",
        group_size=None,
    )


def states_with_parts(
    sets: Sequence[Levels],
    states: Mapping[str, Any],
    others: Sequence[Spend],
    model: PrivacyModel,
    period: range,
) -> dict[str, Any]:
    """Return the levels' states with the blocks to measure: one choice for the tree (Lemma 13).

    A level that read its own past alone would not see the spends of another level, or of another plan's
    shares: two that each have headroom may have none together. Nor would the levels that share their blocks
    see those of a level of small counts in the same night.

    sets: the measured levels, in sets with the same blocks. states: by level. others: the spends of other
    periods near this one, on any level. model: the whole stream's. period: running indices of its steps.
    """
    chosen = layers_with_headroom(
        [_layer(levels, period) for levels in sets],
        period.start, others, model.window_length, model.pure_epsilon,
    )  # fmt: skip
    return {
        str(level): {
            "mechanism": NAME,
            **(states.get(str(level)) or {}),
            PARTS: groups_to_document(groups),
        }
        for levels, groups in zip(sets, chosen, strict=True)
        for level, _ in levels
    }


def _layer(levels: Levels, period: range) -> Layer:
    """Return the common blocks of levels as a layer: every group by itself, at the levels' total charge."""
    joint = [own for _, own in levels if own.joint_groups is not None]
    apart = [own for _, own in levels if own.joint_groups is None]
    groups = (joint or apart)[0].groups(len(period), period.start)
    prices = (sum((own.unit_charge for own in kind), Fraction(0)) for kind in (joint, apart))
    return Layer(groups, *prices)


ELSEWHERE = "elsewhere"
"""In a state: spends that lie on no level that is measured now."""
LEARNED = ("prior", "began", "learned", "events", GUESSED, COVARIATES)
"""The keys of the tree's state besides its levels'; covariates only on the way to a draw."""


@dataclass(frozen=True, init=False)
class HistoryInformedTree(Hierarchical):
    """`Hierarchical` `HistoryInformed`, but all levels are measured at the same blocks and estimated at once.

    A leaf is the sum of a shared and an own part; a node is the sum of its leaves. So a nation's blocks
    sharpen its regions and theirs the nation, as far as the learned prior says, and the exact posterior means
    add up. Where the posterior takes a leaf below `lower_bound`, the least-squares fit to it by its variances
    that respects the bound is published.

    Of counts the leaves may be so small that noise hides them at any block: then the deepest level has one
    block a window of its own, and its leaves are shares of their parents. Sizes are learned apart for busy
    and empty nodes, a count varies around its expectation by as much as that is, and bands are of whole
    numbers.

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
        """Return the expected errors of each level, as `Mechanism.expected_by_level`."""
        figures = tree_figures(self.pattern, self.tree)
        return expected_figures(self.tree, figures, self.level_shares, self.pattern.scale)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return each level's state, from that level's spends, and the tree's learned state."""
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
        """Return the state of the tree before at the nodes of this one (`carried_levels`)."""
        if between.is_renaming:
            return state
        levels, known = level_states(state), _guessed(state)
        if known:
            # guesses at an earlier change, corrected by later blocks
            histories = {int(level): self._belief(own).history for level, own in levels.items() if own}
            corrected = {str(level): one.to_document() for level, one in refined(known, histories).items()}
            levels = {
                level: {**own, "history": corrected[level]} if own else own for level, own in levels.items()
            }
        carried = carried_levels(levels, between)
        return {**state, "levels": carried, GUESSED: guesses(between, first_step)}

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """Return the levels' plans in a row, at blocks for which all levels together have headroom."""
        return super().plan(n_steps, first_step, self._with_parts(state, n_steps, first_step))

    def _with_parts(self, state: State | None, n_steps: int, first_step: int) -> State:
        """Return the state with the blocks that each level measures (`states_with_parts`)."""
        states = level_states(state)
        spent = [one for known in states.values() for one in (known or {}).get("spends", ())]
        others = [spend_from_document(one) for one in (*spent, *(state or {}).get(ELSEWHERE, ()))]
        period = range(first_step, first_step + n_steps)
        chosen = states_with_parts(self._sets_of_levels, states, others, self.model, period)
        return {"mechanism": LEVELS, **(state or {}), "levels": chosen}

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
        """Return the days that were found unlike all others, as `HistoryInformed.events` does."""
        belief, histories = self._known(measured)
        dense = {level: histories[level] for level, _ in self._dense}
        return self._estimates.events(measured, belief, dense)

    def _known(self, measured: Measured) -> tuple[FilterState, dict[int, BlockHistory]]:
        """Return the tree's state before the period, and each level's blocks, the period's included."""
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
        """Compute the release from its measurements, standard errors included; repeatable."""
        return self._with_errors(measured, *self._known(measured))

    def revise(self, measured: Measured, later: Sequence[Measured]) -> Release:
        """Return the same period estimated again, with later measurements."""
        return self._with_errors(measured, *self._known_since(measured, later))

    def _known_since(
        self, measured: Measured, later: Sequence[Measured]
    ) -> tuple[FilterState, dict[int, BlockHistory]]:
        """Return the tree's state after the last of the later periods, and each level's blocks."""
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
        found, errors = estimate.values, estimate.errors
        release = self._release(measured, found.values, np.sqrt(found.variances), found.optimality, errors)
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
        given = {"mechanism": LEVELS, "levels": {}, **(state or {})}
        learned = _learned(replace(self._refreshed(given, first_step), covariates=()).to_document())
        return {**given, **learned, **known, READY: first_step}

    def _refreshed(self, state: State | None, first_step: int) -> FilterState:
        """Return the tree's learned state, learned again when due."""
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
    """Each level's state after a period, cached: all new estimates of a night need that of its newest."""
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
