"""A hierarchy that changes on known days: which tree holds on a day, and what each code was and became."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache

from optstream.errors import ParameterError
from optstream.stream.aggregation_tree import AggregationTree
from optstream.stream.hierarchy.margin import Margin
from optstream.stream.hierarchy.tree_change import TreeChange
from optstream.stream.hierarchy.tree_map import TreeMap, unchanged
from optstream.stream.hierarchy.units import Unit, changes_of, units_of
from optstream.stream.lattice import Lattice
from optstream.stream.period import day_of

MOST_HIERARCHY_CHANGES = 1000
MOST_NODES_TIMES_CHANGES = 2**22


@dataclass(frozen=True)
class DatedHierarchy:
    """The oldest tree and its changes, each from a local day on.

    Args:
        parents: (node, parent) of the oldest tree in order, the root's parent None.
        changes: By day, rising.
        margin: What makes cells of the leaves, on all days; None for a tree alone.

    Raises:
        ParameterError: The oldest tree is no tree, or a change cannot be made: names change, code and rule.
    """

    parents: tuple[tuple[str, str | None], ...]
    changes: tuple[TreeChange, ...] = ()
    margin: Margin | None = None

    def __post_init__(self) -> None:
        for problem in hierarchy_problems(self.parents, self.changes, self.margin):
            raise ParameterError(problem)

    @classmethod
    def of_units(cls, units: Sequence[Unit]) -> "DatedHierarchy":
        """Return the hierarchy that a table of units tells of; split units have parts of the same size.

        Args:
            units: As `units` returns them.

        Returns:
            The dated list, with the same trees on all days but for the order of nodes.

        Raises:
            ParameterError: They are no table of a hierarchy.
        """
        oldest = tuple((one.code, one.parent) for one in units if one.valid_from is None)
        found = cls(oldest, tuple(changes_of(units)))
        if Counter(found.units()) != Counter(units):
            raise ParameterError("these units are no table of a hierarchy")
        return found

    @cached_property
    def periods(self) -> tuple[tuple[date | None, AggregationTree], ...]:
        """Each tree with the first day on which it holds, None for the oldest; by day."""
        parents: dict[str, str | None] = dict(self.parents)
        oldest = _oldest(self.parents)
        found: list[tuple[date | None, AggregationTree]] = [
            (None, oldest if self.margin is None else self.margin.on(oldest))
        ]
        for change in self.changes:
            parents = change.applied(parents)
            found.append((change.valid_from, AggregationTree.from_parents(parents)))
        return tuple(found)

    def tree_of(self, day: date) -> AggregationTree:
        """Return the tree that holds on a local day.

        Args:
            day: The local day, or an hour of it, as everywhere here.

        Returns:
            The tree.
        """
        *_, (_, latest) = (one for one in self.periods if one[0] is None or one[0] <= day_of(day))
        return latest

    def changes_between(self, first: date, last: date) -> tuple[TreeChange, ...]:
        """Return the changes that take effect after one local day and up to another.

        Args:
            first: A local day.
            last: Another one, not before it.

        Returns:
            The changes with `first` < `valid_from` <= `last`: of two days on one side of them, none.
        """
        after, until = day_of(first), day_of(last)
        return tuple(one for one in self.changes if after < one.valid_from <= until)

    def map_between(self, first: date, last: date) -> TreeMap:
        """Return what the nodes of one local day were on an earlier one.

        Args:
            first: The earlier day.
            last: The later one, or the same.

        Returns:
            From the tree of the first day to that of the last.
        """
        found = unchanged(self.tree_of(first))
        for change in self.changes_between(first, last):
            found = found.then(change, self.tree_of(change.valid_from))
        return found

    def nodes(self) -> tuple[str, ...]:
        """Return every code that is valid on some day.

        Returns:
            Codes, those of the oldest tree first.
        """
        return tuple(dict.fromkeys(node for _, tree in self.periods for node in tree.nodes))

    def leaves(self) -> tuple[str, ...]:
        """Return every code of a leaf on some day.

        Returns:
            Codes, those of the oldest tree first.
        """
        return tuple(dict.fromkeys(leaf for _, tree in self.periods for leaf in tree.leaves))

    def units(self) -> tuple[Unit, ...]:
        """Return every unit with the days on which it holds: the published table of the hierarchy.

        Returns:
            By code and first day as they come; a unit whose parent changes has a row for each.
        """
        return tuple(units_of(self.parents, self.changes))

    def hash_of(self, day: date) -> str:
        """Return what identifies the tree of a local day, and those before it.

        Args:
            day: The local day.

        Returns:
            The hash in `hashes` of the entry that holds on it.
        """
        *_, (_, latest) = (one for one in self.hashes if one[0] is None or one[0] <= day_of(day))
        return latest

    @cached_property
    def hashes(self) -> tuple[tuple[date | None, str], ...]:
        """What identifies the list up to each of its entries, the oldest tree first.

        Returns:
            (first day, SHA-256): each hash is made of the entry and of the hash before it, so that the last
            identifies the list, and a list that goes on from another holds that one's.
        """
        tree = self.periods[0][1]
        beside = [tree.margin, tree.members] if isinstance(tree, Lattice) else []
        found: list[tuple[date | None, str]] = [(None, _sha256([tree.nodes, tree.parents, *beside]))]
        for change in self.changes:
            found.append((change.valid_from, _sha256([found[-1][1], change.to_document()])))
        return tuple(found)


def hierarchy_problems(
    parents: Sequence[tuple[str, str | None]], changes: Sequence[TreeChange], margin: Margin | None = None
) -> Iterator[str]:
    """Yield in words why these are no dated hierarchy: the change, the code and the rule.

    The first change that cannot be made is the last looked at, for what follows rests on it. parents: (node,
    parent) of the oldest tree. changes: in the order of the configuration.
    """
    now: dict[str, str | None] = dict(parents)
    if len(changes) > MOST_HIERARCHY_CHANGES:
        yield f"at most {MOST_HIERARCHY_CHANGES} changes are allowed; got {len(changes)}"
        return
    n_nodes = len(now) + sum(len(change.beginning) for change in changes)
    if changes and n_nodes * len(changes) > MOST_NODES_TIMES_CHANGES:
        yield (
            f"changes times all nodes that there ever were must be at most {MOST_NODES_TIMES_CHANGES:,}, for "
            f"each change is worked out for all nodes; got {len(changes):,} times {n_nodes:,}: put several "
            "changes on one day"
        )
        return
    try:
        n_levels = _oldest(tuple(parents)).n_levels
    except ParameterError as error:
        yield str(error)
        return
    if margin is not None:
        yield from _no_margin(parents, changes, margin)
        return
    used: dict[str, date | None] = dict.fromkeys(now)
    before: date | None = None
    for number, change in enumerate(changes, 1):
        named = f"change {number}, from {change.valid_from}:"
        if before is not None and change.valid_from <= before:
            yield f"{named} valid_from must be later than {before}, that of the change before it"
            return
        if len(change.to_document()) == 1:
            yield f"{named} it must change something"
            return
        found = list(change.problems(now, used))
        if not found:
            now = change.applied(now)
            found = list(_no_tree(now, n_levels))
        if found:
            yield from (f"{named} {problem}" for problem in found)
            return
        used |= dict.fromkeys(change.beginning, change.valid_from)
        before = change.valid_from


def _no_margin(
    parents: Sequence[tuple[str, str | None]], changes: Sequence[TreeChange], margin: Margin
) -> Iterator[str]:
    if changes:
        yield (
            f"changes and margin {margin.name!r:.80} are not taken together: publish the days from a "
            "change on as a stream of their own, under the same privacy population, or leave one out"
        )
    try:
        margin.on(_oldest(tuple(parents)))
    except ParameterError as error:
        yield str(error)


@lru_cache(maxsize=4)
def _oldest(parents: tuple[tuple[str, str | None], ...]) -> AggregationTree:
    """The tree of these pairs: looked at and used several times, and it may have a million nodes."""
    return AggregationTree.from_parents(dict(parents))


def _no_tree(parents: dict[str, str | None], n_levels: int) -> Iterator[str]:
    try:
        tree = AggregationTree.from_parents(parents)
    except ParameterError as error:
        yield str(error)
        return
    if tree.n_levels != n_levels:
        yield (
            f"the hierarchy must keep its {n_levels} levels, for each has its share of epsilon; "
            f"got {tree.n_levels}"
        )


def _sha256(document: object) -> str:
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()
