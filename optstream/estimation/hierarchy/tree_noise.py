"""How noise goes through the reconciliation of a tree: two passes for its covariance, as for its values."""

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree

Floats = NDArray[np.float64]


def noise_through_tree(precision: Floats, noise: Floats, tree: AggregationTree) -> Floats:
    """Return the covariance that independent noise at the nodes leaves in every node's estimate.

    Problem: Cov[x] for x = S z, z = argmin_z sum_n (x_n - f_n)' P_n (x_n - f_n), where P_n f_n = m_n has
    covariance `noise[n]`, independent between nodes. precision: P, (n_nodes, …, k, k), 0 where a node was not
    measured (never a leaf). noise: (n_nodes, …, k, k). The dots are independent problems (steps, or none);
    they are broadcast. Returns as `noise`, 0 where none enters and nan where the noise is nan.

    The passes are those of `projection.reconcile_correlated`: upwards mu_n = L_n^-1 (m_n + G_n s_n), with
    s_n the sum of the children's mu, G_n the inverse of their summed L^-1, and L_n = P_n + G_n; downwards
    x_c = mu_c + K_c d with d = x_p - s_p and K_c = L_c^-1 G_p. A node's d depends on its own mu as
    d = E mu_c + r, r independent of everything below c: E and Cov[r] are what is handed down. Time linear in
    nodes, k^3 each; nothing is ever of the size nodes x nodes. Costs no privacy: scales and positions only.
    """
    parents, inner = np.array(tree.parents), np.ones(len(tree.nodes), dtype=bool)
    inner[tree.leaf_indices] = False
    inverse, through = precision.copy(), np.zeros_like(precision)  # L^-1, and G, which is 0 at leaves
    spread, sums = np.zeros_like(noise), np.zeros_like(noise)  # Cov[mu], and the sum of the children's
    below = np.zeros_like(precision)
    for level in reversed(tree.levels):
        nodes = slice(level.start, level.stop)
        mixed = level.start + np.flatnonzero(inner[nodes])
        through[mixed] = _inverse(below[mixed])
        inverse[nodes] = _inverse(precision[nodes] + through[nodes])
        entering = noise[nodes] + _both(through[nodes], sums[nodes])
        spread[nodes] = _both(inverse[nodes], entering)
        if level.start:
            np.add.at(below, parents[nodes], inverse[nodes])
            np.add.at(sums, parents[nodes], spread[nodes])
    found, one = spread.copy(), np.eye(noise.shape[-1])
    kept, gain = np.zeros_like(inverse) + one, np.zeros_like(inverse)  # how x depends on its own mu, and K
    rest = np.zeros_like(noise)  # Cov[r]
    for level in tree.levels[1:]:
        nodes = slice(level.start, level.stop)
        up = parents[nodes]
        own = _product(kept[up], inverse[up])
        pulled = _product(own, through[up]) - one
        gain[nodes] = _product(inverse[nodes], through[up])
        kept[nodes] = one + _product(gain[nodes], pulled)
        siblings = sums[up] - spread[nodes]
        rest[nodes] = _both(own, noise[up]) + _both(pulled, siblings) + _both(gain[up], rest[up])
        found[nodes] = _both(kept[nodes], spread[nodes]) + _both(gain[nodes], rest[nodes])
    return found


def _both(factor: Floats, covariance: Floats) -> Floats:
    """Return F C F'."""
    return _product(_product(factor, covariance), np.swapaxes(factor, -1, -2))


def _product(one: Floats, other: Floats) -> Floats:
    """Return the matrices' product; of single numbers at once, which a product of many 1 x 1 is slow at."""
    return np.asarray(one * other if one.shape[-1] == 1 else one @ other)


def _inverse(matrices: Floats) -> Floats:
    """Return the inverses. Raises numpy's LinAlgError where there is none."""
    if matrices.shape[-1] > 1:
        return np.asarray(np.linalg.inv(matrices))
    if not matrices.all():
        raise np.linalg.LinAlgError("Singular matrix")
    return np.asarray(1.0 / matrices)
