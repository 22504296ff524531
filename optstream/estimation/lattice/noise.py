"""How noise goes through the estimate of a lattice: each value's variance, exact, from the same system."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.lattice.free import SAME, is_constant
from optstream.estimation.lattice.system import (
    Joined,
    Parts,
    System,
    flat,
    flat_t,
    inverses,
    known_enough,
    parts_of,
)
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]
MOST_RATIO = 2.0**20
"""Of a cell's variance to the least above it, where weights are not those of the noise: the error of what is
subtracted grows with its square.
"""


def noise_of_columns(weights: Floats, own: Floats, lattice: Lattice) -> Floats:
    """Return the variance of each node's value after `reconcile_lattice`, (n_nodes, n_columns); free.

    own: (n_nodes, n_columns), the variance that noise gives each node's own value; nan where that is not
    known, and then for all nodes of that column. nan also as by `noise_through_lattice`.
    """
    weights = known_enough(weights, parts_of(lattice))
    entering = weights**2 * np.where(weights > 0, own, 0.0)
    some = slice(1) if is_constant(weights) and is_constant(entering) else slice(None)
    found = noise_through_lattice(weights[:, some, None, None], entering[:, some, None, None], lattice)
    return np.broadcast_to(found[..., 0], weights.shape).copy()


def noise_through_lattice(precision: Floats, noise: Floats, lattice: Lattice) -> Floats:
    """Return the variance that independent noise at the nodes leaves in each value of the estimate; free.

    The problem is that of `noise_through_tree`: x = S z, z = argmin sum_n (x_n - f_n)' P_n (x_n - f_n), where
    P_n f_n has covariance N_n. With K of `System`, V = P^-1, r = f - A y what the cells' own values y miss:
    z = y + D A' K^-1 r, and x = f - V K^-1 r at a measured node above. E = D N D is what noise gives y, F = V
    N V what it gives f, so Q = F + A E A' is the covariance of r, and
    Cov z = E - 2 sym(E A' K^-1 A D) + D A' K^-1 Q K^-1 A D,  Cov x = F - 2 sym(F K^-1 V) + V K^-1 Q K^-1 V.
    K^-1 = g + B M B', g that of each family alone, M the Schur complement's inverse, B = (-g A D A', 1): all
    products are of a family with the rest, or of the rest. Time linear in cells.

    Where N = P, E = D and Q = K: Cov z = D - D A' K^-1 A D and Cov x = V - V K^-1 V, from which less is lost
    where cells are hardly known.

    Args:
        precision: (n_nodes, b, k, k), P of b problems; 0 where a node was not measured, never at a cell.
        noise: (n_nodes, b, k, k), N.
        lattice: The hierarchy with its margin.

    Returns:
        (n_nodes, b, k), in the order of `nodes`; nan for problems where weights are not those of the noise
        and a cell is hardly known beside what lies above (`MOST_RATIO`).
    """
    parts = parts_of(lattice)
    through, found = _Through(parts, precision, noise), np.empty(precision.shape[:-1])
    found[parts.leaves], found[parts.above] = through.of_cells(), through.of_above()
    if not through.is_weighed:
        known_above = precision[parts.above].max(axis=(0, 2, 3))
        found[:, np.abs(through.free).max(axis=(0, 2, 3)) * known_above > MOST_RATIO] = np.nan
    return np.maximum(found, 0.0)


class _Through:
    """The matrices of `noise_through_lattice`: those of b problems first, families before what they share.

    spread: E, (n_leaves, b, k, k), and of_noise: A E A'. entered: F, (b, n_above, k, k). total: Q of each
    family. crossed: Q B of the families. first: M. second: M B' Q B M. alone, mixed: g Q g and g Q B M.
    """

    def __init__(self, parts: Parts, precision: Floats, noise: Floats) -> None:
        above, n = parts.above, parts.n_families
        self.is_weighed = np.allclose(noise, precision, rtol=SAME, atol=0.0)
        self.parts, self.measured = parts, np.moveaxis(precision[above][..., 0, 0] > 0, 1, 0)
        self.free = np.asarray(np.linalg.inv(precision[parts.leaves]))
        self.spread: Floats = self.free @ noise[parts.leaves] @ self.free
        self.system, self.of_noise = System(parts, precision[above], self.free), Joined(parts, self.spread)
        self.variances = np.moveaxis(inverses(precision[above]), 1, 0)
        self.entered: Floats = self.variances @ np.moveaxis(noise[above], 1, 0) @ self.variances
        gain, scaled, self.first = self.system.gain, self.system.scaled, self.system.inverse
        total = self.of_noise.totals + self.entered[:, :n]
        crossed = self.of_noise.across - total @ scaled
        self.to_noise = self.of_noise.own - flat_t(self.of_noise.across) @ flat(scaled)
        self.through = flat_t(scaled) @ flat(crossed)
        middle = self.blocks(self.to_noise - self.through).copy()
        places = range(middle.shape[1])
        middle[:, places, :, places] += np.moveaxis(self.entered[:, n:], 1, 0)
        self.second: Floats = self.first @ middle.reshape(self.first.shape) @ self.first
        self.alone, self.mixed = gain @ total @ gain, gain @ crossed @ self.first[:, None]

    def blocks(self, of_rest: Floats) -> Floats:
        """Return (b, n_rest * k, n_rest * k) as (b, n_rest, k, n_rest, k)."""
        b, m, k, _ = self.system.own.shape
        return of_rest.reshape(b, m, k, m, k)

    def of_cells(self) -> Floats:
        """Return the cells' variances; B' A is `rows`, and 1 at the cell's node of the margin."""
        k = self.free.shape[-1]
        held = np.einsum("fr,ij->firj", self.parts.upper, np.eye(k))
        rows = held.reshape(len(held), k, -1) - self.system.scaled
        by_first, by_second = rows @ self.first[:, None], rows @ self.second[:, None]
        once = self._at_cells(self.system.gain + by_first @ _turned(rows), by_first, self.first)
        if self.is_weighed:
            return _diagonal(self.free) - _form(self.free @ once, self.free)
        found = _diagonal(self.spread) - 2.0 * _form(self.spread @ once, self.free)
        turned = self.alone + (2.0 * self.mixed + by_second) @ _turned(rows)
        twice = self._at_cells(turned, by_second + self.mixed, self.second)
        return np.asarray(found + _form(self.free @ twice, self.free))

    def _at_cells(self, of_families: Floats, of_rest: Floats, of_two: Floats) -> Floats:
        """Return for each cell what is its family's, its margin's, and of both, (n_leaves, b, k, k)."""
        family, member = self.parts.family, self.parts.member
        b, n, k, _ = of_families.shape
        both = of_rest.reshape(b, n, k, -1, k)[:, family, :, member]
        at = np.moveaxis(of_families, 1, 0)[family]
        return np.asarray(at + both + _turned(both) + self.blocks(of_two)[:, member, :, member])

    def of_above(self) -> Floats:
        """Return the variances of the nodes above, those that were measured and those that are sums."""
        scaled, first, second = self.system.scaled, self.first, self.second
        once = self._at_above(self.system.gain + scaled @ first[:, None] @ _turned(scaled), first)
        if self.is_weighed:
            return self._weighed_above(once)
        turned = self.alone + (scaled @ second[:, None] - 2.0 * self.mixed) @ _turned(scaled)
        twice = self._at_above(turned, second)
        measured = _diagonal(self.entered) - 2.0 * _form(self.entered @ once, self.variances)
        measured = measured + _form(self.variances @ twice, self.variances)
        across, left, noisy = self.system.joined.across, self.system.left, self.of_noise
        families = _diagonal(noisy.totals) - 2.0 * _form(noisy.across @ first[:, None], across)
        families = families + _form(across @ second[:, None], across)
        rest = _diagonal(self.to_noise - self.through) + _form(left @ second, left)
        rest = rest + 2.0 * _form((self.through - self.to_noise) @ first, left)
        return self._above(measured, families, rest)

    def _weighed_above(self, once: Floats) -> Floats:
        """Return the same where N = P. once: K^-1 at each node."""
        across, left = self.system.joined.across, self.system.left
        measured = _diagonal(self.variances) - _form(self.variances @ once, self.variances)
        families = _diagonal(self.system.joined.totals) - _form(across @ self.first[:, None], across)
        return self._above(measured, families, _diagonal(left) - _form(left @ self.first, left))

    def _above(self, measured: Floats, families: Floats, rest: Floats) -> Floats:
        """Return (n_above, b, k): a node's own variance where it was measured, else that of its sum."""
        sums = np.concatenate([families, rest.reshape(len(rest), -1, families.shape[-1])], axis=1)
        return np.moveaxis(np.where(self.measured[..., None], measured, sums), 1, 0)

    def _at_above(self, of_families: Floats, of_rest: Floats) -> Floats:
        """Return the diagonal blocks of families and rest, (b, n_above, k, k)."""
        places = range(self.system.own.shape[1])
        rest = np.moveaxis(self.blocks(of_rest)[:, places, :, places], 0, 1)
        return np.concatenate([of_families, rest], axis=1)


def _form(left: Floats, right: Floats) -> Floats:
    """Return the diagonal of left right'."""
    return np.asarray((left * right).sum(axis=-1))


def _diagonal(matrices: Floats) -> Floats:
    return np.asarray(np.diagonal(matrices, axis1=-2, axis2=-1))


def _turned(matrices: Floats) -> Floats:
    return np.swapaxes(matrices, -1, -2)
