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
    """A second way to add up: each leaf of a tree has a cell for each node of the margin.

    Attributes:
        name: What the margin is called, such as "sector".
        nodes: Its nodes, such as "industry" and "households".
    """

    name: str
    nodes: tuple[str, ...]

    def cells_of(self, leaf: str) -> tuple[str, ...]:
        """Return the codes of a leaf's cells, in the order of the margin's nodes.

        Args:
            leaf: Of the tree without cells.

        Returns:
            Such as "53-industry".
        """
        return tuple(f"{leaf}{BETWEEN}{node}" for node in self.nodes)

    def on(self, tree: AggregationTree) -> Lattice:
        """Return a tree with its cells below its leaves, and the margin beside it.

        Args:
            tree: Its leaves are the regions.

        Returns:
            The lattice.

        Raises:
            ParameterError: The tree's leaves are not all on one level, or a code would be used twice.
        """
        below = {leaf: self.cells_of(leaf) for leaf in tree.leaves}
        every = [cell for cells in below.values() for cell in cells]
        twice = _twice([*tree.nodes, *every, *self.nodes])
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
        of_nodes = {
            node: [cells[number] for cells in below.values()] for number, node in enumerate(self.nodes)
        }
        return Lattice.of_tree(whole, self.name, of_nodes)


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]
