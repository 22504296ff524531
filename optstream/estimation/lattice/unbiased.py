"""Whole units that add up both ways and are right on average: dependent rounding of a flow."""

from collections.abc import Iterator
from hashlib import sha256
from itertools import count

import numpy as np
from numpy.typing import NDArray

from optstream.stream.lattice import Lattice

Integers = NDArray[np.int64]
Ends = tuple[list[int], list[int]]


def unbiased_lattice(
    whole: Integers, rests: Integers, lattice: Lattice, bits: int, first_step: int
) -> Integers:
    """Return every node's units, (n_nodes, n_steps), each rounded up as often as its rest says, tree and
    margin adding up; free.

    Lemma: values are a flow. From one vertex it goes to the root, down the tree to the regions, along each
    cell to its node of the margin and back to the first; each node of the lattice is one edge. As much flows
    into a vertex as out of it, so where one edge at a vertex is not whole another is not, and edges that are
    not whole hold a circle. Along it as much can be added (taken from edges that are passed backwards) until
    one is whole, or taken; each is done with the odds that change none of the values on average. So every
    step leaves fewer edges that are not whole, none leaves its floor and ceiling, and all sums stay.

    The odds are hashes of the step's running index: a function of the arguments alone. whole, rests, bits: as
    `rounded_lattice`.

    Source: Gandhi, Khuller, Parthasarathy and Srinivasan 2006, "Dependent rounding and its applications to
    approximation algorithms", for paths and circles of a bipartite graph; Cox 1987 for tables.
    """
    one, found = 1 << bits, whole.copy()
    left = lattice.add_up(rests) & (one - 1)
    outside = len(lattice.nodes)
    tails = np.where(np.array(lattice.parents) < 0, outside, lattice.parents)
    heads = np.arange(outside)
    heads[lattice.leaf_indices] = lattice.margin_nodes.start + np.array(lattice.members)
    margin = np.array(lattice.margin_nodes)
    tails[margin], heads[margin] = margin, outside
    ends = tails.tolist(), heads.tolist()
    for step in range(rests.shape[1]):
        flows = _whole_flows(left[:, step].tolist(), ends, one, _odds(first_step + step))
        found[:, step] += np.array(flows)[lattice.leaf_indices] == one
    return lattice.add_up(found)


def _whole_flows(flows: list[int], ends: Ends, one: int, odds: Iterator[float]) -> list[int]:
    """Return for each edge 0 or one."""
    at: list[list[int]] = [[] for _ in range(len(flows) + 1)]
    for number, flow in enumerate(flows):
        if flow:
            for side in ends:
                at[side[number]].append(number)

    def another(vertex: int, but: int) -> int | None:
        edges = at[vertex]
        while edges and not 0 < flows[edges[-1]] < one:
            edges.pop()
        return next((edge for edge in reversed(edges) if edge != but and 0 < flows[edge] < one), None)

    for start in range(len(at)):
        path, passed = list[int](), [start]  # edges, and the vertices before and after each
        while (edge := another(passed[-1], path[-1] if path else -1)) is not None:
            path.append(edge)
            vertex = ends[1][edge] if ends[0][edge] == passed[-1] else ends[0][edge]
            if vertex in passed:
                first = passed.index(vertex)
                _push(path[first:], passed[first:], ends[0], flows, one, odds)
                path, passed = path[:first], passed[: first + 1]
            else:
                passed.append(vertex)
    return flows


def _push(
    circle: list[int], passed: list[int], tails: list[int], flows: list[int], one: int, odds: Iterator[float]
) -> None:
    """Change the flows along a circle until one of them is whole; on average by nothing."""
    forward = [tails[edge] == vertex for edge, vertex in zip(circle, passed, strict=True)]
    most = min(
        one - flows[edge] if ahead else flows[edge] for edge, ahead in zip(circle, forward, strict=True)
    )
    least = min(
        flows[edge] if ahead else one - flows[edge] for edge, ahead in zip(circle, forward, strict=True)
    )
    change = most if next(odds) * (most + least) < least else -least
    for edge, ahead in zip(circle, forward, strict=True):
        flows[edge] += change if ahead else -change


def _odds(step: int) -> Iterator[float]:
    """Yield numbers that fill [0, 1) evenly and tell nothing of each other: the same for a step each time."""
    for number in count():
        digest = sha256(f"{step} {number}".encode()).digest()
        yield int.from_bytes(digest[:8], "big") / 2.0**64
