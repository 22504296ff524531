"""What each node of a tree was made of in the tree before one or more changes: a public, linear map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optstream.errors import ParameterError
from optstream.stream.aggregation_tree import AggregationTree
from optstream.stream.hierarchy.tree_change import TreeChange

Parts = Mapping[str, Fraction]
"""{code of a leaf before: which share of it}."""


@dataclass(frozen=True)
class TreeMap:
    """From the nodes of one tree to those of the tree that follows it.

    Attributes:
        before: The tree of the days before.
        after: The tree of the days from then on.
        leaves: For each leaf of `after` the leaves of `before` that it was, with the public share of each:
            one whole leaf, a part of one, several, or none for a unit that had no readings.
        nodes: {code in `after`: code in `before`} of every unit that is in both trees, whatever its codes.
        with_new: The leaves of `after` that are, or hold, a unit that had no readings before.
    """

    before: AggregationTree
    after: AggregationTree
    leaves: tuple[Parts, ...]
    nodes: Mapping[str, str]
    with_new: frozenset[str] = frozenset()

    @cached_property
    def is_renaming(self) -> bool:
        """Whether only codes differ: every node stands where it stood."""
        places = [self.nodes.get(node) for node in self.after.nodes]
        return self.before.parents == self.after.parents and places == list(self.before.nodes)

    def then(self, change: TreeChange, after: AggregationTree) -> "TreeMap":
        """Return this map, followed by one more change of its tree `after`: from `before` to the tree that it
        leads to. Raises ParameterError where the change leads to another tree.
        """
        ended = change.ending.keys() - change.renamed.keys()
        lasting = {old: change.renamed.get(old, old) for old in self.after.nodes if old not in ended}
        now = {new: self.nodes[old] for old, new in lasting.items() if old in self.nodes}
        known = dict(zip(self.after.leaves, self.leaves, strict=True))
        came = {change.renamed.get(leaf, leaf): parts for leaf, parts in known.items()}
        with_new = {change.renamed.get(leaf, leaf) for leaf in self.with_new} | change.added.keys()
        for old, sizes in change.split.items():
            whole = sum(sizes.values())
            came |= {new: _scaled(known[old], size / whole) for new, size in sizes.items()}
            with_new |= sizes.keys() if old in self.with_new else set()
        for new, olds in change.merged.items():
            came[new] = _together([known[old] for old in olds])
            with_new |= set() if self.with_new.isdisjoint(olds) else {new}
        came |= {new: {} for new in change.added}
        missing = [leaf for leaf in after.leaves if leaf not in came]
        if missing:
            raise ParameterError(f"the change leads to another tree: it has no leaf {missing[0]!r:.80}")
        leaves = tuple(came[leaf] for leaf in after.leaves)
        return TreeMap(self.before, after, leaves, now, frozenset(with_new.intersection(after.leaves)))


def unchanged(tree: AggregationTree) -> TreeMap:
    """Return the map of a tree to itself."""
    return TreeMap(
        tree, tree, tuple({leaf: Fraction(1)} for leaf in tree.leaves), {node: node for node in tree.nodes}
    )


def _scaled(parts: Parts, share: Fraction) -> Parts:
    return {leaf: own * share for leaf, own in parts.items()}


def _together(several: Sequence[Parts]) -> Parts:
    found: dict[str, Fraction] = {}
    for parts in several:
        for leaf, share in parts.items():
            found[leaf] = found.get(leaf, Fraction(0)) + share
    return found
