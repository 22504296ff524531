"""A margin as it is declared: a name and its nodes, which make cells of the leaves of a tree."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from optstream.errors import ParameterError
from optstream.stream.aggregation_tree import AggregationTree, some_of
from optstream.stream.lattice import Lattice

BETWEEN = "-"
"""Between the code of a leaf and that of a node of the margin, in the code of their cell."""


@dataclass(frozen=True)
class Margin:
    """A second way to add up: each leaf of a tree has a cell for each node of the margin, or for some.

    Attributes:
        name: What the margin is called, such as "sector".
        nodes: Its nodes, such as "industry" and "households".
        cells: (leaf, its nodes of the margin), of each leaf that has not all of them.
    """

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
        """Return a tree, whose leaves are the regions, with its cells below its leaves, and the margin beside
        it.

        Raises ParameterError where the tree's leaves are not all on one level, a code would be used twice,
        cells are of what is no leaf or no node of the margin, or a leaf or a node has none.
        """
        self._check_cells(tree)
        below = {leaf: self.cells_of(leaf) for leaf in tree.leaves}
        # those that are not there count too: a row of such a cell must not be taken for one of another
        complete = [f"{leaf}{BETWEEN}{node}" for leaf in tree.leaves for node in self.nodes]
        twice = _twice([*tree.nodes, *complete, *self.nodes])
        if twice:
            raise ParameterError(
                f"with margin {self.name!r:.80} each code must stand for one node, where that of a cell is "
                f"region{BETWEEN}node; {some_of(twice)} would be used twice"
            )
        whole = AggregationTree.from_parents(
            {
                **dict(tree.parents_by_name()),
                **{cell: leaf for leaf, cells in below.items() for cell in cells},
            }
        )
        of_nodes: dict[str, list[str]] = {node: [] for node in self.nodes}
        for leaf, cells in below.items():
            for node, cell in zip(self.nodes_of(leaf), cells, strict=True):
                of_nodes[node].append(cell)
        return Lattice.of_tree(whole, self.name, of_nodes)

    def _check_cells(self, tree: AggregationTree) -> None:
        leaves, known = set(tree.leaves), set(self.nodes)
        for leaf, own in self.cells:
            if leaf not in leaves:
                raise ParameterError(f"cells must be of leaves of the hierarchy; {leaf!r:.80} is none")
            unknown = [node for node in own if node not in known]
            if unknown or not own:
                raise ParameterError(
                    f"cells of {leaf!r:.80} must be of one or more nodes of margin {self.name!r:.80}; "
                    f"got {some_of(unknown) if unknown else 'none'}"
                )


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]
