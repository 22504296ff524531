"""Whole units for every node, so that nodes still add up: controlled rounding."""

from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from itertools import count
from typing import Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.stream import AggregationTree
from optstream.stream.lattice import Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rule = Literal["nearest", "unbiased"]
Ends = tuple[list[int], list[int]]

BITS = 20
"""Of a unit's fraction: finer ones are a float's rounding, and leaves that share evenly are to be equal."""
ONE = 1 << BITS
MOST_UNITS = 2.0**62  # of all leaves at a step: as many as are added up exactly
RISE = 4.0  # how much more the change of a node counts than that of a node one level below
GOLDEN = (5.0**0.5 - 1.0) / 2.0
WHOLE = 1e-6  # how far an answer may lie from a whole number, by the solver's tolerance
APART = 2.0**-10  # how far apart cells of equal rests are weighed, so that one answer is the best


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
    needs, those with the largest remainders, of equal ones the first. "unbiased": leaf j becomes floor(c_j +
    h) - floor(c_(j-1) + h), c the running sums of the leaves, every node's leaves in a row, and h an offset
    in [0, 1) of the step: multiples of the golden section, so a node's mean over steps stays.

    Lemma: every node becomes its value rounded up or down. "nearest": sum floor(x_c) <= floor(p) <= ceil(p)
    <= sum ceil(x_c) for p = sum x_c, so of the children that are not whole as many can be rounded up as the
    parent needs. "unbiased": floor(a + x) - floor(a) is floor(x) or ceil(x), and the sum over a node's leaves
    telescopes to that form.

    A leaf below `least` units is raised to it before. Leaf values count to 2^-20 of a unit. Source: Cox 1987,
    "A constructive procedure for unbiased controlled rounding", for the problem; the rules are those of
    largest remainders and of systematic sampling.
    """
    if rule not in get_args(Rule):
        raise ParameterError(f"rule of rounding must be one of {get_args(Rule)}; got {rule!r}")
    units = values[tree.leaf_indices] / float(resolution)
    if not np.all(np.abs(units).sum(axis=0) < MOST_UNITS):
        raise ParameterError(
            f"values must be finite, and together less than {MOST_UNITS:.1e} of a resolution"
        )
    floors = np.floor(units)
    rests = np.rint((units - floors) * ONE).astype(np.int64)
    whole = floors.astype(np.int64) + (rests >> BITS)
    rests &= ONE - 1
    if least is not None:
        below = whole < least
        whole[below], rests[below] = least, 0
    if isinstance(tree, Lattice):
        if rule == "unbiased":
            return _unbiased_lattice(whole, rests, tree, first_step)
        return _nearest_lattice(whole, rests, tree)
    return _unbiased(whole, rests, tree, first_step) if rule == "unbiased" else _nearest(whole, rests, tree)


def _nearest(whole: Integers, rests: Integers, tree: AggregationTree) -> Integers:
    """Return every node's units, as near as its family's sum allows."""
    left = tree.add_up(rests)
    floors, rests = tree.add_up(whole) + (left >> BITS), left & (ONE - 1)
    found, parents = floors.copy(), np.array(tree.parents)
    found[0] += rests[0] >= ONE // 2
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
            ranked = np.lexsort((-rests[nodes, step], family))
            place[ranked] = np.arange(len(nodes)) - before[family[ranked]]
            found[nodes, step] += place < needed[family, step]
    return found


def _unbiased(whole: Integers, rests: Integers, tree: AggregationTree, first_step: int) -> Integers:
    """Return every node's units, leaves rounded up as often as their rests say, without randomness."""
    parents, above = np.array(tree.parents), [tree.leaf_indices]
    for depth in range(tree.n_levels - 2, 0, -1):
        above.append(np.where(tree.depths[above[-1]] > depth, parents[above[-1]], above[-1]))
    order = np.lexsort(above)  # in which every node's leaves are a run
    offsets = (0.5 + (first_step + np.arange(rests.shape[1])) * GOLDEN) % 1.0
    shifted = np.cumsum(rests[order], axis=0) + np.floor(offsets * ONE).astype(np.int64)
    found = whole.copy()
    found[order] += np.diff(shifted >> BITS, axis=0, prepend=0)
    return tree.add_up(found)


def _nearest_lattice(whole: Integers, rests: Integers, lattice: Lattice) -> Integers:
    """Return every node's units, each rounded up or down, such that tree and margin both add up.

    Lemma: the matrix of two laminar families (the tree's nodes; the margin's and the root) is totally
    unimodular (Edmonds 1970), so the polytope of all roundings has whole corners. The cells' own remainders
    are a mean of corners, so some corner has the root's floor and some its ceiling: the root goes to the
    nearest. Of the corners left, one costs least: a cost is each node's absolute change, nodes above more.

    One linear program a step, by HiGHS. whole, rests: (n_leaves, n_steps), units rounded down, and remainders
    in parts of 2^BITS.
    """
    left = lattice.add_up(rests)
    down, fractions = left >> BITS, (left & (ONE - 1)) / ONE
    inner = np.setdiff1d(np.arange(len(lattice.nodes)), lattice.leaf_indices)
    holds = scipy.sparse.csr_array(lattice.add_up(np.eye(len(lattice.leaves)))[inner])
    weight = RISE ** lattice.heights[inner].astype(np.float64)
    order = np.arange(len(lattice.leaves)) * GOLDEN % 1.0 * APART
    found = whole.copy()
    for step in np.flatnonzero(rests.any(axis=0)):
        cells = np.flatnonzero(rests[:, step])
        matrix, part = holds[:, cells], fractions[inner, step]
        costs = ((1.0 - 2.0 * part) * weight) @ matrix + 1.0 - 2.0 * rests[cells, step] / ONE + order[cells]
        least = down[inner, step].astype(np.float64)
        most = least + (part > 0)
        least[0] = most[0] = least[0] + (part[0] >= 0.5)
        found[cells, step] += _corner(costs, scipy.optimize.LinearConstraint(matrix, least, most))
    return lattice.add_up(found)


def _corner(costs: Floats, sums: "scipy.optimize.LinearConstraint") -> Integers:
    """Return which cells go up, 0 or 1: the program's corner that costs least. Raises ParameterError."""
    for whole in (0, 1):  # where the linear program's answer is no corner, the integer program is solved
        answer = scipy.optimize.milp(
            costs,
            constraints=sums,
            bounds=scipy.optimize.Bounds(0, 1),
            integrality=np.full(costs.size, whole),
        )
        if answer.success and np.all(np.abs(answer.x - np.rint(answer.x)) < WHOLE):
            found: Integers = np.rint(answer.x).astype(np.int64)
            return found
    raise ParameterError("values could not be rounded so that both margins add up")


def _unbiased_lattice(whole: Integers, rests: Integers, lattice: Lattice, first_step: int) -> Integers:
    """Return every node's units, each rounded up as often as its remainder says, tree and margin adding up.

    Lemma: values are a flow: from one vertex to the root, down the tree to the regions, along each cell to
    its node of the margin and back. Where one edge at a vertex is not whole another is not, so these edges
    hold a circle. Along it as much is added or taken until one is whole, with the odds that change none of
    the values on average. So every step leaves fewer edges that are not whole, and all sums stay. The odds
    are hashes of the step.

    Source: Gandhi, Khuller, Parthasarathy and Srinivasan 2006, "Dependent rounding and its applications to
    approximation algorithms"; Cox 1987 for tables.
    """
    found, left = whole.copy(), lattice.add_up(rests) & (ONE - 1)
    outside = len(lattice.nodes)
    tails = np.where(np.array(lattice.parents) < 0, outside, lattice.parents)
    heads = np.arange(outside)
    heads[lattice.leaf_indices] = lattice.margin_nodes.start + np.array(lattice.members)
    margin = np.array(lattice.margin_nodes)
    tails[margin], heads[margin] = margin, outside
    ends = tails.tolist(), heads.tolist()
    for step in range(rests.shape[1]):
        flows = _whole_flows(left[:, step].tolist(), ends, _odds(first_step + step))
        found[:, step] += np.array(flows)[lattice.leaf_indices] == ONE
    return lattice.add_up(found)


def _whole_flows(flows: list[int], ends: Ends, odds: Iterator[float]) -> list[int]:
    """Return for each edge 0 or `ONE`."""
    at: list[list[int]] = [[] for _ in range(len(flows) + 1)]
    for number, flow in enumerate(flows):
        if flow:
            for side in ends:
                at[side[number]].append(number)

    def another(vertex: int, but: int) -> int | None:
        edges = at[vertex]
        while edges and not 0 < flows[edges[-1]] < ONE:
            edges.pop()
        return next((edge for edge in reversed(edges) if edge != but and 0 < flows[edge] < ONE), None)

    for start in range(len(at)):
        path, passed = list[int](), [start]  # edges, and the vertices before and after each
        while (edge := another(passed[-1], path[-1] if path else -1)) is not None:
            path.append(edge)
            vertex = ends[1][edge] if ends[0][edge] == passed[-1] else ends[0][edge]
            if vertex in passed:
                first = passed.index(vertex)
                _push(path[first:], passed[first:], ends[0], flows, odds)
                path, passed = path[:first], passed[: first + 1]
            else:
                passed.append(vertex)
    return flows


def _push(
    circle: list[int], passed: list[int], tails: list[int], flows: list[int], odds: Iterator[float]
) -> None:
    """Change the flows along a circle until one of them is whole; on average by nothing."""
    ahead = [tails[edge] == vertex for edge, vertex in zip(circle, passed, strict=True)]
    ways = [(ONE - flows[edge], flows[edge]) for edge in circle]
    most = min(up if is_ahead else down for (up, down), is_ahead in zip(ways, ahead, strict=True))
    least = min(down if is_ahead else up for (up, down), is_ahead in zip(ways, ahead, strict=True))
    change = most if next(odds) * (most + least) < least else -least
    for edge, is_ahead in zip(circle, ahead, strict=True):
        flows[edge] += change if is_ahead else -change


def _odds(step: int) -> Iterator[float]:
    """Yield pseudo-random numbers in [0, 1), the same for a step each time."""
    for number in count():
        digest = sha256(f"{step} {number}".encode()).digest()
        yield int.from_bytes(digest[:8], "big") / 2.0**64
