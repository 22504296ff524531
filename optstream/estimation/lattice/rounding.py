"""Whole units that add up both ways: controlled rounding of a lattice by a linear program."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from optstream.errors import ParameterError
from optstream.stream.lattice import Lattice

Integers = NDArray[np.int64]

RISE = 4.0
"""How much more the change of a node counts than that of a node one level below."""
GOLDEN = (5.0**0.5 - 1.0) / 2.0
WHOLE = 1e-6
"""How far an answer may lie from a whole number, by the solver's tolerance."""
APART = 2.0**-10
"""How far apart cells of equal rests are weighed, so that one answer is the best."""


def rounded_lattice(whole: Integers, rests: Integers, lattice: Lattice, bits: int) -> Integers:
    """Return every node's units, (n_nodes, n_steps), each rounded up or down, such that tree and margin both
    add up; free.

    Lemma: the tree's nodes are one laminar family of sets of cells, the margin's nodes and the root another;
    the matrix of two laminar families is totally unimodular (Edmonds 1970), so the polytope of all roundings
    in which each cell goes up by 0 to 1, and each node's sum lies between floor and ceiling of its own, has
    whole corners. The cells' own rests lie in it and are a mean of corners, so some corner has the root's
    floor and some its ceiling (unless it is whole): the root goes to the nearest. Of the corners left, one
    costs least: a cost is each node's absolute change, linear between floor and ceiling, nodes above more.

    A function of the values alone: equal rests are told apart by the cells' places. Time: one linear program
    a step, by HiGHS. whole, rests: (n_leaves, n_steps), the cells' units, rounded down, and what is left of
    each, in parts of 2^bits. Raises ParameterError where the program was not solved, which the lemma
    excludes.
    """
    one = 1 << bits
    left = lattice.add_up(rests)
    down, fractions = left >> bits, (left & (one - 1)) / one
    inner = np.setdiff1d(np.arange(len(lattice.nodes)), lattice.leaf_indices)
    holds = csr_array(lattice.add_up(np.eye(len(lattice.leaves)))[inner])
    worth = RISE ** lattice.heights[inner].astype(np.float64)
    order = np.arange(len(lattice.leaves)) * GOLDEN % 1.0 * APART
    found = whole.copy()
    for step in range(rests.shape[1]):
        cells = np.flatnonzero(rests[:, step])
        if not cells.size:
            continue
        matrix, part = holds[:, cells], fractions[inner, step]
        costs = ((1.0 - 2.0 * part) * worth) @ matrix + 1.0 - 2.0 * rests[cells, step] / one + order[cells]
        least = down[inner, step].astype(np.float64)
        most = least + (part > 0)
        least[0] = most[0] = least[0] + (part[0] >= 0.5)
        found[cells, step] += _corner(costs, LinearConstraint(matrix, least, most))
    return lattice.add_up(found)


def _corner(costs: NDArray[np.float64], sums: LinearConstraint) -> Integers:
    """Return which cells go up, 0 or 1: the program's corner that costs least. Raises ParameterError."""
    for whole in (0, 1):  # an answer of the linear program that is no corner is asked for in whole numbers
        answer = milp(costs, constraints=sums, bounds=Bounds(0, 1), integrality=np.full(costs.size, whole))
        if answer.success and np.all(np.abs(answer.x - np.rint(answer.x)) < WHOLE):
            found: Integers = np.rint(answer.x).astype(np.int64)
            return found
    raise ParameterError("values could not be rounded so that both margins add up")
