"""What HistoryInformed measures, from public figures alone: blocks, and levels' shares."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from optstream.history.blocks import Blocks
from optstream.history.counts import tree_above, typical_above
from optstream.history.filter import star
from optstream.history.posterior import Rotation, Seen, TreePosterior
from optstream.history.prior import COMPONENTS, Component, TemporalPrior
from optstream.history.robust import joint_information
from optstream.measurement.blocks import DriftingBlocks, drifting_blocks
from optstream.measurement.ordered import OrderTerms
from optstream.mechanisms.joint import errs_less
from optstream.privacy.rules import Horizon
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def left_out(blocks: DriftingBlocks, n_steps: int) -> float:
    """Return all blocks of the rule over those that lie whole in periods of so many steps, at least 1."""
    places = range(blocks.cycle)
    whole = sum(len(part) == blocks.length for place in places for part in blocks.parts(place, n_steps))
    return blocks.n_blocks * n_steps / whole if whole else math.inf


Layout = tuple[int, int]  # how many blocks a window has, and their steps
Shares = tuple[Fraction, ...]
SINGLE = AggregationTree(("series",), (-1,))
MOST_SERIES = 16  # of plain series that a choice looks at; more change no order

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 96)
LENGTHS = (1, 2, 4)
MOST_BLOCKS = 168  # of a candidate's past, so that a choice takes a second; more past changes no order
MOST_PAST_WINDOWS = 42
AS_GOOD = 0.01  # relative: expected errors that differ by less are one
BLIND_SHARE = 6  # where no public scale is known: a window over this many blocks


@dataclass(frozen=True)
class PlannedNoise:
    """The noise of a block's mean, relative to a series' size, as Laplace noise of its variance. like_group:
    of how many blocks a group of joint noise has shares like it; 1 for Laplace noise."""

    scale: float
    like_group: int = 1

    @property
    def variance(self) -> float:
        return 2.0 * self.scale**2

    def noise_variance(self, model_variance: float) -> float:
        """Return the variance of normal noise with the same information, at this variance of the model."""
        size = self.like_group
        scale = self.scale * float(np.sqrt(6.0 / ((size + 1) * (size + 2))))
        information = joint_information(model_variance, scale, size)
        return float(np.clip(1.0 / information - model_variance, size * scale**2, self.variance))


@dataclass(frozen=True)
class Figures:
    """Public figures that choose blocks and shares. relative_noise: alpha * leaves / (epsilon * scale), of
    the only block of a window; None without a scale. count: a series' size, where readings are counts. joint,
    wanted: for each level, root first, whether its noise may or must be joint. ordinary: steps of a period.
    epsilon, horizon: for comparing it."""

    window_length: int
    steps_per_day: int
    relative_noise: float | None
    n_blocks: int | None = None
    length: int | None = None
    components: tuple[Component, ...] = COMPONENTS
    count: float | None = None
    joint: tuple[bool, ...] = ()
    ordinary: int = 1
    wanted: bool = False
    epsilon: Fraction = Fraction(1)
    horizon: Horizon | None = None

    def noises(self, blocks: Layout, shares: Sequence[float]) -> list[PlannedNoise | None]:
        """Return the noise of the mean of a block at each level, with so much of epsilon; None without."""
        assert self.relative_noise is not None
        n_blocks = blocks[0]

        def is_joint(level: int, share: float) -> bool:
            if not share or level >= len(self.joint) or not self.joint[level] or n_blocks < 2:
                return False
            epsilon = self.epsilon * Fraction(share)
            return self.wanted or errs_less(n_blocks, epsilon, self.window_length, self.horizon)

        joint, more = [is_joint(level, share) for level, share in enumerate(shares)], 1.0
        if any(joint):  # steps that no whole block covers count as more noise, at every level
            rule = drifting_blocks(self.window_length, *blocks, self.steps_per_day)
            more = math.sqrt(left_out(rule, self.ordinary))
        terms = OrderTerms(*blocks)
        kinds = [(terms.deviation, terms.like_group) if one else (float(n_blocks), 1) for one in joint]
        return [
            PlannedNoise(self.relative_noise * charge / share * more, like_group)
            if share and math.isfinite(more)
            else None
            for (charge, like_group), share in zip(kinds, shares, strict=True)
        ]


@lru_cache(maxsize=256)
def choose_blocks(public: Figures, n_series: int = 1) -> Layout:
    """Return (m, L) of so many plain series, which show their shared part together; given ones stay. Of
    equally good ones the most blocks."""
    if public.relative_noise is None:
        count = public.n_blocks or max(1, round(public.window_length / BLIND_SHARE))
        return count, public.length or max(1, min(2, public.window_length // count))
    if n_series == 1:
        return choose_tree_blocks(SINGLE, replace(public, count=None), (Fraction(1),))
    tree, shares = star(min(n_series, MOST_SERIES)), (Fraction(0), Fraction(1))
    below_root = replace(public, count=None, joint=(False, *public.joint))
    choices = [one for one in product(*_layouts(public)) if math.prod(one) <= public.window_length]
    errors = {one: float(_posterior_errors(tree, below_root, shares, one)[1]) for one in choices}
    fitting = [one for one, error in errors.items() if error <= min(errors.values()) * (1.0 + AS_GOOD)]
    count = max(fitting)[0]
    return count, _length(count, {long: error for (own, long), error in errors.items() if own == count})


def _length(count: int, errors: Mapping[int, float]) -> int:
    """Return the shortest of equally good lengths, for no measurement shows the shape within a block; of a
    window's only block the longest, for it sees each hour of the day on few days."""
    best = min(errors.values()) * (1.0 + AS_GOOD)
    fitting = [long for long, error in errors.items() if error <= best] or [min(errors)]
    return max(fitting) if count == 1 else min(fitting)


def _layouts(public: Figures) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers and lengths of blocks that are tried, or the given ones."""
    window = public.window_length
    counts = (public.n_blocks,) if public.n_blocks else (*(m for m in COUNTS if m < window), window)
    return counts, (public.length,) if public.length else LENGTHS


@lru_cache(maxsize=256)
def choose_tree_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Layout:
    """Return (m, L) for all levels, with the least `expected_error_of`; given values stay."""
    if public.n_blocks and public.length:
        return public.n_blocks, public.length
    window, (counts, lengths) = public.window_length, _layouts(public)

    def expected(count: int, long: int) -> float:
        return expected_error_of(tree, public, shares, (count, long)) if count * long <= window else math.inf

    # many blocks are noisy and few see less: the error has one valley over their number, but for numbers
    # by which blocks come at few hours of the day, where a window has several
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        after = counts[middle + 1 : middle + 3]
        if expected(counts[middle], lengths[0]) <= min(expected(one, lengths[0]) for one in after):
            high = middle
        else:
            low = middle + 1
    return counts[low], _length(counts[low], {long: expected(counts[low], long) for long in lengths})


# How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured.

MOST_LOOKED_AT = 4
ROUNDS = 2  # blocks for measuring how much heavy noise the estimate removes (`robust_noise`)


class PlannedBlocks:
    """Blocks that will be known, and the steps of a period, which are judged by them; the rotation is most of
    the work. starts, lengths: of the blocks, clock places and steps, (n,)."""

    def __init__(
        self, prior: TemporalPrior, starts: NDArray[np.int64], lengths: NDArray[np.int64], period: range
    ) -> None:
        self.prior, self.blocks = prior, Blocks.at(starts, lengths, weight=1.0 / lengths)
        self.judged = Blocks.at(np.array(period, dtype=np.int64))
        self.rotation = Rotation.of(prior, self.blocks)


@lru_cache(maxsize=32)
def _planned_blocks(
    window: int, steps_per_day: int, components: tuple[Component, ...], blocks: Layout
) -> PlannedBlocks:
    """Return the blocks of as much past as is looked at, judged by the last window's steps."""
    rule = drifting_blocks(window, *blocks, steps_per_day)
    windows = int(np.clip(MOST_BLOCKS // blocks[0], 2, MOST_PAST_WINDOWS))
    parts = rule.parts(0, windows * window)
    starts = np.array([part.start for part in parts], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    period = range((windows - 1) * window, windows * window)
    return PlannedBlocks(TemporalPrior.broad(steps_per_day, components), starts, lengths, period)


def expected_level_errors(
    plan: PlannedBlocks, tree: AggregationTree, noise: Sequence[PlannedNoise | None]
) -> Floats:
    """Return for each level the root mean square error of a node's step, relative to the node, (n_levels,).
    Leaves are of size 1; noise is None for a level that is not measured. At most `MOST_LOOKED_AT` nodes a
    level are used."""
    variances = [np.inf if one is None else one.variance for one in noise]
    errors = level_errors(plan, tree, variances)
    leaves = leaves_by_level(tree)
    for _ in range(ROUNDS):
        variances = [
            np.inf if one is None else one.noise_variance(float((missed * size) ** 2))
            for one, missed, size in zip(noise, errors, leaves, strict=True)
        ]
        errors = level_errors(plan, tree, variances)
    return errors


def level_errors(plan: PlannedBlocks, tree: AggregationTree, variances: Sequence[float]) -> Floats:
    """Return `expected_level_errors` for normal noise of these variances, relative to a leaf's."""
    looked_at = [
        np.unique(np.linspace(level.start, level.stop - 1, MOST_LOOKED_AT).astype(np.int64))
        for level in tree.levels
    ]
    shape, noise = (len(tree.nodes), plan.blocks.clock.size), np.array(variances)[np.array(tree.depths)]
    seen = Seen(tree, plan.blocks, np.zeros(shape), noise, np.ones(len(tree.leaves)))
    posterior = TreePosterior(plan.prior, seen, plan.rotation)
    found = posterior.variances(plan.judged, np.concatenate(looked_at)).mean(axis=1)
    leaves = posterior.weights[np.concatenate(looked_at), 0]
    relative = np.split(found / leaves**2, np.cumsum([len(nodes) for nodes in looked_at])[:-1])
    return np.asarray(np.sqrt([level.mean() for level in relative]))


SMALL = 0.25
"""A leaf is small above this relative noise, in one block a window (docs/methods/history-informed.md)."""
SMALL_BLOCKS, SMALL_LENGTH = 1, 4
"""Of a window: the mean of fewer blocks is the less noisy, whatever their length."""
SIZES_APART = 1.5  # standard deviation of the logarithm of leaves' sizes, where a choice expects errors
SEEN_DAYS = 56  # of blocks that are known of a leaf, likewise
NODES_OF_SIZES = 40


def small_leaf_level(tree: AggregationTree, public: Figures, level_shares: Sequence[Fraction]) -> int | None:
    """Return the deepest level where its leaves are small counts: their noise, in one block a window, is more
    than `SMALL` of the public `scale`; else None. The level above must be measured, and every leaf above."""
    deepest = tree.n_levels - 1
    noise = public.relative_noise
    if public.count is None or noise is None or not deepest or not level_shares[deepest - 1]:
        return None
    return deepest if noise / level_shares[deepest] > SMALL else None


def figures_above(public: Figures, tree: AggregationTree, above: AggregationTree) -> Figures:
    """Return the figures of the levels above, with the relative noise of a leaf of `above`."""
    leaf = typical_above(tree, above, 1.0)
    if public.relative_noise is None or leaf is None:
        return public
    count = None if public.count is None else public.count * leaf
    return replace(public, relative_noise=public.relative_noise / leaf, count=count)


def expected_small_error(public: Figures, share: Fraction) -> float:
    """Return the expected error of small leaves, relative to the size of a typical one: the mean over
    log-normal sizes of the root of a count's variance and that of its size after `SEEN_DAYS` of blocks."""
    assert public.count is not None
    assert public.relative_noise is not None
    at, weights = np.polynomial.hermite_e.hermegauss(NODES_OF_SIZES)
    sizes = np.exp(SIZES_APART * at - SIZES_APART**2 / 2)
    windows = max(SEEN_DAYS * public.steps_per_day / public.window_length, 1.0)
    noise = 2.0 * (public.relative_noise * SMALL_BLOCKS / float(share)) ** 2 / windows
    missed = np.sqrt(sizes / public.count + sizes**2 * noise / (sizes**2 + noise))
    return float(weights @ missed / weights.sum())


MOVES = (Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32))
"""Parts of epsilon that are tried in other hands, largest first."""
LEAST = Fraction(1, 32)  # of a level that holds leaves, which nothing else measures
BETTER, WORTH_IT = 0.01, 0.03
"""Relative gains: the least that counts, and the least for which unequal shares are chosen."""


@lru_cache(maxsize=64)
def choose_level_shares(tree: AggregationTree, public: Figures) -> Shares:
    """Return the levels' shares, which add up to 1, with the least expected error; 0 where one is derived."""
    blocks_of = partial(choose_plan_blocks, tree, public)

    def error(shares: Shares, blocks: Layout) -> float:
        return _geometric_mean(expected_level_misses(tree, public, shares, blocks))

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


def expected_error_of(tree: AggregationTree, public: Figures, shares: Shares, blocks: Layout) -> float:
    """Return the geometric mean over levels of a node's expected relative error, of leaves of one size."""
    return _geometric_mean(_posterior_errors(tree, public, shares, blocks))


def _geometric_mean(errors: Floats) -> float:
    return float(np.exp(np.log(errors).mean()))


def choose_plan_blocks(tree: AggregationTree, public: Figures, shares: Shares) -> Layout:
    """Return (m, L) of the levels that are measured at common blocks, as `choose_tree_blocks`."""
    above = tree_above(tree, small_leaf_level(tree, public, shares))
    return choose_tree_blocks(above, figures_above(public, tree, above), shares[: above.n_levels])


@lru_cache(maxsize=4096)
def expected_level_misses(tree: AggregationTree, public: Figures, shares: Shares, blocks: Layout) -> Floats:
    """Return the errors of `expected_error_of` by level, (n_levels,), blocks being those of shared levels."""
    small = small_leaf_level(tree, public, shares)
    above = tree_above(tree, small)
    figures = figures_above(public, tree, above)
    errors = _posterior_errors(above, figures, shares[: above.n_levels], blocks)
    if small is None:
        return errors
    return np.append(errors, expected_small_error(public, shares[small]))


def misses_unmeasured(tree: AggregationTree, public: Figures) -> Floats:
    """Return `expected_level_misses` without any measurement: by the prior and the public scale alone."""
    prior = TemporalPrior.broad(public.steps_per_day, public.components)
    shared, own = prior.variances(Blocks.at(np.zeros(1, dtype=np.int64)))
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
def _posterior_errors(tree: AggregationTree, public: Figures, shares: Shares, blocks: Layout) -> Floats:
    noise = public.noises(blocks, [float(share) for share in shares])
    planned = _planned_blocks(public.window_length, public.steps_per_day, public.components, blocks)
    errors = expected_level_errors(planned, tree, noise)
    if public.count is None:
        return errors
    leaves = leaves_by_level(tree)
    variances = np.array([np.inf if one is None else one.variance for one in noise]) / leaves**2
    return _count_error(errors, 1.0 / (public.count * leaves), variances, blocks, public.window_length)


def _count_error(
    errors: Floats, counted: Floats, noise: Floats, blocks: Layout, window_length: int
) -> Floats:
    """Return the expected relative errors of counts of variance `counted`, given those of expectations."""
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
