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
    passes = _Upwards(precision, noise, tree)
    return passes.downwards()


class _Upwards:
    """What goes up the tree.

    inverse: L^-1. through: G, 0 at leaves. spread: Cov[mu]. sums: of the children's spreads.
    """

    def __init__(self, precision: Floats, noise: Floats, tree: AggregationTree) -> None:
        self.noise, self.tree = noise, tree
        self.parents = np.array(tree.parents)
        inner = np.ones(len(tree.nodes), dtype=bool)
        inner[tree.leaf_indices] = False
        self.inverse, self.through = precision.copy(), np.zeros_like(precision)
        self.spread, self.sums = np.zeros_like(noise), np.zeros_like(noise)
        below = np.zeros_like(precision)
        for level in reversed(tree.levels):
            nodes = slice(level.start, level.stop)
            mixed = level.start + np.flatnonzero(inner[nodes])
            self.through[mixed] = _inverse(below[mixed])
            self.inverse[nodes] = _inverse(precision[nodes] + self.through[nodes])
            through, inverse = self.through[nodes], self.inverse[nodes]
            self.spread[nodes] = _both(inverse, noise[nodes] + _both(through, self.sums[nodes]))
            if level.start:
                np.add.at(below, self.parents[nodes], inverse)
                np.add.at(self.sums, self.parents[nodes], self.spread[nodes])

    def downwards(self) -> Floats:
        """Return Cov[x]. kept: how x depends on the node's own mu. rest: Cov[r]. gain: K."""
        found, one = self.spread.copy(), np.eye(self.noise.shape[-1])
        kept, gain = np.zeros_like(self.inverse) + one, np.zeros_like(self.inverse)
        rest = np.zeros_like(self.noise)
        for level in self.tree.levels[1:]:
            nodes = slice(level.start, level.stop)
            up = self.parents[nodes]
            own = _product(kept[up], self.inverse[up])
            pulled = _product(own, self.through[up]) - one
            gain[nodes] = _product(self.inverse[nodes], self.through[up])
            kept[nodes] = one + _product(gain[nodes], pulled)
            siblings = self.sums[up] - self.spread[nodes]
            rest[nodes] = _both(own, self.noise[up]) + _both(pulled, siblings) + _both(gain[up], rest[up])
            found[nodes] = _both(kept[nodes], self.spread[nodes]) + _both(gain[nodes], rest[nodes])
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
