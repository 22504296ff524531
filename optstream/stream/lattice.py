"""A hierarchy with a margin: the same leaves are added up in a second way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.stream.tree import AggregationTree, Number, some_of

MOST_MARGIN_NODES = 500
"""Nodes of a margin: the estimate solves a dense system of these and of the nodes above the regions."""


@dataclass(frozen=True)
class Lattice(AggregationTree):
    """A tree whose leaves, its cells, are partitioned a second time, by a margin such as the sector.

    Nodes of the margin stand after those of the tree, as one more level: the last. Each is the sum of its
    leaves, and together they are the root, which is their parent. Like a level of the tree, the margin
    partitions the leaves. Raises ParameterError for leaves at several depths, none below the root, a margin
    of no or too many nodes, one without a leaf, or a leaf in none.

    Args:
        nodes: The tree's, root first, then the margin's.
        parents: As a tree's; 0, the root, for the margin's nodes.
        margin: Its name, such as "sector".
        members: For each leaf, in the order of `leaves`, the number of its node among the margin's.
    """

    margin: str
    members: tuple[int, ...]

    def __post_init__(self) -> None:
        n_groups = len(set(self.members))
        split = len(self.nodes) - n_groups
        if not 0 < n_groups <= MOST_MARGIN_NODES:
            raise ParameterError(
                f"a margin must have 1 to {MOST_MARGIN_NODES} nodes, each with a leaf; got {n_groups}"
            )
        if set(self.members) != set(range(n_groups)) or any(self.parents[split:]) or split < 2:
            raise ParameterError("each node of a margin must have a leaf, below the root of a hierarchy")
        if len(self.members) != len(self.tree.leaves):
            raise ParameterError(
                f"each of {len(self.tree.leaves)} leaves must lie in one node of margin {self.margin!r:.80}; "
                f"got {len(self.members)}"
            )
        if len(self.tree.levels[-1]) != len(self.members):
            raise ParameterError("with a margin, all leaves of a hierarchy must stand on its last level")

    @classmethod
    def of_tree(cls, tree: AggregationTree, margin: str, cells: Mapping[str, Sequence[str]]) -> "Lattice":
        """Return a tree with a margin. Raises ParameterError where a node of the margin is one of the tree, a
        leaf is in none or several, a cell is no leaf, or as the class.

        Args:
            tree: Its leaves are the cells.
            margin: The margin's name.
            cells: For each of its nodes the leaves that add up to it.
        """
        if shared := [name for name in cells if name in tree.nodes]:
            raise ParameterError(
                f"nodes of margin {margin!r:.80} must not be in the tree; got {some_of(shared)}"
            )
        if empty := [name for name, own in cells.items() if not own]:
            raise ParameterError(f"each node of a margin must have a leaf; {some_of(empty)} has none")
        found: dict[str, int] = {}
        for number, (node, own) in enumerate(cells.items()):
            for leaf in own:
                if leaf in found:
                    raise ParameterError(
                        f"margin {margin!r:.80} must have each leaf in one node; {leaf!r:.80} is in "
                        f"{node!r:.80} and in another"
                    )
                found[leaf] = number
        if unlike := sorted({*found} ^ {*tree.leaves}):
            raise ParameterError(
                f"margin {margin!r:.80} must have all leaves of the hierarchy and nothing else; "
                f"see {some_of(unlike)}"
            )
        members = tuple(found[leaf] for leaf in tree.leaves)
        return cls((*tree.nodes, *cells), (*tree.parents, *(0 for _ in cells)), margin, members)

    @cached_property
    def tree(self) -> AggregationTree:
        """The same hierarchy without the margin."""
        split = len(self.nodes) - len(set(self.members))
        return AggregationTree(self.nodes[:split], self.parents[:split])

    def level_name(self, level: int) -> str:
        """Return a level's name; the last is the margin's."""
        return self.margin if level == self.tree.n_levels else super().level_name(level)

    def children_of(self, node: str) -> tuple[str, ...]:
        """Return the nodes that add up to one: its cells, of a node of the margin."""
        number = self.nodes.index(node) - self.margin_nodes.start
        if number < 0:
            return self.tree.children_of(node)
        return tuple(leaf for leaf, own in zip(self.leaves, self.members, strict=True) if own == number)

    @cached_property
    def cells(self) -> Mapping[str, tuple[str, str]]:
        """Each leaf's node above it, and its node of the margin."""
        margin = self.nodes[self.margin_nodes.start :]
        above = (self.nodes[self.parents[leaf]] for leaf in self.leaf_indices)
        return {
            leaf: (region, margin[number])
            for leaf, region, number in zip(self.leaves, above, self.members, strict=True)
        }

    @property
    def margin_nodes(self) -> range:
        """Where the margin's nodes stand in `nodes`."""
        return range(len(self.tree.nodes), len(self.nodes))

    @cached_property
    def leaf_indices(self) -> NDArray[np.int64]:
        """Where the leaves stand in `nodes`, (n_leaves,)."""
        return self.tree.leaf_indices

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """The level of each node, root 0, the margin's the last, (n_nodes,)."""
        return np.append(self.tree.depths, [self.tree.n_levels] * len(self.margin_nodes))

    @cached_property
    def heights(self) -> NDArray[np.int64]:
        """How far above the cells each node stands, (n_nodes,): 0 for a cell, 1 for a region or a sector."""
        return np.append(self.tree.heights, [1] * len(self.margin_nodes))

    @cached_property
    def sums(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """Who adds up to whom: the tree, the margin to the root, and the leaves to the margin."""
        margin = np.array(self.margin_nodes)
        leaves = self.leaf_indices, margin[list(self.members)]
        return (*self.tree.sums, (margin, np.zeros_like(margin)), leaves)

    def _from_above(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        of_tree, margin = np.split(weights, [self.margin_nodes.start])
        return self.tree._from_above(of_tree) + margin[list(self.members)]

    def add_up(self, leaf_values: NDArray[Number]) -> NDArray[Number]:
        """Return every node's values from the leaves', exact for integers, the margin's after the tree's."""
        totals = self.tree.add_up(leaf_values)
        shape = (*leaf_values.shape[:-2], len(self.margin_nodes), leaf_values.shape[-1])
        margin = np.zeros(shape, leaf_values.dtype)
        np.add.at(np.moveaxis(margin, -2, 0), np.array(self.members), np.moveaxis(leaf_values, -2, 0))
        return np.concatenate([totals, margin], axis=-2)


def refuse_margin(tree: AggregationTree, name: str) -> None:
    """Raise ParameterError for a tree with a margin, naming the mechanism, which adds up over trees alone."""
    if isinstance(tree, Lattice):
        raise ParameterError(
            f"{name} takes no margin, such as {tree.margin!r:.80}: take another mechanism, such as Laplace, "
            "or leave the margin out"
        )


# A margin as it is declared: a name and its nodes, which make cells of the leaves of a tree.

BETWEEN = "-"  # between the code of a leaf and that of a node of the margin, in the code of their cell


@dataclass(frozen=True)
class Margin:
    """A second way to add up: each leaf has a cell for each of these nodes, or for those in `cells`."""

    name: str
    nodes: tuple[str, ...]
    cells: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def nodes_of(self, leaf: str) -> tuple[str, ...]:
        """Return which of the margin's nodes a leaf of the tree has a cell of, in their order."""
        own = dict(self.cells).get(leaf, self.nodes)
        return tuple(node for node in self.nodes if node in own)

    def cells_of(self, leaf: str) -> tuple[str, ...]:
        """Return the codes of a leaf's cells, such as "53-industry", in the order of the margin's nodes."""
        return tuple(f"{leaf}{BETWEEN}{node}" for node in self.nodes_of(leaf))

    def on(self, tree: AggregationTree) -> Lattice:
        """Return a tree, whose leaves are the regions, with its cells below its leaves, and the margin."""
        leaves = {*tree.leaves}
        for leaf, own in self.cells:
            if leaf not in leaves:
                raise ParameterError(f"cells must be of leaves of the hierarchy; {leaf!r:.80} is none")
            unknown = [node for node in own if node not in self.nodes]
            if unknown or not own:
                raise ParameterError(
                    f"cells of {leaf!r:.80} must be of one or more nodes of margin {self.name!r:.80}; "
                    f"got {some_of(unknown) if unknown else 'none'}"
                )
        # those that are not there count too: a row of such a cell must not be taken for one of another
        complete = (f"{leaf}{BETWEEN}{node}" for leaf in tree.leaves for node in self.nodes)
        codes = Counter([*tree.nodes, *complete, *self.nodes])
        if twice := [name for name, times in codes.items() if times > 1]:
            raise ParameterError(
                f"with margin {self.name!r:.80} each code must stand for one node, where that of a cell is "
                f"region{BETWEEN}node; {some_of(twice)} would be used twice"
            )
        of_nodes: dict[str, list[str]] = {node: [] for node in self.nodes}
        parents: dict[str, str | None] = dict(tree.parents_by_name())
        for leaf in tree.leaves:
            for node, cell in zip(self.nodes_of(leaf), self.cells_of(leaf), strict=True):
                of_nodes[node].append(cell)
                parents[cell] = leaf
        return Lattice.of_tree(AggregationTree.from_parents(parents), self.name, of_nodes)
