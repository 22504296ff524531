"""Draws of the errors of counts: of their expectations, of sizes, and of the variation around them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.replicates import keys_of, normals
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.counts import (
    Family,
    LeafBlocks,
    LeafEstimate,
    SharedFit,
    Variation,
    block_sums,
    count_variation,
    estimate_leaves,
    families_of,
    own_parts,
    shapes_of,
    shares_of_parents,
)
from optstream.history.draws import own_draws
from optstream.history.filter import step_blocks
from optstream.history.posterior import pass_over_tree
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]

SIZES, COUNTS, NOISE_OF_COUNTS, LEAF_SIZES, LEAF_PARENTS, LEAF_NOISE, LEAF_COUNTS = range(16, 23)
"""First keys, as those of `draws`."""


def count_draws(
    shared: SharedFit,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    small: int | None,
    steps: range,
    n: int,
) -> Floats | None:
    """Return draws of the errors of `fit_counts`, (n, n_nodes, n_steps); None where leaves were not measured.

    Of each node by its own fit: a level has a factor of its own, so errors of nodes are not quite the sums of
    their leaves'.
    """
    blocks = step_blocks(steps, shared.days, shared.events)
    expected = shared.of_nodes + shared.found.published_means(blocks)
    varied = count_variation(shared.tree, expected, shared.measured, steps)
    of_prior, of_rest = shared.found.known.draws(n, blocks)
    of_nodes = np.stack([shared.tree.add_up(one) for one in of_prior + of_rest])
    expectations = np.sqrt(shared.found.factor * shared.factors)[:, None] * of_nodes
    sizes = normals(SIZES, np.arange(n)[:, None], keys_of(shared.tree.nodes))[:, :, None]
    shape, left = shared.shape(expected), np.sqrt(1.0 - varied.known_expected)
    counts = _variation_draws(shared.tree, expected, varied, steps, n)
    if small is None:
        return np.asarray(left * (expectations + np.sqrt(shared.excess_variances) * shape * sizes) + counts)
    known = shared.leaf_blocks(tree, small, histories[small], steps)
    if known is None:
        return None
    prior, parents = shared.found.posterior.prior, known[0].parents
    estimate = estimate_leaves(*known, steps, prior, shared.days, 1.0)
    with_leaves = np.sqrt(shared.excess_variances_with(estimate, parents))
    above = left * (expectations + with_leaves * shape * sizes) + counts
    alone = left * (expectations + np.sqrt(shared.excess_variances) * shape * sizes)
    names = tree.nodes[len(expected) :]
    own = _leaf_draws(shared, estimate, *known, steps, names, n)
    shares = shares_of_parents(estimate, parents, len(expected))
    means = estimate.means * shared.raised(expected, varied)[parents]
    at = np.arange(steps.start, steps.stop)
    varying = normals(LEAF_COUNTS, np.arange(n)[:, None, None], keys_of(names)[:, None], at)
    leaves = own + shares @ alone + np.sqrt(estimate.factor * np.maximum(means, 0.0)) * varying
    return np.concatenate([above, leaves], axis=1)


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
    known = np.isfinite(varied.noise)[:, None]
    firsts = at[varied.cover.argmax(axis=0)]
    noise = np.sqrt(np.where(known, varied.noise[:, None], 0.0)) * normals(
        NOISE_OF_COUNTS, replicates, keys_of(tree.nodes)[:, None], firsts
    )
    sides = tuple(np.where(known, every @ varied.cover + noise, 0.0))
    found = np.stack(pass_over_tree(tree, varied.counted, varied.noise, sides).means)
    leaves_found = found[:, tree.leaf_indices] @ varied.cover.T * varied.parts
    return np.asarray(every - np.stack([tree.add_up(one) for one in leaves_found]))


def _leaf_draws(
    shared: SharedFit,
    estimate: LeafEstimate,
    blocks: LeafBlocks,
    parents: Floats,
    first: int,
    steps: range,
    names: tuple[str, ...],
    n: int,
) -> Floats:
    """Return draws of the errors of small leaves, given their parents, (n, n_leaves, n_steps)."""
    _, shape = shapes_of(parents)
    cover = block_sums(shape, blocks, first)
    prior, nothing = shared.found.posterior.prior, np.zeros_like(blocks.sums)
    families = families_of(blocks, cover, nothing, steps, prior, shared.days)
    keys, replicates = keys_of(names), np.arange(n)[:, None]
    # sizes known by themselves, then joined with the sum of siblings: by Matheron's rule
    alone = estimate.size_variances + estimate.joined**2
    sizes = np.sqrt(alone) * normals(LEAF_SIZES, replicates, keys)
    found = np.zeros((n, len(names), len(steps)))
    now = shape[:, steps.start - first : steps.stop - first]
    for one in families:
        at, parent = one.leaves, int(blocks.parents[one.leaves[0]])
        own = sizes[:, at]
        share = estimate.joined[at] / np.where(alone[at] > 0, alone[at], 1.0)  # 1 / root of D + v
        pulled = float(share.max(initial=0.0))
        if pulled > 0:
            whole, of_siblings = pulled**-2.0, float(alone[at].sum())
            other = np.sqrt(max(whole - of_siblings, 0.0)) * normals(LEAF_PARENTS, np.arange(n), parent)
            own = own - alone[at] / whole * (own.sum(axis=1) + other)[:, None]
        parts = _own_part_draws(shared, estimate, blocks, one, cover[parent], steps, keys[at], n)
        found[:, at] = (own[:, :, None] + parts) * now[parent]
    return float(np.sqrt(estimate.factor)) * found


def _own_part_draws(
    shared: SharedFit,
    estimate: LeafEstimate,
    blocks: LeafBlocks,
    family: Family,
    cover: Floats,
    steps: range,
    keys: NDArray[np.uint64],
    n: int,
) -> Floats:
    """Return draws of the errors of a family's own parts, (n, n_leaves, n_steps)."""
    days, prior = shared.days, own_parts(shared.found.posterior.prior)
    clock = days.clock(blocks.starts)
    seen = Blocks.at(clock, blocks.lengths, kinds=days.kinds(clock), weight=cover / blocks.lengths)
    now = days.clock(np.arange(steps.start, steps.stop))
    scale = (estimate.strength * estimate.sizes[family.leaves])[:, None]
    drawn = scale * own_draws(prior, keys, seen, n)
    noise = np.sqrt(estimate.noise[family.leaves])[:, None] * normals(
        LEAF_NOISE, np.arange(n)[:, None, None], keys[:, None], blocks.starts
    )
    answer = scale**2 / (scale**2 * family.spectrum + estimate.noise[family.leaves, None])
    bent = (answer * ((drawn + noise) @ family.basis)) @ family.across.T
    return np.asarray(scale * own_draws(prior, keys, Blocks.at(now, kinds=days.kinds(now)), n) - bent)
