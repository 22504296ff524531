"""The aggregation hierarchy: who adds up to whom."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_NAMED = 5  # nodes that one error names
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class AggregationTree:
    """A rooted tree of named nodes; depth may differ from leaf to leaf.

    Args:
        nodes: Every name, root first, level by level, in input order within a level.
        parents: For each node the index of its parent in `nodes`; -1 for the root.
    """

    nodes: tuple[str, ...]
    parents: tuple[int, ...]

    def __hash__(self) -> int:
        """Return a hash that is computed once: trees are keys of caches, and have many nodes."""
        return self._shape_hash

    @cached_property
    def _shape_hash(self) -> int:
        """The hash of the parents: of whole numbers, so the same in every process that a tree is sent to."""
        return hash(self.parents)

    @classmethod
    def from_parents(cls, parents: Mapping[str, str | None]) -> "AggregationTree":
        """Return the tree of {child: parent}, its nodes ordered level by level. Raises ParameterError for no
        root, two roots, an unknown parent, a cycle or an empty name.

        Args:
            parents: Each node's parent; the root's is None.

        Examples:
            >>> tree = AggregationTree.from_parents({"all": None, "north": "all", "south": "all"})
            >>> tree.nodes, tree.leaves
            (('all', 'north', 'south'), ('north', 'south'))
        """
        if not isinstance(parents, Mapping):
            raise ParameterError(
                'a hierarchy must be given as {node: parent}, such as {"all": None, "84": "all"}; '
                f"got {type(parents).__name__}"
            )
        roots = [name for name, parent in parents.items() if parent is None]
        if len(roots) != 1:
            found = "none" if not roots else some_of(roots)
            raise ParameterError(
                f"a hierarchy must have exactly one root (a node without parent); got {found}"
            )
        for name, parent in parents.items():
            if not isinstance(name, str) or not name:
                raise ParameterError(f"a node's name must be a text that is not empty; got {name!r}")
            if parent is not None and parent not in parents:
                raise ParameterError(f"the parent {parent!r:.80} of node {name!r:.80} is not itself a node")
        # Within a level the order is the input's, not the parents'.
        nodes, level = list[str](), roots
        children = dict[str | None, list[str]]()
        for name, parent in parents.items():
            children.setdefault(parent, []).append(name)
        position = {name: place for place, name in enumerate(parents)}
        while level:
            nodes += level
            level = sorted(
                (one for name in level for one in children.get(name, ())), key=position.__getitem__
            )
        if len(nodes) != len(parents):
            lost = sorted(set(parents) - set(nodes))
            raise ParameterError(f"the hierarchy has a cycle through {some_of(lost)}")
        index: dict[str | None, int] = {name: number for number, name in enumerate(nodes)}
        return cls(tuple(nodes), tuple(index.get(parents[name], -1) for name in nodes))

    def parents_by_name(self) -> tuple[tuple[str, str | None], ...]:
        """Return (node, its parent) in the order of `nodes`, the root's parent None."""
        return tuple(
            (node, None if up < 0 else self.nodes[up])
            for node, up in zip(self.nodes, self.parents, strict=True)
        )

    @property
    def tree(self) -> "AggregationTree":
        """The same hierarchy without its margin, if it has one."""
        return self

    def level_name(self, level: int) -> str:
        """Return a level's name, such as "level 1"; of a margin its own."""
        return f"level {level}"

    def children_of(self, node: str) -> tuple[str, ...]:
        """Return a node's children in the order of `nodes`; of the root without those of a margin."""
        index = self.nodes.index(node)
        parts, wholes = self.sums[0]
        return tuple(self.nodes[part] for part in parts[wholes == index])

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The nodes without children, in the order of `nodes`."""
        return tuple(self.nodes[index] for index in self.leaf_indices)

    @cached_property
    def leaf_indices(self) -> NDArray[np.int64]:
        """Where the leaves stand in `nodes`, (n_leaves,)."""
        children = np.bincount(np.array(self.parents[1:], dtype=np.int64), minlength=len(self.nodes))
        return np.flatnonzero(children == 0)

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """The level of each node, root 0, (n_nodes,)."""
        # every node and its parent rise a level together, until all have reached the root
        parents = np.maximum(np.array(self.parents, dtype=np.int64), 0)
        depths, above = np.zeros(len(self.nodes), dtype=np.int64), np.arange(len(self.nodes))
        while above[-1]:  # the last node is of the deepest level
            depths += above > 0
            above = parents[above]
        return depths

    @cached_property
    def heights(self) -> NDArray[np.int64]:
        """How many levels above the deepest each node stands, (n_nodes,)."""
        return self.n_levels - 1 - self.depths

    @property
    def n_levels(self) -> int:
        """How many levels it has, the root's included."""
        return int(self.depths[-1]) + 1

    @cached_property
    def levels(self) -> tuple[range, ...]:
        """For each level the range of its nodes in `nodes`."""
        bounds = np.searchsorted(self.depths, np.arange(self.n_levels + 1))
        return tuple(range(int(start), int(stop)) for start, stop in itertools.pairwise(bounds))

    @cached_property
    def leaves_below(self) -> NDArray[np.int64]:
        """How many leaves each node covers, (n_nodes,)."""
        return self.add_up(np.ones((len(self.leaves), 1), dtype=np.int64))[:, 0]

    @cached_property
    def sums(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """(nodes, their parents), places in `nodes`: the parts of a node, of each entry, add up to it."""
        return ((np.arange(1, len(self.nodes)), np.array(self.parents[1:], dtype=np.int64)),)

    @cached_property
    def parts_of_levels(self) -> tuple["csr_array", ...]:
        """For each level but the root's a matrix of ones, (nodes above, nodes), of each node's parent. Many
        times as fast as `np.add.at`, in the same order."""
        # the help of a command needs none of it
        from scipy.sparse import csr_array

        found = []
        for above, nodes in itertools.pairwise(self.levels):
            parents = np.array(self.parents[nodes.start : nodes.stop]) - above.start
            places = parents, np.arange(len(nodes))
            ones = np.ones(len(nodes), dtype=np.int8)
            found.append(csr_array((ones, places), shape=(len(above), len(nodes))))
        return tuple(found)

    def leaves_in(self, nodes: Collection[str]) -> NDArray[np.float64]:
        """Return the weights of the leaves in the sum of some nodes, (n_leaves,): 1 inside, else 0. Raises
        ParameterError for a name that is no node, and for two nodes that share a leaf.

        Args:
            nodes: Their names, at least one.
        """
        covered = np.zeros(len(self.nodes))
        for name in several(nodes):
            if name not in self.nodes:
                raise ParameterError(f"nodes must be names of the release's nodes; got {name!r:.80}")
            covered[self.nodes.index(name)] += 1.0
        found = self._from_above(covered)
        if found.max() != 1:
            raise ParameterError("nodes of a sum must be at least one, and no two may share a leaf")
        return found

    def _from_above(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the weights, (n_nodes,), of all nodes that each leaf lies in, (n_leaves,)."""
        found = weights.copy()
        for level in self.levels[1:]:
            found[level.start : level.stop] += found[list(self.parents[level.start : level.stop])]
        return found[self.leaf_indices]

    def add_up(self, leaf_values: NDArray[Number]) -> NDArray[Number]:
        """Return every node's values from the leaves': each node the sum of its children, exact for integers.
        Raises ParameterError on another shape.

        Args:
            leaf_values: (…, n_leaves, n_columns), in the order of `leaves`.

        Returns:
            (…, n_nodes, n_columns), in the order of `nodes`.
        """
        if leaf_values.ndim < 2 or leaf_values.shape[-2] != len(self.leaves):
            raise ParameterError(
                f"values must have shape (…, {len(self.leaves)} leaves, n_steps); got {leaf_values.shape}"
            )
        totals = np.zeros(
            (*leaf_values.shape[:-2], len(self.nodes), leaf_values.shape[-1]), leaf_values.dtype
        )
        totals[..., self.leaf_indices, :] = leaf_values
        by_node = np.moveaxis(totals, -2, 0)
        pairs = zip(itertools.pairwise(self.levels), self.parts_of_levels, strict=True)
        for (above, nodes), matrix in reversed(list(pairs)):
            parts = by_node[nodes.start : nodes.stop]
            sums = matrix @ parts.reshape(len(parts), math.prod(parts.shape[1:]))
            by_node[above.start : above.stop] += sums.reshape(len(sums), *parts.shape[1:])
        return totals


Names = TypeVar("Names", bound=Collection[str])


def several(nodes: Names) -> Names:
    """Return names of nodes as they are. Raises ParameterError for one text, whose letters would be names."""
    if isinstance(nodes, str):
        raise ParameterError(
            f"nodes must be several names, such as [{nodes!r:.80}]; got the text {nodes!r:.80}"
        )
    return nodes


def some_of(names: Sequence[str]) -> str:
    """Return the first few names, quoted, and how many more there are: a hierarchy may have a million."""
    shown = ", ".join(f"{name!r:.80}" for name in names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED:,} more"
