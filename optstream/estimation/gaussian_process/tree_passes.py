"""Independent leaves of a tree, sums of them measured with noise: exact in two passes."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AT_ONCE = 2**18
"""Entries, of nodes and modes, that are passed over together, for what is needed on the way."""


@dataclass(frozen=True, eq=False)
class Passed:
    """What a pass gives for each right-hand side y: means, E[x | y] of every node, and pulls, Sigma^-1 y of
    every measured one, (n_nodes, n_modes). variances: Var[x | y]; prior: Var[x]. log_density: of the first y,
    constants left out.
    """

    means: tuple[Floats, ...]
    pulls: tuple[Floats, ...]
    variances: Floats
    prior: Floats
    log_density: float


def pass_over_tree(
    tree: AggregationTree, leaf_variances: Floats, noise: Floats, seen: tuple[Floats, ...]
) -> Passed:
    """Condition independent Gaussian leaves, and their sums, on noisy values of nodes.

    Leaves x_i ~ N(0, leaf_variances[i]), a node is the sum of its leaves, y_p = x_p + N(0, noise[p]), each
    mode (column) by itself. leaf_variances: (n_leaves, n_modes), above 0. noise: (n_nodes,), inf where a node
    was not measured. seen: right-hand sides y, (n_nodes, n_modes) each, 0 where a node was not measured.
    Upwards a node's sum is joined with its own measurement, downwards what it is better known is shared among
    its children by variance: `projection.reconcile` with proper priors. Differences of nearly equal numbers
    are avoided, so that it holds for noise far below the leaves. Time linear in nodes, modes and sides. Costs
    no privacy.
    """
    shape = len(tree.nodes), leaf_variances.shape[1]
    means, pulls = (tuple(np.empty(shape) for _ in seen) for _ in range(2))
    variances, prior, log_density = np.empty(shape), np.empty(shape), 0.0
    width = max(AT_ONCE // shape[0], 1)
    for first in range(0, shape[1], width):
        at = np.s_[:, first : first + width]
        part = _pass_over_modes(tree, leaf_variances[at], noise, tuple(side[at] for side in seen))
        for whole, own in zip((*means, *pulls), (*part.means, *part.pulls), strict=True):
            whole[at] = own
        variances[at], prior[at] = part.variances, part.prior
        log_density += part.log_density
    return Passed(means, pulls, variances, prior, log_density)


def _pass_over_modes(
    tree: AggregationTree, leaf_variances: Floats, noise: Floats, seen: tuple[Floats, ...]
) -> Passed:
    """Do what `pass_over_tree` does, for some of the modes."""
    n_nodes, n_modes = len(tree.nodes), leaf_variances.shape[1]
    measured = np.isfinite(noise)[:, None]
    below = np.zeros((n_nodes, n_modes))
    below[tree.leaf_indices] = leaf_variances
    # 1 / spread is what a surprise is worth; 0 where nothing was measured
    worth, above = np.empty((n_nodes, n_modes)), np.empty((n_nodes, n_modes))
    sums = np.zeros((len(seen), n_nodes, n_modes))
    surprises, shifts = np.empty_like(sums), np.empty_like(sums)
    values, log_density = np.stack(seen), 0.0
    for number in reversed(range(tree.n_levels)):
        at = slice(tree.levels[number].start, tree.levels[number].stop)
        known, own = measured[at], measured[at, 0]
        noises = np.where(known, noise[at, None], 0.0)
        spread = below[at] + noises
        worth[at] = known / spread
        above[at] = np.where(known, below[at] * noises * worth[at], below[at])
        surprises[:, at] = values[:, at] - sums[:, at]
        surprises[:, at][:, ~own] = 0.0  # ten times as fast as `np.where` with a row for each side
        shifts[:, at] = below[at] * worth[at] * surprises[:, at]
        log_density -= 0.5 * float(np.sum(surprises[0, at] ** 2 * worth[at]) + np.sum(np.log(spread[own])))
        if number:
            up, parts = slice(tree.levels[number - 1].start, at.start), tree.parts_of_levels[number - 1]
            below[up] += parts @ above[at]
            for total, shift in zip(sums, shifts, strict=True):
                total[up] += parts @ (total[at] + shift[at])
    return _downwards(tree, below, above, worth, (sums, surprises, shifts), log_density, leaf_variances)


def _downwards(
    tree: AggregationTree,
    below: Floats,
    above: Floats,
    worth: Floats,
    sides: tuple[Floats, Floats, Floats],
    log_density: float,
    leaf_variances: Floats,
) -> Passed:
    """Pass from the root to the leaves.

    The last of `sides`, shifts, says by how much what is measured at a node and above moves it from its
    children's sum.
    """
    sums, surprises, shifts = sides
    parents, variances, pulls = np.array(tree.parents), above.copy(), worth * surprises
    for level in tree.levels[1:]:
        at = slice(level.start, level.stop)
        up = parents[at]
        of_parent, shift = below[up], shifts[:, up]
        share = above[at] / of_parent
        variances[at] += share**2 * (variances[up] - of_parent)
        shifts[:, at] += share * shift
        # the share over the noise, the noise divided out
        pulls[:, at] -= below[at] * worth[at] / of_parent * shift
    means = sums + shifts
    return Passed(tuple(means), tuple(pulls), variances, tree.add_up(leaf_variances), log_density)


def told_in_groups(
    tree: AggregationTree, leaf_variances: Floats, noise: Floats
) -> Iterator[tuple[Integers, Floats]]:
    """Yield by how much less leaves vary for noisy values of nodes, and with each other: for each way to
    group them, by the leaf itself or by a node above it, each leaf's group, -1 for none, and a row of it.

    Arguments as `pass_over_tree`. In each mode it is the sum over measured nodes of the square of such a row
    of the leaves below: what a measurement tells beyond those below it, divided among the leaves as they are
    in doubt by then (an LDL' factorisation). Time linear in the number of nodes.
    """
    parents, known = np.array(tree.parents), np.isfinite(noise)[:, None]
    noises = np.where(known, noise[:, None], 0.0)
    below, worth, above = (np.zeros((len(tree.nodes), leaf_variances.shape[1])) for _ in range(3))
    below[tree.leaf_indices] = leaf_variances
    for number in reversed(range(tree.n_levels)):
        at = slice(tree.levels[number].start, tree.levels[number].stop)
        worth[at] = known[at] / (below[at] + noises[at])
        above[at] = np.where(known[at], below[at] * noises[at] * worth[at], below[at])
        if number:
            up = slice(tree.levels[number - 1].start, at.start)
            below[up] += tree.parts_of_levels[number - 1] @ above[at]
    node, share = tree.leaf_indices.copy(), np.ones(leaf_variances.shape)
    for number in reversed(range(tree.n_levels)):
        here = np.flatnonzero(tree.depths[node] == number)
        of, rows, own = np.full(node.size, -1), np.zeros(share.shape), node[here]
        of[here], rows[here] = own, np.sqrt(worth[own]) * below[own] * share[here]
        yield of, rows
        if number:
            node[here] = parents[own]
            share[here] *= above[own] / below[node[here]]
