"""Counts at every node of a tree: levels above by one posterior, small leaves as shares of their parents."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.estimation.estimate import UNKNOWN, Estimate
from optstream.estimation.least_squares import consistent, project
from optstream.estimation.problem import LeastSquares
from optstream.estimation.replicates import keys_of, normals
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.draws import OWN, prior_draws
from optstream.history.filter import (
    SAME,
    SCALE_DEVIATION,
    FilterState,
    Fitted,
    Histories,
    common_blocks,
    nothing_measured,
    seen_tree,
    step_blocks,
)
from optstream.history.posterior import Seen, TreePosterior, pass_over_tree
from optstream.history.prior import TemporalPrior
from optstream.history.self_check import (
    ALIKE,
    EXACT_LATEST,
    LARGEST_FACTOR,
    fitted_factor,
    hour_factors,
)
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Sizes of nodes: learned from noisy measurements of all nodes of a level, by empirical Bayes.

GRID_POINTS = 80
LEAST_RATIO, FEWEST = 1e-3, 4
"""Ratios of a node's size to the mean of its siblings in the mixture, in addition to 0: from the least up to
the number of siblings, or this many, for the mean is known by the parent alone."""
WIDTH = 0.1  # standard deviation of an atom's sizes, relative to it: half the way to its neighbours
ROUNDS = 300
BELIEF = 2.0  # weight, in nodes, of the prior that all ratios of the grid are equally likely
FINE = 20.0  # cells for each standard error, and each factor e of a typical size: nodes in one cell are one
NOT_MEASURED = 1e12  # times the variance by all else: that of a node that was not measured
SURE = 1e-9  # of the noise's variance: the least variance of a size
LEAST_SIZE, LEAST_SHARE = 1e-6, 1e-4
"""Of a leaf, in counts, and of all leaves together: a size of 0 would be known to stay 0."""


def sizes_by_mixture(
    observed: Floats, variances: Floats, typical: Floats, parents: Integers
) -> tuple[Floats, Floats]:
    """Return posterior means, at least 0, and variances of sizes under the ratios that make them most likely.

    Maximum likelihood on a grid, by EM, joined with a few nodes' weight of an even distribution. observed,
    variances: (n,), noisy sizes, and of their noise. typical: (n,), the mean of each node's siblings, itself
    included. parents: (n,), their numbers. Source: Kiefer and Wolfowitz 1956; Jiang and Zhang 2009.
    """
    largest = max(FEWEST, int(np.bincount(parents).max()))
    atoms = np.concatenate([[0.0], np.geomspace(LEAST_RATIO, largest, GRID_POINTS)])
    deviation = np.sqrt(variances)
    seen, unit = (observed / deviation)[:, None], (typical / deviation)[:, None]
    cells = np.rint(FINE * np.hstack([seen, np.log(unit)]))
    cells, counts = np.unique(cells, axis=0, return_counts=True)
    likely = _likelihood(cells[:, :1] / FINE, np.exp(cells[:, 1:] / FINE) * atoms)
    weights = np.full(atoms.size, 1.0 / atoms.size)
    for _ in range(ROUNDS):
        weights = weights * ((counts / (likely @ weights)) @ likely) + BELIEF / atoms.size
        weights /= weights.sum()
    centres = unit * atoms
    shares = _likelihood(seen, centres) * weights
    shares /= shares.sum(axis=1, keepdims=True)
    wide = (WIDTH * centres) ** 2
    own = (centres + wide * seen) / (1.0 + wide)
    means = (shares * own).sum(axis=1)
    spread = (shares * ((own - means[:, None]) ** 2 + wide / (1.0 + wide))).sum(axis=1)
    return np.maximum(means, 0.0) * deviation, spread * variances


def _likelihood(observed: Floats, centres: Floats) -> Floats:
    """Return the density of observations, in standard errors, (n, n_atoms), up to a factor for each row."""
    spread = 1.0 + (WIDTH * centres) ** 2
    logs = -0.5 * ((observed - centres) ** 2 / spread + np.log(spread))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _joined_upwards(
    tree: AggregationTree, means: Floats, variances: Floats, total: Floats, spread: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Join each node with the sum of its children: its mean and variance, and those of the sum. total,
    spread: (n_nodes,), sums of children that are not in the tree, and their variances."""
    above, total, spread = np.array(tree.parents), total.copy(), spread.copy()
    joined, left = means.copy(), variances.copy()
    for level in reversed(tree.levels):
        at = slice(level.start, level.stop)
        below = np.where(spread[at] > 0.0, spread[at], np.inf)
        left[at] = 1.0 / (1.0 / variances[at] + 1.0 / below)
        joined[at] += left[at] / below * (total[at] - means[at])
        if level.start:
            np.add.at(total, above[at], joined[at])
            np.add.at(spread, above[at], left[at])
    return joined, left, total, spread


def joined_sizes(
    sizes: Floats,
    size_variances: Floats,
    parents: Integers,
    tree: AggregationTree,
    means: Floats,
    mean_variances: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Return leaves' sizes joined with those of the nodes above: sizes, variances and u, (n_leaves,) each. By
    least squares: with D the sum of siblings' variances d, and v that of their parent's mean by all else,
    their covariance is diag(d) - u u', u = d / sqrt(D + v)."""
    of_leaves, of_spread = (
        np.asarray(np.bincount(parents, one, len(means)), float) for one in (sizes, size_variances)
    )
    joined, left, total, spread = _joined_upwards(tree, means, mean_variances, of_leaves, of_spread)
    above, others, variances = np.array(tree.parents), means.copy(), mean_variances.copy()
    for level in tree.levels[1:]:
        at, up = slice(level.start, level.stop), above[level.start : level.stop]
        rest = variances[up] + spread[up] - left[at]
        variances[at] = 1.0 / (1.0 / mean_variances[at] + 1.0 / rest)
        others[at] += variances[at] / rest * (others[up] - total[up] + joined[at] - means[at])
    share = size_variances / (of_spread + variances)[parents]
    found = np.maximum(sizes + share * (others - of_leaves)[parents], 0.0)
    return found, size_variances * (1.0 - share), np.sqrt(size_variances * share)


def node_sizes(
    tree: AggregationTree, observed: Floats, variances: Floats, scale: float | None
) -> tuple[Floats, Floats]:
    """Return the leaves' sizes, above 0, and the variances of all nodes' sizes, from noisy means of nodes.
    Relative sizes come from one mixture for each level; leaves and inner nodes are joined by least squares.
    variances: (n_nodes,), of the noise; inf where a node was not measured."""
    leaves = tree.leaf_indices
    if len(tree.nodes) == 1:
        return np.maximum(observed, np.maximum(0.1 * np.sqrt(variances), LEAST_SIZE)), variances
    measured, spread = np.where(np.isfinite(variances), observed, 0.0), variances.copy()
    typical = _typical(tree, _fit(tree, measured, variances), 1.0 / variances, scale)[leaves]
    above = np.array(tree.parents)
    for depth in np.unique(tree.depths[leaves]):
        at = tree.depths[leaves] == depth
        nodes = leaves[at]
        of_level = observed[nodes], variances[nodes], typical[at], above[nodes]
        measured[nodes], spread[nodes] = sizes_by_mixture(*of_level)
    spread[leaves] = np.maximum(spread[leaves], SURE * variances[leaves])
    least = LEAST_SHARE * measured[leaves].sum() + LEAST_SIZE
    sizes, none = _fit(tree, measured, spread)[leaves], np.zeros(len(spread))
    return np.maximum(sizes, least), _joined_upwards(tree, none, spread, none, none)[1]


def _fit(tree: AggregationTree, values: Floats, variances: Floats) -> Floats:
    """Return the least-squares fit that adds up, (n_nodes,)."""
    problem = LeastSquares(np.eye(1), values[:, None], 1.0 / variances[:, None])
    return np.asarray(project(problem, tree)[:, 0])


def _typical(tree: AggregationTree, means: Floats, precision: Floats, scale: float | None) -> Floats:
    """Return the mean of each node's siblings, (n_nodes,), above 0, by the parent and the scale."""
    known = precision + 1.0 / tree.add_up(1.0 / precision[tree.leaf_indices][:, None])[:, 0]
    pulled = means * known
    if scale is not None:
        guess = scale * tree.leaves_below
        known = known + 1.0 / (SCALE_DEVIATION * guess) ** 2
        pulled = pulled + guess / (SCALE_DEVIATION * guess) ** 2
    children = np.bincount(np.array(tree.parents)[1:], minlength=len(tree.nodes))
    found = np.maximum(pulled / known, 0.1 / np.sqrt(known)) / np.maximum(children, 1)
    return np.asarray(found[list(tree.parents)])


def seen_counts(
    histories: Histories,
    tree: AggregationTree,
    days: PublicDays,
    scale: float | None,
    events: Iterable[int] = (),
) -> tuple[Seen, Floats, Floats, Floats] | None:
    """Return `seen_tree` of a tree of counts, the leaves' sizes, and variances of each node's size by itself,
    or None. The noise of a block includes the variation of counts."""
    known = seen_tree(histories, tree, days, scale, events)
    if known is None:
        return None
    seen, first = known
    steps = seen.blocks.lengths * seen.blocks.weight
    values = seen.residuals + tree.add_up(first[:, None]) * steps
    information = float(steps @ steps)
    own = seen.noise / information
    sizes, size_variances = node_sizes(tree, values @ steps / information, own, scale)
    alone = np.minimum(own, NOT_MEASURED * size_variances)
    alone[tree.leaf_indices] = size_variances[tree.leaf_indices]
    means = tree.add_up(sizes[:, None])
    noise = seen.noise + float(np.mean(steps * seen.blocks.weight)) * means[:, 0]
    found = replace(seen, residuals=values - means * steps, noise=noise, sizes=sizes)
    return found, sizes, size_variances, alone


# Leaves that are small next to their noise: shares of a well-known parent, with days of their own.

STRENGTHS = np.geomspace(0.25, 16.0, 7)
"""Of leaves' own parts, relative to those of their parents, that are tried."""
STRENGTH_DEVIATION = 1.0  # of the logarithm of that, around 0
DISPERSIONS = (0.0, 1 / 16, 1 / 4, 1.0, 4.0)
"""Variances of a count beyond its expectation, relative to that squared, that are tried."""
LEAST_SHAPE = 0.05  # least part of a parent's mean at a step, so that no step's leaves are all known to be 0


@dataclass(frozen=True, eq=False)
class LeafBlocks:
    """Noisy sums of the leaves over the same blocks, (n_leaves, n_blocks), of variance `noise`. parents:
    (n_leaves,), rows of the parents' series. above: the tree of these, with the variances of their means."""

    starts: Integers
    lengths: Integers
    sums: Floats
    noise: float
    parents: Integers
    above: AggregationTree
    mean_variances: Floats


@dataclass(frozen=True, eq=False)
class Family:
    """Leaves of one parent, in the eigenbasis of their own parts. spectrum: (n_blocks,), variances of the
    modes. residuals: (m, n_blocks). across: (n_steps, n_blocks), covariance of target steps and modes."""

    leaves: Integers
    blocks: Blocks
    spectrum: Floats
    basis: Floats
    residuals: Floats
    across: Floats


@dataclass(frozen=True, eq=False)
class LeafEstimate:
    """The leaves, estimated from blocks and parents. means: (n_leaves, n_steps), expected counts. variances:
    of these, dispersion included. sizes: (n_leaves,). joined: u of `joined_sizes`. measured: variances of
    sizes by each leaf's own blocks alone. noise: of each block, variation of counts included. factor: by how
    much the model's variances fall short. strength: of the own parts. dispersion: of `DISPERSIONS`. shape:
    (n_parents, n_steps), the parents' series over their means. rest: as in `CountsFit`."""

    blocks: LeafBlocks
    means: Floats
    variances: Floats
    sizes: Floats
    size_variances: Floats
    joined: Floats
    measured: Floats
    noise: Floats
    factor: float
    strength: float
    dispersion: float
    shape: Floats
    families: list[Family]
    rest: Floats

    @property
    def shares(self) -> Floats:
        """The expected share of each leaf in its parent's counts of a period, (n_leaves, n_parents)."""
        of_leaves = np.eye(len(self.shape))[self.blocks.parents] * self.means.sum(axis=1)[:, None]
        return np.asarray(of_leaves / np.maximum(of_leaves.sum(axis=0), 1e-300))


def estimate_leaves(
    blocks: LeafBlocks, parents: Floats, first: int, targets: range, prior: TemporalPrior, days: PublicDays
) -> LeafEstimate:
    """Estimate the leaves at the target steps from their blocks and their parents' posterior means.

    A leaf is s_i q_p(t) (1 + a g_i(t)): q_p its parent's series over its mean; s_i its size, by
    `sizes_by_mixture` and `joined_sizes`; g_i its own part; a and the dispersion of counts, independent from
    step to step, the likeliest for all leaves. But for sizes parents are taken as known. Time n_blocks^3 for
    each parent and leaves times n_blocks^2. parents: (n_parents, n_all), posterior means from running step
    `first` on.
    """
    means = np.maximum(parents.mean(axis=1), 1e-12)
    shape, own = np.maximum(parents / means[:, None], LEAST_SHAPE), blocks.parents
    running = np.concatenate([np.zeros((len(shape), 1)), np.cumsum(shape, axis=1)], axis=1)
    start = blocks.starts - first
    cover = running[:, start + blocks.lengths] - running[:, start]
    info = (cover**2).sum(axis=1)
    observed, spread = (blocks.sums * cover[own]).sum(axis=1) / info[own], blocks.noise / info[own]
    typical = (means / np.maximum(np.bincount(own, minlength=len(means)), 1))[own]
    alone = sizes_by_mixture(observed, spread, typical, own)
    sizes, size_variances, joined = joined_sizes(*alone, own, blocks.above, means, blocks.mean_variances)
    left = blocks.sums - sizes[:, None] * cover[own]
    noise = blocks.noise + sizes * cover.mean(axis=1)[own]
    own_prior, asked = own_parts(prior), step_blocks(targets, days)
    families, clock = [], days.clock(blocks.starts)
    for parent in np.unique(own):
        leaves, weight = np.flatnonzero(own == parent), cover[parent] / blocks.lengths
        seen = Blocks.at(clock, blocks.lengths, kinds=days.kinds(clock), weight=weight)
        spectrum, basis = np.linalg.eigh(own_prior.covariances(seen, seen)[1])
        across = own_prior.covariances(asked, seen)[1] @ basis
        families.append(Family(leaves, seen, np.maximum(spectrum, 0.0), basis, left[leaves] @ basis, across))
    single = sizes**2 * ((cover**2).mean(axis=1) / blocks.lengths.mean())[own]
    strength, dispersion = _strength_and_dispersion(families, sizes, noise, single)
    noise, before = noise + dispersion * single, own_prior.variances(asked)[1]
    bent, own_variances = np.zeros((2, len(sizes), len(targets)))
    unexplained = np.empty_like(left)
    for one in families:
        power = (strength * sizes[one.leaves, None]) ** 2
        with_noise = power * one.spectrum + noise[one.leaves, None]
        unexplained[one.leaves] = (noise[one.leaves, None] / with_noise * one.residuals) @ one.basis.T
        bent[one.leaves] = (power * one.residuals / with_noise) @ one.across.T
        own_variances[one.leaves] = power * np.maximum(before - (power / with_noise) @ (one.across**2).T, 0.0)
    model_variance = (size_variances[:, None] + own_variances.mean(axis=1, keepdims=True)) * cover[own] ** 2
    factor = fitted_factor(left**2, blocks.noise, model_variance + (noise - blocks.noise)[:, None])
    shape = shape[:, targets.start - first : targets.stop - first]
    found = np.maximum((sizes[:, None] + bent) * shape[own], 0.0)
    variances = factor * (size_variances[:, None] + own_variances) * shape[own] ** 2 + dispersion * found**2
    of_sizes = sizes, size_variances, joined, noise / info[own]
    rest = unshrunk_sizes(unexplained, cover[own], noise, size_variances + joined**2)
    learned = factor, strength, dispersion
    return LeafEstimate(blocks, found, variances, *of_sizes, noise, *learned, shape, families, rest)


def unshrunk_sizes(unexplained: Floats, cover: Floats, noise: Floats, variances: Floats) -> Floats:
    """Return what sizes lack to be unbiased, the variance that it adds, and the whole variance, (3, n): the
    mean of what the fit leaves unexplained. unexplained: (n, n_blocks). cover: the blocks' sums where the
    size is 1. noise: (n,), of a block. variances: of the sizes."""
    cover_of_all = cover.sum(axis=-1)
    whole = np.maximum(noise * unexplained.shape[1] / cover_of_all**2, variances)
    return np.stack([unexplained.sum(axis=1) / cover_of_all, whole - variances, whole])


def own_parts(prior: TemporalPrior) -> TemporalPrior:
    """Return the prior of leaves' own parts, without those of sizes and hours, which are known otherwise."""
    logs = prior.logs.copy()
    logs[1] = -30.0
    return TemporalPrior(logs, prior.steps_per_day, prior.components)


def _strength_and_dispersion(
    families: list[Family], sizes: Floats, noise: Floats, single: Floats
) -> tuple[float, float]:
    """Return the strength of the own parts, and the dispersion, under which the residuals are most likely.

    single: (n_leaves,), the variance of a block's count for a dispersion of 1.
    """

    def score(pair: tuple[float, float]) -> float:
        strength, dispersion = pair
        found, noises = -0.5 * float(np.log(strength) / STRENGTH_DEVIATION) ** 2, noise + dispersion * single
        for one in families:
            seen = (strength * sizes[one.leaves, None]) ** 2 * one.spectrum + noises[one.leaves, None]
            found -= 0.5 * float((one.residuals**2 / seen + np.log(seen)).sum())
        return found

    return max(product(STRENGTHS.tolist(), DISPERSIONS), key=score)


# The variation of counts around their expectations, by their own measurements.

LEAST_EXPECTED = 1e-9  # counts: least expectation of a leaf
MOST_KNOWN = 1.0 - 1e-12  # nothing is known to the last digit: errors are divided by the residual variance


@dataclass(frozen=True, eq=False)
class Variation:
    """The variation of counts, by the blocks that hold them. moved: (n_nodes, n_steps), estimated counts less
    their expectation. known: the known part of a count's variation, below 1. known_expected: the relative
    decrease of an expectation's uncertainty. noise: (n_nodes,), inf where not measured. counted: (n_leaves,
    n_blocks), variances of leaves' counts. cover: (n_steps, n_blocks). parts: (n_leaves, n_steps), a step's
    expected part of its block."""

    moved: Floats
    known: Floats
    known_expected: Floats
    noise: Floats
    counted: Floats
    cover: NDArray[np.bool_]
    parts: Floats


def count_variation(tree: AggregationTree, expected: Floats, histories: Histories, steps: range) -> Variation:
    """Return the variation of counts, given their expectations, (n_nodes, n_steps), and all levels' blocks.

    A count is its expectation x plus p, of variance x and mean 0, independent between steps and leaves;
    measured is x + p plus noise of variance n. So E[p | residual] follows by `pass_over_tree`: of a single
    series r e, r = x / (x + n), and the error of x + p has the variance (1 - r)^2 v + (1 - r) x, v that of x;
    of a tree nearly so: roots within 3 %, leaves of very unequal sizes within 15. Within a block each
    leaf's p is divided by its expectation.
    """
    within = {level: one.between(steps.start, steps.stop) for level, one in histories.items()}
    blocks, below = next(iter(within.values())), tree.leaf_indices
    sums, noise = np.zeros((len(tree.nodes), blocks.n_blocks)), np.full(len(tree.nodes), np.inf)
    for level, history in within.items():
        at = slice(tree.levels[level].start, tree.levels[level].stop)
        sums[at] = history.sums
        if blocks.n_blocks:
            noise[at] = 2.0 * np.mean(history.scales**2)
    running = np.arange(steps.start, steps.stop)[:, None]
    cover = (running >= blocks.starts) & (running < blocks.starts + blocks.lengths)
    surprises = np.where(np.isfinite(noise)[:, None], sums - expected @ cover, 0.0)[None]
    leaves = np.maximum(expected[below], LEAST_EXPECTED)
    moved = pass_over_tree(tree, leaves @ cover, noise, surprises).means[0]
    # an estimated count varies as if it had been expected: it may be a day unlike others
    counted = np.maximum(leaves @ cover + moved[below], LEAST_EXPECTED)
    known = pass_over_tree(tree, counted, noise, surprises)
    explained = np.clip(1.0 - known.variances / known.prior, 0.0, MOST_KNOWN)
    every = tree.add_up(leaves)
    # blocks are disjoint: each of a block's steps has the block's value
    of_blocks = every @ cover @ cover.T
    parts = every / np.where(of_blocks > 0.0, of_blocks, np.inf)
    known_of_steps = explained @ cover.T * parts
    of_single = cover[:, blocks.lengths == 1].any(axis=1)
    every_moved = tree.add_up(moved[below] @ cover.T * parts[below])
    return Variation(
        every_moved, known_of_steps, known_of_steps * of_single, noise, counted, cover, parts[below]
    )


# How far a posterior of counts can be trusted at each level: from the coverage of its bands.

SHARES = np.array([0.5, 0.68, 0.8, 0.9, 0.95])  # of the bands that are looked at
LEAST_FACTOR = 0.4
BELIEVED, HELD_BELIEF = 1.1, 10.0  # the prior factor, and its weight in surprises
HELD_GRID_POINTS = 60
NORMAL_PARTS = np.linspace(0.005, 0.995, 34)
"""Of a variance, the rest that of Laplace noise: where bands of the sum of both are computed."""
HALVINGS = 40


def level_factors(posterior: TreePosterior) -> Floats:
    """Return for each node the factor of its level's variances under which bands have their coverage.

    A band around the prediction by all other blocks should hold a measured value as often as its level: the
    factor is the one under which the mean coverage over `SHARES` is right, each value weighted by the share
    of its variance that is not noise, joined with a prior. A level that was not measured has that of the next
    one below it, whose errors its own add up; 1 where there is none. A value errs
    by Laplace noise and by a normal part, the variation of counts and all joint noise: the more of it is
    Laplace noise, the more lies near 0. By coverage and not by mean squares: a few wild days widen no others.
    """
    seen = posterior.seen
    surprise, spread = posterior.left_out(EXACT_LATEST)
    ordinary = seen.blocks.events == 0
    ordinary[:-EXACT_LATEST] = False
    varied = np.mean(seen.blocks.lengths * seen.blocks.weight**2) * posterior.weights[:, 0]
    found, normal = np.ones(len(seen.noise)), np.minimum(varied, seen.noise)
    if seen.like_group is not None:
        normal = np.where((seen.like_group > 1).any(axis=1), seen.noise, normal)
    below = 1.0
    for level in reversed(seen.tree.levels):
        at = slice(level.start, level.stop)
        noise = seen.noise[at, None]
        if np.isfinite(noise).all() and ordinary.any():
            model_variance = np.maximum(spread[at][:, ordinary] - noise, 0.0)
            missed = np.abs(surprise[at][:, ordinary])
            below = _level_factor(missed, noise, normal[at, None], model_variance)
        found[at] = below
    return found


def _level_factor(surprise: Floats, noise: Floats, normal: Floats, model_variance: Floats) -> float:
    logs = np.linspace(np.log(LEAST_FACTOR), np.log(LARGEST_FACTOR), HELD_GRID_POINTS)
    shares = model_variance / (noise + model_variance)
    weight, usual = float(shares.sum()), model_variance.mean(axis=1, keepdims=True)
    coverage = []
    for one in np.exp(logs):
        edges = band_edges((normal + one * usual) / (noise + one * usual))
        inside = surprise <= edges * np.sqrt(noise + one * model_variance)
        coverage.append(float((inside * shares).sum()) / SHARES.size)
    # coverage rises with the factor but for ties, which must not stop the search
    rising = np.array(coverage) / max(weight, 1e-300) + 1e-9 * np.arange(logs.size)
    shown, count = float(np.interp(SHARES.mean(), rising, logs)), weight / ALIKE
    return float(np.exp((count * shown + HELD_BELIEF * np.log(BELIEVED)) / (count + HELD_BELIEF)))


def band_edges(normal: Floats) -> Floats:
    """Return the edges of bands of `SHARES`, in standard deviations, by the normal part of the variance."""
    return np.stack([np.interp(normal, NORMAL_PARTS, row) for row in _edges()])


@lru_cache(maxsize=1)
def _edges() -> Floats:
    """Return the edges at `NORMAL_PARTS`, (n_shares, n_parts), by halving. A normal plus a Laplace value, of
    total variance 1, lies within an edge e with probability 2 Phi(e / s) - 1 - near + far, s the normal's
    standard deviation."""
    deviation, scale = np.sqrt(NORMAL_PARTS), np.sqrt((1.0 - NORMAL_PARTS) / 2.0)
    ratio, low = deviation / scale, np.zeros((SHARES.size, NORMAL_PARTS.size))
    high = np.full_like(low, 8.0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        at = middle / deviation
        near = np.exp(0.5 * ratio**2 - middle / scale + scipy.special.log_ndtr(at - ratio))
        far = np.exp(0.5 * ratio**2 + middle / scale + scipy.special.log_ndtr(-at - ratio))
        less = 1.0 - 2.0 * scipy.special.ndtr(-at) - near + far < SHARES[:, None]
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return 0.5 * (low + high)


# Every node's counts at the steps of a period, and draws of their errors.

SHARED_VARIANCE = 0.02  # of a small leaf's variance as a count: its least variance in the fit with its parent
LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class CountsFit:
    """Every node's expected counts, before they add up.

    means: (n_nodes, n_steps), expected counts, plus their estimated variation. variances: of the
    expectations. given: those by which nodes give way to each other. count_variances: residual variance of a
    count whose expectation is 1. n_normal: how many nodes, the first ones, have a normal posterior, which may
    lie below 0. shape: expected counts where a node's size is 1. rest: (3, n_nodes), `unshrunk_sizes`. draws:
    makes n draws of the errors, (n, n_nodes, n_steps); None where leaves were not measured.
    """

    means: Floats
    variances: Floats
    given: Floats
    count_variances: Floats
    n_normal: int
    shape: Floats
    rest: Floats
    draws: Callable[[int], Floats] | None = None

    @property
    def unshrunk(self) -> tuple[Floats, Floats]:
        """Estimates whose sums over time are unbiased, and variances of their sums, (n_nodes, n_steps)."""
        rest, _, whole = self.rest[:, :, None]
        return self.means + rest * self.shape, whole * self.shape**2

    def unshrunk_draws(self, tree: AggregationTree, n: int) -> Floats:
        """Return draws of the errors of `unshrunk` where it adds up, (n, n_nodes, n_steps)."""
        assert self.draws is not None
        _, more, whole = self.rest[:, :, None]
        drawn = np.sqrt(more) * normals(REST, np.arange(n), keys_of(tree.nodes)[:, None])
        problem = LeastSquares(np.eye(n), drawn, np.broadcast_to(1.0 / whole, drawn.shape))
        return self.draws(n) + project(problem, tree).T[:, :, None] * self.shape


def tree_above(tree: AggregationTree, small: int | None) -> AggregationTree:
    """Return the tree without its levels from `small`, above 0, on: nodes in the same order."""
    if small is None:
        return tree
    stop = tree.levels[small].start
    return AggregationTree(tree.nodes[:stop], tree.parents[:stop])


def typical_above(tree: AggregationTree, above: AggregationTree, scale: float | None) -> float | None:
    """Return the public size of a typical leaf of `above`, the first levels of `tree`."""
    if scale is None or above is tree:
        return scale
    return scale * len(tree.leaves) / len(above.leaves)


@dataclass(frozen=True, eq=False)
class SharedFit:
    """The posterior of the levels that share blocks. of_nodes: (n_nodes, 1), sizes. factors: (n_nodes,), of
    the posterior's variances. excess_variances: (n_nodes, 1), of sizes beyond the posterior.
    own_size_variances: (n_nodes,), of each node's size without the nodes below it. rest: as in
    `CountsFit`."""

    tree: AggregationTree
    measured: Histories
    found: Fitted
    days: PublicDays
    events: tuple[int, ...]
    of_nodes: Floats
    factors: Floats
    excess_variances: Floats
    own_size_variances: Floats
    rest: Floats

    def shape(self, means: Floats) -> Floats:
        """Return the root's expected counts over its size, (n_steps,), of all nodes', (n_nodes, n_steps)."""
        return np.asarray(np.maximum(means[0] / self.of_nodes[0], LEAST_SHAPE))

    def raised(self, expected: Floats, varied: Variation) -> Floats:
        """Return the ratio of estimated counts to their expectations, (n_nodes, n_steps)."""
        return np.maximum(1.0 + varied.moved / np.maximum(expected, LEAST_SHAPE * self.of_nodes), 0.0)

    def excess_variances_with(self, leaves: LeafEstimate) -> Floats:
        """Return `excess_variances` joined with what small leaves' own blocks show, (n_nodes, 1)."""
        of_leaves = leaves.factor * leaves.measured
        measured = np.bincount(leaves.blocks.parents, of_leaves, len(self.excess_variances))
        measured = np.where(measured > 0.0, measured, np.inf)[self.tree.leaf_indices, None]
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 / self.excess_variances + 1.0 / self.tree.add_up(measured)))

    def leaf_blocks(
        self, tree: AggregationTree, small: int, history: BlockHistory, steps: range
    ) -> tuple[LeafBlocks, Floats, int] | None:
        """Return small leaves' blocks of the latest noise, and their parents' counts from a step on."""
        history = history.chosen(np.abs(history.scales / history.scales[-1:] - 1.0) < SAME)
        # of earlier days, which the fit of the parents does not read, its means are worth nothing
        day = self.days.steps_per_day
        seen = self.found.posterior.seen.blocks.clock
        history = history.chosen(self.days.clock(history.starts) // day >= int(seen.min()) // day)
        if not history.n_blocks:
            return None
        first = min(int(history.starts.min()), steps.start)
        stop = max(int((history.starts + history.lengths).max()), steps.stop)
        means = self.of_nodes + self.found.means(step_blocks(range(first, stop), self.days, self.events))
        past = np.maximum(means, LEAST_SHAPE * self.of_nodes)
        parents = np.array(tree.parents)[list(tree.levels[small])]
        noise, sums = 2.0 * float(history.scales[-1]) ** 2, history.sums.astype(np.float64)
        blocks = history.starts, history.lengths, sums, noise, parents
        return LeafBlocks(*blocks, self.tree, self.own_size_variances), past, first


def shared_fit(
    belief: FilterState,
    histories: Histories,
    tree: AggregationTree,
    small: int | None,
    steps: range,
    scale: float | None,
) -> SharedFit | None:
    """Return the posterior of the levels that share their blocks, with sizes of `seen_counts`, or None."""
    above = tree_above(tree, small)
    dense = {level: history for level, history in histories.items() if level != small}
    known = seen_counts(dense, above, belief.days, typical_above(tree, above, scale), belief.events)
    if known is None:
        return None
    seen, sizes, size_variances, alone = known
    found, events = belief.answer(seen, steps)
    factors = level_factors(found.posterior) / found.factor
    # variances of sizes beyond the prior's constant part, a leaf's own part
    _, _, of_shared, of_own, _ = found.posterior.prior.parameters[0]
    of_nodes, expected = above.add_up(sizes[:, None]), of_own * above.add_up(sizes[:, None] ** 2)
    inner = np.setdiff1d(np.arange(len(above.nodes)), above.leaf_indices)
    expected[inner] += of_shared * of_nodes[inner] ** 2
    excess = np.asarray(np.maximum(size_variances[:, None] - expected, 0.0))
    measured = common_blocks(dense)
    # what the posterior leaves unexplained of its values is their noise times its pulls
    own, cover = found.published, seen.blocks.lengths * seen.blocks.weight
    unexplained = np.where(own.known, own.seen.noise[:, None], 0.0) * (own.pulls @ own.basis.T)
    rest = unshrunk_sizes(unexplained, cover, own.seen.noise, size_variances)
    rest[:2, inner] = 0.0  # their sizes are drawn to nothing
    rest[2, inner] = np.where(own.known[inner, 0], size_variances[inner], np.inf)
    return SharedFit(above, measured, found, belief.days, events, of_nodes, factors, excess, alone, rest)


def fit_counts(
    belief: FilterState,
    histories: Histories,
    tree: AggregationTree,
    small: int | None,
    steps: range,
    scale: float | None,
) -> CountsFit:
    """Estimate every node's counts at these running steps from the blocks of all measured levels.

    Levels that share their blocks have one posterior, widened level by level; the level `small` has
    `estimate_leaves`; `count_variation` adds a count's own measurement. Where nothing was measured, `scale`,
    or 0, with `UNKNOWN` variance.
    """
    shared = shared_fit(belief, histories, tree, small, steps, scale)
    if shared is None:
        means, unknown = nothing_measured(tree, len(steps), scale)
        ones, rest = np.ones_like(means), np.zeros((3, len(means)))
        rest[2] = 1.0
        return CountsFit(means, unknown, unknown, ones, len(means), ones, rest)
    moved, variances = shared.found.series(step_blocks(steps, shared.days, shared.events))
    expected = shared.of_nodes + moved
    varied = count_variation(shared.tree, expected, shared.measured, steps)
    means, left, n_above = expected + varied.moved, 1.0 - varied.known, len(expected)
    factors = shared.factors[:, None]
    if not shared.found.posterior.prior.hours.size:
        # not less than 1: counts of small hours have bands that 0 cuts
        factors = factors * np.maximum(hour_factors(expected, variances * factors), 1.0)

    def variances_with(of_sizes: Floats) -> Floats:
        whole = variances * factors + of_sizes * shared.shape(expected) ** 2
        return whole * (1.0 - varied.known_expected) ** 2

    alone = variances_with(shared.excess_variances)
    given, draws = alone + LEAST_VARIANCE, partial(_draws, shared, factors, expected, varied, tree, steps)
    shape, rest = np.broadcast_to(shared.shape(expected), means.shape), shared.rest
    if small is None:
        return CountsFit(means, alone, given, left, n_above, shape, rest, partial(draws, None))
    known = shared.leaf_blocks(tree, small, histories[small], steps)
    if known is None:  # even parts of their parents
        parents = np.array(tree.parents)[list(tree.levels[small])]
        of_leaves = np.maximum(means, 0.0)[parents] / np.bincount(parents)[parents][:, None]
        unknown, whole, of_errors = np.full(of_leaves.shape, UNKNOWN), alone, None
        below = of_leaves, unknown, unknown, np.ones_like(of_leaves), np.ones_like(of_leaves)
        of_rest = np.outer([0.0, 0.0, UNKNOWN], np.ones(len(of_leaves)))
    else:
        leaves = estimate_leaves(*known, steps, shared.found.posterior.prior, shared.days)
        # the leaves' information on nodes above is in the published sums, not in the variances of their fit
        whole, of_errors = variances_with(shared.excess_variances_with(leaves)), partial(draws, leaves)
        below = (
            leaves.means * shared.raised(expected, varied)[leaves.blocks.parents],
            leaves.variances + leaves.shares**2 @ alone,
            leaves.variances + SHARED_VARIANCE * leaves.means + LEAST_VARIANCE,
            np.full_like(leaves.means, leaves.factor),
            leaves.shape[leaves.blocks.parents],
        )
        of_rest = leaves.rest
    pairs = zip((means, whole, given, left, shape), below, strict=True)
    means, spread, given, left, shape = (np.vstack(pair) for pair in pairs)
    rest = np.hstack([rest, of_rest])
    return CountsFit(means, spread, given, left, n_above, shape, rest, of_errors)


SIZES, COUNTS, NOISE_OF_COUNTS, LEAF_SIZES, LEAF_PARENTS, LEAF_NOISE, LEAF_COUNTS, REST = range(16, 24)
"""First keys, as those of `draws`."""


def _draws(
    shared: SharedFit,
    factors: Floats,
    expected: Floats,
    varied: Variation,
    tree: AggregationTree,
    steps: range,
    leaves: LeafEstimate | None,
    n: int,
) -> Floats:
    """Return draws of the errors of `fit_counts`, (n, n_nodes, n_steps), each node by its own fit."""
    of_prior, of_rest = shared.found.draws(n, step_blocks(steps, shared.days, shared.events))
    of_nodes = np.stack([shared.tree.add_up(one) for one in of_prior + of_rest])
    expectations = np.sqrt(shared.found.factor * factors) * of_nodes
    sizes = normals(SIZES, np.arange(n)[:, None], keys_of(shared.tree.nodes))[:, :, None]
    shape, left = shared.shape(expected), 1.0 - varied.known_expected
    counts = _variation_draws(shared.tree, expected, varied, steps, n)

    def expected_with(of_sizes: Floats) -> Floats:
        return np.asarray(left * (expectations + np.sqrt(of_sizes) * shape * sizes))

    alone = expected_with(shared.excess_variances)
    if leaves is None:
        return alone + counts
    names, at = tree.nodes[len(expected) :], np.arange(steps.start, steps.stop)
    means = leaves.means * shared.raised(expected, varied)[leaves.blocks.parents]
    varying = normals(LEAF_COUNTS, np.arange(n)[:, None, None], keys_of(names)[:, None], at)
    own = _leaf_draws(leaves, shared.found.posterior.prior, step_blocks(steps, shared.days), names, n)
    counted = leaves.factor * np.maximum(means, 0.0) + leaves.dispersion * leaves.means**2
    of_leaves = own + leaves.shares @ alone + np.sqrt(counted) * varying
    above = expected_with(shared.excess_variances_with(leaves)) + counts
    return np.concatenate([above, of_leaves], axis=1)


def _variation_draws(
    tree: AggregationTree, expected: Floats, varied: Variation, steps: range, n: int
) -> Floats:
    """Return draws of the variation of counts, less its estimate by the blocks that hold it."""
    at, replicates = np.arange(steps.start, steps.stop), np.arange(n)[:, None, None]
    leaves = np.maximum(expected + varied.moved, 0.0)[tree.leaf_indices]
    moved = np.sqrt(leaves) * normals(COUNTS, replicates, keys_of(tree.leaves)[:, None], at)
    every = np.stack([tree.add_up(one) for one in moved])
    if not varied.cover.shape[1]:
        return every
    known, firsts = np.isfinite(varied.noise)[:, None], at[varied.cover.argmax(axis=0)]
    drawn = normals(NOISE_OF_COUNTS, replicates, keys_of(tree.nodes)[:, None], firsts)
    noise = np.sqrt(np.where(known, varied.noise[:, None], 0.0)) * drawn
    sides = np.where(known, every @ varied.cover + noise, 0.0)
    found = pass_over_tree(tree, varied.counted, varied.noise, sides).means
    leaves_found = found[:, tree.leaf_indices] @ varied.cover.T * varied.parts
    return np.asarray(every - np.stack([tree.add_up(one) for one in leaves_found]))


def _leaf_draws(
    leaves: LeafEstimate, prior: TemporalPrior, asked: Blocks, names: tuple[str, ...], n: int
) -> Floats:
    """Return draws of small leaves' errors, given their parents, (n, n_leaves, n_steps): Matheron's rule."""
    keys, replicates, own_prior = keys_of(names), np.arange(n)[:, None], own_parts(prior)
    alone = leaves.size_variances + leaves.joined**2
    sizes = np.sqrt(alone) * normals(LEAF_SIZES, replicates, keys)
    found = np.zeros((n, len(names), asked.clock.size))
    at_steps = prior_draws(own_prior, asked, n, *((OWN, keys[one.leaves]) for one in leaves.families))
    for one, own in zip(leaves.families, at_steps, strict=True):
        at, parent = one.leaves, int(leaves.blocks.parents[one.leaves[0]])
        of_sizes = sizes[:, at]
        share = leaves.joined[at] / np.where(alone[at] > 0, alone[at], 1.0)  # 1 / root of D + v
        pulled = float(share.max(initial=0.0))
        if pulled > 0:
            whole, of_siblings = pulled**-2.0, float(alone[at].sum())
            other = np.sqrt(max(whole - of_siblings, 0.0)) * normals(LEAF_PARENTS, np.arange(n), parent)
            of_sizes = of_sizes - alone[at] / whole * (of_sizes.sum(axis=1) + other)[:, None]
        scale, variance = (leaves.strength * leaves.sizes[at])[:, None], leaves.noise[at, None]
        drawn = normals(LEAF_NOISE, replicates[:, :, None], keys[at][:, None], leaves.blocks.starts)
        seen = scale * prior_draws(own_prior, one.blocks, n, (OWN, keys[at]))[0] + np.sqrt(variance) * drawn
        answer = scale**2 / (scale**2 * one.spectrum + variance)
        bent = (answer * (seen @ one.basis)) @ one.across.T
        found[:, at] = (of_sizes[:, :, None] + (scale * own - bent)) * leaves.shape[parent]
    return float(np.sqrt(leaves.factor)) * found


# Published counts: series that add up, errors, bands of whole numbers.

SHARE = 0.95  # what a band is to hold
SMALLEST = 1e-6  # an expected count below it is taken for this
FAR_BELOW = 1e4  # standard deviations below 0 that floats distinguish
LARGE, KNOWN = 30.0, 0.8
"""A count that is nearly normal; the part of its variance below which its measurement makes it so."""
LEAST_GAMMA_SHAPE = 0.2
"""Of a squared expectation to its variance: a gamma of less has its mass at 0, so that the less was known of
a count, the narrower its band would be."""


def count_bands(means: Floats, variances: Floats, count_variance: float | Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest counts of a band of 95 %, both included; shapes are broadcast.

    The expectation, with mean m and variance v, is taken as gamma distributed, so a count is negative
    binomial, of variance v + c m, v at most m^2 / `LEAST_GAMMA_SHAPE`, c the variance of a count of
    expectation 1. Where 0 alone has more than `SHARE`, the band is 0. Where the variance is hardly above m,
    or far below it, and m is large or known, it is normal.
    """
    mean = np.maximum(means, SMALLEST)
    whole = np.minimum(variances, mean**2 / LEAST_GAMMA_SHAPE) + count_variance * mean
    least = 1e-3 * mean**2 + 1e-12
    size = mean**2 / np.maximum(whole - mean, least)
    is_normal = (whole - mean < least) & ((mean > LARGE) | (whole < KNOWN * mean))

    def edge(tail: float) -> Floats:
        normal = np.maximum(np.rint(mean + scipy.special.ndtri(tail) * np.sqrt(whole)), 0.0)
        return np.where(is_normal, normal, _quantiles(tail, size, size / (size + mean)))

    return edge(0.5 - SHARE / 2), edge(0.5 + SHARE / 2)


def _quantiles(tail: float, size: Floats, success: Floats) -> Floats:
    """Return the least counts k with P(count <= k) >= tail, negative binomial, without a slow import."""
    count = np.ceil(scipy.special.nbdtrik(tail, size, success))
    less = np.maximum(count - 1.0, 0.0)
    count = np.where(scipy.special.betainc(size, less + 1.0, success) >= tail, less, count)
    return np.where(scipy.special.betainc(size, 1.0, success) >= tail, 0.0, count)


def published_counts(
    fit: CountsFit, measured: Measured, tree: AggregationTree, lower_bound: float | None
) -> Estimate:
    """Return the counts that add up and respect the bound, nearest to each node's estimate, with bands and
    standard errors of the counts themselves. By the plain bounded program ("joint" in `make_consistent`)."""
    merged = measured.seen_as(fit.means, fit.given)
    found = consistent(merged, tree, [], "variance", lower_bound, "joint")
    bounded = lower_bound is not None
    free = consistent(merged, tree, [], "variance", None, "joint").values if bounded else found.values
    for_sums = consistent(measured.seen_as(*fit.unshrunk), tree, [], "variance", None, "joint").values
    expected = np.maximum(found.values, 0.0)
    known = fit.variances < UNKNOWN * (1.0 - 1e-9)
    variances = np.where(known, fit.variances + fit.count_variances * expected, UNKNOWN)
    model_variance = np.where(known, fit.variances, 0.0)
    # shares of a parent are not below 0; a normal posterior may be, and is taken given that it is not
    normal = np.arange(len(expected)) < fit.n_normal
    below = np.where(fit.means < 0.0, fit.means, expected)[normal]
    spread = np.maximum(model_variance[normal], LEAST_VARIANCE)
    at = np.maximum(below / np.sqrt(spread), -FAR_BELOW)
    # the density over the share above 0; far below 0 nearly -at
    rate = np.exp(-0.5 * at**2 - 0.5 * np.log(2.0 * np.pi) - scipy.special.log_ndtr(at))
    mean, rest = np.sqrt(spread) * (at + rate), spread * np.maximum(1.0 - rate * (rate + at), 1e-12)
    low, high = count_bands(
        np.vstack([mean, expected[~normal]]), np.vstack([rest, model_variance[~normal]]), fit.count_variances
    )
    # a density that 0 cuts has no lower tail; without it hours of no counts would never be in their bands
    low[: fit.n_normal][at < scipy.special.ndtri(0.5 + SHARE / 2)] = 0.0
    bands = np.where(known, low, np.nan), np.where(known, high, np.nan)
    return Estimate(
        found.values, variances, optimality=found.optimality, bands=bands, unbounded=free, for_sums=for_sums
    )
