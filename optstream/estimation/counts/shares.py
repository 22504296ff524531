"""Leaves that are small beside their noise: shares of a parent that is well known, with days of their own."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.joined_sizes import joined_sizes
from optstream.estimation.counts.sizes import Mixture
from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.calibration import (
    ALIKE,
    EXPECTED_FACTOR,
    FACTOR_DOUBT,
    LARGEST_FACTOR,
)
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STRENGTHS = np.geomspace(0.25, 16.0, 13)
"""Of leaves' own parts, relative to those of their parents, that are tried."""
STRENGTH_DOUBT = 1.0
"""Standard deviation of the logarithm of that, around 0."""
LEAST_SHAPE = 0.05
"""Of a parent's mean: what a step of it counts at least, so that no step's leaves are all known to be 0."""


@dataclass(frozen=True, eq=False)
class LeafBlocks:
    """Noisy sums of the leaves over the same blocks.

    Attributes:
        starts: (n_blocks,), running steps.
        lengths: (n_blocks,), steps.
        sums: (n_leaves, n_blocks).
        noise: the variance of each sum.
        parents: (n_leaves,), rows of the parents' series.
        above: the tree of these series.
        unsure: (n_parents,), variances of the parents' mean values.
    """

    starts: Integers
    lengths: Integers
    sums: Floats
    noise: float
    parents: Integers
    above: AggregationTree
    unsure: Floats


@dataclass(frozen=True, eq=False)
class LeafEstimate:
    """What blocks and parents tell of the leaves.

    Attributes:
        means: (n_leaves, n_steps), at least 0.
        variances: the same shape: of the leaves' expected values, widened by `factor`, without what counts
            vary around them.
        sizes: (n_leaves,), mean values.
        doubts: (n_leaves,), variances of these.
        joined: (n_leaves,), u of `joined_sizes`: sizes of siblings have the covariance -u u'.
        measured: (n_leaves,), variances of sizes by each leaf's own blocks, whatever its siblings are like.
        noise: (n_leaves,), the variance of each block, what counts vary around their expectation counted in.
        factor: by how much measurements show the model's variances, counts included, to be short.
        strength: of the leaves' own parts, relative to their parents'.
    """

    means: Floats
    variances: Floats
    sizes: Floats
    doubts: Floats
    joined: Floats
    measured: Floats
    noise: Floats
    factor: float
    strength: float


@dataclass(frozen=True, eq=False)
class Family:
    """Leaves of one parent, in the eigenbasis of what its blocks show of own parts.

    Attributes:
        leaves: (m,), their rows.
        spectrum: (n_blocks,), variances of the modes.
        residuals: (m, n_blocks), what the sizes leave of the sums.
        across: (n_steps, n_blocks), covariance of the asked steps with each mode.
        alone: (n_steps,), the asked steps' variance without blocks.
    """

    leaves: Integers
    spectrum: Floats
    residuals: Floats
    across: Floats
    alone: Floats


def estimate_leaves(
    blocks: LeafBlocks,
    parents: Floats,
    first: int,
    asked: range,
    prior: TemporalPrior,
    days: PublicDays,
    count: float,
) -> LeafEstimate:
    """Estimate the leaves at the asked steps from blocks of theirs and their parents' posterior means.

    A leaf is s_i q_p(t) (1 + a g_i(t)): q_p its parent's series over its mean; s_i its size, by least squares
    of its blocks on q_p, `Mixture` and `joined_sizes`; g_i its own part, with the prior's own components but
    for the size, and a their strength, the most likely one for all leaves. So a leaf that noise hides is
    small, and a busy one has days of its own. But for sizes parents are taken as known: they are measured far
    better than leaves, or the leaves would be part of their tree's posterior. Time n_blocks^3 for each parent
    and leaves times n_blocks^2. Costs no privacy: noisy numbers only.

    parents: (n_parents, n_all), posterior means from running step `first` on, over all blocks and `asked`.
    prior: of the parents, as learned. count: the variance of a count of mean 1; 0 for readings that are no
    counts.
    """
    means, shape = shapes_of(parents)
    own = blocks.parents
    cover = block_sums(shape, blocks, first)
    info = (cover**2).sum(axis=1)
    observed, spread = (blocks.sums * cover[own]).sum(axis=1) / info[own], blocks.noise / info[own]
    typical = (means / np.maximum(np.bincount(own, minlength=len(means)), 1))[own]
    alone = Mixture.learned(observed, spread, typical).posterior(observed, spread, typical)
    sizes, doubts, joined = joined_sizes(*alone, own, blocks.above, means, blocks.unsure)
    left = blocks.sums - sizes[:, None] * cover[own]
    families = families_of(blocks, cover, left, asked, prior, days)
    noise = blocks.noise + count * sizes * cover.mean(axis=1)[own]
    strength = _strength(families, sizes, noise)
    bent, unsure = np.zeros((len(sizes), len(asked))), np.zeros((len(sizes), len(asked)))
    for one in families:
        power = (strength * sizes[one.leaves, None]) ** 2
        seen = power * one.spectrum + noise[one.leaves, None]
        bent[one.leaves] = (power * one.residuals / seen) @ one.across.T
        unsure[one.leaves] = power * np.maximum(one.alone - (power / seen) @ (one.across**2).T, 0.0)
    doubt = (doubts[:, None] + unsure.mean(axis=1, keepdims=True)) * cover[own] ** 2
    factor = _factor(left, blocks.noise, doubt + (noise - blocks.noise)[:, None])
    now = shape[:, asked.start - first : asked.stop - first][own]
    found = np.maximum((sizes[:, None] + bent) * now, 0.0)
    variances = factor * (doubts[:, None] + unsure) * now**2
    measured = noise / info[own]
    return LeafEstimate(found, variances, sizes, doubts, joined, measured, noise, factor, strength)


def shares_of_parents(estimate: LeafEstimate, parents: Integers, n_parents: int) -> Floats:
    """Return which part of each parent's counts of a period its leaves are expected to have, (n_leaves,
    n_parents).
    """
    of_leaves = np.zeros((len(parents), n_parents))
    of_leaves[np.arange(len(parents)), parents] = estimate.means.sum(axis=1)
    return np.asarray(of_leaves / np.maximum(of_leaves.sum(axis=0), 1e-300))


def shapes_of(parents: Floats) -> tuple[Floats, Floats]:
    """Return the parents' means, (n_parents,), and their series over these."""
    means = np.maximum(parents.mean(axis=1), 1e-12)
    return means, np.maximum(parents / means[:, None], LEAST_SHAPE)


def block_sums(series: Floats, blocks: LeafBlocks, first: int) -> Floats:
    """Return sums of (n, n_all) over the blocks, (n, n_blocks)."""
    running = np.concatenate([np.zeros((len(series), 1)), np.cumsum(series, axis=1)], axis=1)
    start = blocks.starts - first
    return np.asarray(running[:, start + blocks.lengths] - running[:, start])


def own_parts(prior: TemporalPrior) -> TemporalPrior:
    """Return the prior of leaves' own parts: without that of their sizes, which are known otherwise."""
    logs = prior.logs.copy()
    logs[1] = -30.0
    return replace(prior, logs=logs)


def families_of(
    blocks: LeafBlocks, cover: Floats, left: Floats, asked: range, prior: TemporalPrior, days: PublicDays
) -> list[Family]:
    """Return the families, with what is asked at the steps."""
    own = own_parts(prior)
    clock, steps = days.clock(blocks.starts), days.clock(np.arange(asked.start, asked.stop))
    wanted = Blocks.at(steps, kinds=days.kinds(steps))
    alone, found = own.variances(wanted)[1], []
    for parent in np.unique(blocks.parents):
        leaves = np.flatnonzero(blocks.parents == parent)
        seen = Blocks.at(clock, blocks.lengths, kinds=days.kinds(clock), worth=cover[parent] / blocks.lengths)
        spectrum, basis = np.linalg.eigh(own.covariances(seen, seen)[1])
        across = own.covariances(wanted, seen)[1] @ basis
        found.append(Family(leaves, np.maximum(spectrum, 0.0), left[leaves] @ basis, across, alone))
    return found


def _strength(families: list[Family], sizes: Floats, noise: Floats) -> float:
    """Return the strength of the own parts under which the leaves' residuals, and it, are most likely."""
    scores = -0.5 * (np.log(STRENGTHS) / STRENGTH_DOUBT) ** 2
    for number, strength in enumerate(STRENGTHS):
        for one in families:
            seen = (strength * sizes[one.leaves, None]) ** 2 * one.spectrum + noise[one.leaves, None]
            scores[number] -= 0.5 * float((one.residuals**2 / seen + np.log(seen)).sum())
    return float(STRENGTHS[np.argmax(scores)])


def _factor(left: Floats, noise: float, doubt: Floats) -> float:
    """As `calibration.variance_factor`, for residuals of known noise."""
    unsure = 5.0 * noise**2 + 4.0 * noise * doubt + 2.0 * doubt**2
    first = float(((left**2 - noise) * doubt / unsure).sum()) / ALIKE + EXPECTED_FACTOR / FACTOR_DOUBT**2
    second = float((doubt**2 / unsure).sum()) / ALIKE + 1.0 / FACTOR_DOUBT**2
    return float(np.clip(first / second, 1.0, LARGEST_FACTOR))
