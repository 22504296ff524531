"""Whole units for every node, so that nodes still add up: controlled rounding."""

from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation.lattice.rounding import rounded_lattice
from optstream.estimation.lattice.unbiased import unbiased_lattice
from optstream.stream import AggregationTree, Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rule = Literal["nearest", "unbiased"]
BITS = 20
"""Of a unit's fraction: finer ones are a float's rounding, and leaves that share evenly are to be equal."""
MOST_UNITS = 2.0**62
"""Of all leaves at a step: as many as are added up exactly."""
GOLDEN = (5.0**0.5 - 1.0) / 2.0


def rounded_units(
    values: Floats,
    tree: AggregationTree,
    resolution: Fraction,
    rule: Rule = "nearest",
    *,
    first_step: int = 0,
    least: int | None = None,
) -> Integers:
    """Round every node to whole units of the resolution, such that each is the sum of its children.

    "nearest": the root to the nearest; then, family by family, as many children are rounded up as the parent
    needs, those with the largest remainders, of equal ones the first: given its parent, each family's sum of
    squared (and of absolute) changes is the least there is.

    "unbiased": leaf j becomes floor(c_j + h) - floor(c_(j-1) + h), c the running sums of the leaves, every
    node's leaves in a row, and h an offset in [0, 1) of the step: were h uniform, every node's expected
    change would be 0. h runs through multiples of the golden section, which fill [0, 1) evenly, so a node's
    mean over steps stays.

    Lemma: every node becomes its value rounded up or down, so it changes by less than a unit, and a value
    that is whole stays. "nearest": a family's whole numbers lie between the sums of their floors and of their
    ceilings, and sum floor(x_c) <= floor(p) <= ceil(p) <= sum ceil(x_c) for p = sum x_c; so of the children
    that are not whole as many can be rounded up as the parent needs, and by induction from the root each is
    rounded up or down. "unbiased": floor(a + x) - floor(a) is floor(x) or ceil(x), and every node's leaves
    are a run, whose sum telescopes to that form. Leaf values count to 2^-20 of a unit and are integers from
    then on, so sums are exact.

    Beside a margin by `rounded_lattice` and `unbiased_lattice`: every node is rounded up or down, too.

    A function of its arguments alone: of the leaves' values, (n_nodes, n_steps), in the unit of the readings,
    whose sums the nodes are. Time linear in nodes times steps, but that "nearest" sorts. Costs no privacy.
    Raises ParameterError for another rule; for values that are not finite, or too many units to count.

    first_step: the running index of the first step; only "unbiased" asks for it. least: units that every leaf
    has at least; a leaf below is raised to it before.

    Source: Cox 1987, "A constructive procedure for unbiased controlled rounding", for the problem; the rules
    are those of largest remainders and of systematic sampling.
    """
    if rule not in get_args(Rule):
        raise ParameterError(f"rule of rounding must be one of {get_args(Rule)}; got {rule!r}")
    units = values[tree.leaf_indices] / float(resolution)
    if not np.all(np.abs(units).sum(axis=0) < MOST_UNITS):
        raise ParameterError(
            f"values must be finite, and together less than {MOST_UNITS:.1e} of a resolution"
        )
    floors = np.floor(units)
    rests = np.rint((units - floors) * 2.0**BITS).astype(np.int64)
    whole = floors.astype(np.int64) + (rests >> BITS)
    rests &= (1 << BITS) - 1
    if least is not None:
        below = whole < least
        whole[below], rests[below] = least, 0
    if isinstance(tree, Lattice):
        if rule == "unbiased":
            return unbiased_lattice(whole, rests, tree, BITS, first_step)
        return rounded_lattice(whole, rests, tree, BITS)
    if rule == "unbiased":
        return _unbiased(whole, rests, tree, first_step)
    added, left = tree.add_up(whole), tree.add_up(rests)
    return _nearest(added + (left >> BITS), left & ((1 << BITS) - 1), tree)


def _nearest(floors: Integers, rests: Integers, tree: AggregationTree) -> Integers:
    """Return every node's units, each node as near as its family's sum allows.

    floors, rests: of every node, (n_nodes, n_steps); rests in parts of 2^BITS.
    """
    found = floors.copy()
    found[0] += rests[0] >= 1 << (BITS - 1)
    parents = np.array(tree.parents)
    for level in tree.levels[1:]:
        nodes = np.arange(level.start, level.stop)
        family = parents[nodes]
        needed = found.copy()
        np.subtract.at(needed, family, floors[nodes])
        sizes = np.bincount(family, minlength=len(parents))
        before = np.cumsum(sizes) - sizes
        place = np.empty(len(nodes), dtype=np.int64)
        for step in range(floors.shape[1]):
            # families in a row, in each the largest remainders first, equal ones as they stand
            ranked = np.argsort((family << (BITS + 1)) - rests[nodes, step], kind="stable")
            place[ranked] = np.arange(len(nodes)) - before[family[ranked]]
            found[nodes, step] += place < needed[family, step]
    return found


def _unbiased(whole: Integers, rests: Integers, tree: AggregationTree, first_step: int) -> Integers:
    """Return every node's units, leaves rounded up as often as their rests say, with no draw.

    whole, rests: of the leaves, (n_leaves, n_steps).
    """
    order = _in_runs(tree)
    offsets = (0.5 + (first_step + np.arange(rests.shape[1])) * GOLDEN) % 1.0
    shifted = np.cumsum(rests[order], axis=0) + np.floor(offsets * 2.0**BITS).astype(np.int64)
    found = whole.copy()
    found[order] += np.diff(shifted >> BITS, axis=0, prepend=0)
    return tree.add_up(found)


def _in_runs(tree: AggregationTree) -> Integers:
    """Return numbers of leaves, in `tree.leaf_indices`, in an order in which every node's are a run.

    A node's place is where its leaves begin: its parent's place, and the leaves of the siblings before it.
    """
    parents, first = np.array(tree.parents), np.zeros(len(tree.nodes), dtype=np.int64)
    below = tree.leaves_below
    for level in tree.levels[1:]:
        nodes = np.arange(level.start, level.stop)
        nodes = nodes[np.argsort(parents[nodes], kind="stable")]
        up, sizes = parents[nodes], below[nodes]
        before = np.cumsum(sizes) - sizes
        begins = np.flatnonzero(np.concatenate([[True], up[1:] != up[:-1]]))
        lengths = np.diff(np.concatenate([begins, [len(nodes)]]))
        first[nodes] = first[up] + before - np.repeat(before[begins], lengths)
    return np.argsort(first[tree.leaf_indices], kind="stable")
