"""A hierarchy that changes on known days: which tree holds on a day, and what each code was and became."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

from optstream.errors import ParameterError
from optstream.stream.lattice import Lattice, Margin
from optstream.stream.period import day_of
from optstream.stream.tree import AggregationTree

# One change of a hierarchy, from a day on: units renamed, split, merged, added, removed or moved.

Parents = Mapping[str, str | None]  # {node: its parent}, the root's None, in the order of a tree


@dataclass(frozen=True)
class TreeChange:
    """The change of some units at the start of a local day; all others stay as they are. Codes on the left
    are those of the day before; parents are those of the day itself.

    valid_from: the first local day on which it holds. renamed: {old code: new code}, the same unit. split:
    {leaf that ends: {leaf that begins in its place: its public size}}, sizes in any common unit. merged:
    {leaf that begins: the leaves that end in it, which have one parent}. added: {unit that begins: its
    parent}. removed: units that end. moved: {code: its new parent}, the same unit.
    """

    valid_from: date
    renamed: Mapping[str, str] = field(default_factory=dict)
    split: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)

    @property
    def beginning(self) -> tuple[str, ...]:
        """The codes that are valid from this day on and were not before, in the order of the fields."""
        parts = (one for sizes in self.split.values() for one in sizes)
        return (*self.renamed.values(), *parts, *self.merged, *self.added)

    @property
    def ending(self) -> dict[str, tuple[str, ...]]:
        """The codes that end, with the codes that each became: none for a unit that is removed."""
        found: dict[str, tuple[str, ...]] = {old: (new,) for old, new in self.renamed.items()}
        found |= {old: tuple(sizes) for old, sizes in self.split.items()}
        found |= {old: (new,) for new, olds in self.merged.items() for old in olds}
        return {**found, **dict.fromkeys(self.removed, ())}

    def applied(self, parents: Parents) -> dict[str, str | None]:
        """Return the hierarchy of its first day, of that of the day before, for which `problems` finds none:
        a unit's replacement stands in its place, new units at the end."""
        into = {olds[0]: new for new, olds in self.merged.items()}
        gone = {*self.removed, *(old for olds in self.merged.values() for old in olds[1:])}
        found: dict[str, str | None] = {}
        for node, above in parents.items():
            parent = self.moved[node] if node in self.moved else self.renamed.get(above or "", above)
            if node in self.split:
                found |= dict.fromkeys(self.split[node], parent)
            elif node in into:
                found[into[node]] = parent
            elif node not in gone:
                found[self.renamed.get(node, node)] = parent
        return {**found, **self.added}

    def problems(self, parents: Parents, used: Mapping[str, date | None]) -> Iterator[str]:
        """Yield operation, code and rule of all that makes it no change of the `parents` of the day before;
        `used` has every code of earlier days. Whether the result is a tree is checked by
        `AggregationTree`."""
        inner = {parent for parent in parents.values() if parent is not None}
        named = {
            "renamed": tuple(self.renamed),
            "split": tuple(self.split),
            "merged": tuple(old for olds in self.merged.values() for old in olds),
            "removed": self.removed,
            "moved": tuple(self.moved),
        }
        for operation, code in ((operation, code) for operation, codes in named.items() for code in codes):
            if code not in parents:
                yield f"{operation}: {code!r:.80} is no unit on the day before"
            elif operation in ("split", "merged") and code in inner:
                yield (
                    f"{operation}: {code!r:.80} has units below it, and only leaves can be {operation}: "
                    "add or remove the unit and move those below it"
                )
        # a renamed unit may be moved too
        fates = [code for operation, codes in named.items() if operation != "moved" for code in codes]
        for codes, rule in (
            (fates, "is named twice: a unit is renamed, split, merged or removed once in a change"),
            (self.beginning, "begins twice: each unit has a code of its own"),
        ):
            yield from (f"{code!r:.80} {rule}" for code, times in Counter(codes).items() if times > 1)
        for code in self.moved:
            if code in fates and code not in self.renamed:
                yield f"moved: {code!r:.80} ends on that day and cannot be moved"
        for code in self.beginning:
            if code in used:
                yield (
                    f"{code!r:.80} is a code that was used before, and no code is ever used for another "
                    "unit: choose a new one"
                )
        for old, sizes in self.split.items():
            if len(sizes) < 2:
                yield f"split: {old!r:.80} must become at least two units; rename it where it becomes one"
        for new, olds in self.merged.items():
            if len(olds) < 2:
                yield f"merged: {new!r:.80} must be made of at least two units; rename one where it is one"
            elif len({parents.get(old) for old in olds}) > 1:
                yield f"merged: {new!r:.80} must be made of units below one parent: move them there before"
        # a leaf stays a leaf, an inner unit keeps units below it: else a code would mean other readings
        after = self.applied(parents)
        above = set(after.values())
        for node, now in ((node, self.renamed.get(node, node)) for node in parents):
            if now in after and node in inner and now not in above:
                yield f"{now!r:.80} keeps nothing below it and would become a leaf: remove it, too"
            elif now in after and node not in inner and now in above:
                yield f"{now!r:.80} is a leaf, and nothing can be put below it: split it"

    def to_document(self) -> dict[str, object]:
        """Return the change as JSON: the day, and the operations that it has, in their order."""
        operations = {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        given = {name: _plain(value) for name, value in operations.items() if value}
        return {"valid_from": self.valid_from.isoformat(), **given}


def _plain(given: object) -> object:
    # the order of split parts, merged units and additions is the tree's, and stays
    if isinstance(given, Mapping):
        return [[key, _plain(value)] for key, value in given.items()]
    if isinstance(given, tuple):
        return list(given)
    return str(given)


# The units of a hierarchy that changes: the first and the last day of each, and its successors.


@dataclass(frozen=True)
class Unit:
    """A unit of the hierarchy while its code and its parent stay the same. code: its name in dumps and rows.
    parent: the code of the unit above it; None for the root. valid_from, valid_until: the first and the last
    local day; None where it is of the oldest tree, and where no change ends it. became: its code again where
    it was moved, its new codes where it was renamed, split or merged; none where it was removed, or is not
    ended."""

    code: str
    parent: str | None
    valid_from: date | None
    valid_until: date | None = None
    became: tuple[str, ...] = ()


def units_of(parents: Sequence[tuple[str, str | None]], changes: Sequence[TreeChange]) -> Iterator[Unit]:
    """Yield every unit of a dated hierarchy with its days, as they end; then those that no change ends."""
    now: dict[str, str | None] = dict(parents)
    since: dict[str, date | None] = dict.fromkeys(now)
    for change in changes:
        after, ending = change.applied(now), change.ending
        for node, parent in now.items():
            if node in ending or after[node] != parent:
                last = change.valid_from - timedelta(days=1)
                yield Unit(node, parent, since.pop(node), last, ending.get(node, (node,)))
        for node in after:
            since.setdefault(node, change.valid_from)
        now = after
    for node, parent in now.items():
        yield Unit(node, parent, since[node])


def changes_of(units: Sequence[Unit]) -> Iterator[TreeChange]:
    """Yield the changes, by day, that end and begin the units of `units_of`; split units have equal parts."""
    beginning, ending = defaultdict[date, list[Unit]](list), defaultdict[date, list[Unit]](list)
    for one in units:
        if one.valid_from is not None:
            beginning[one.valid_from].append(one)
        if one.valid_until is not None:
            ending[one.valid_until + timedelta(days=1)].append(one)
    for day in sorted({*beginning, *ending}):
        yield _change(day, beginning[day], ending[day])


def _change(day: date, beginning: Sequence[Unit], ending: Sequence[Unit]) -> TreeChange:
    begin = {one.code: one.parent for one in beginning}
    into = Counter(new for one in ending for new in one.became)
    renamed, split = dict[str, str](), dict[str, Mapping[str, Fraction]]()
    merged = defaultdict[str, list[str]](list)
    single = {one.code: one.became[0] for one in ending if len(one.became) == 1}
    for one in ending:
        if len(one.became) > 1:
            split[one.code] = dict.fromkeys(one.became, Fraction(1))
        elif one.became and into[one.became[0]] > 1:
            merged[one.became[0]].append(one.code)
        elif one.became and one.became[0] != one.code:
            renamed[one.code] = one.became[0]
    above = {one.code: renamed.get(str(one.parent), one.parent) for one in ending}
    return TreeChange(
        day,
        renamed=renamed,
        split=split,
        merged={new: tuple(olds) for new, olds in merged.items()},
        added={code: str(parent) for code, parent in begin.items() if code not in into},
        removed=tuple(one.code for one in ending if not one.became),
        moved={
            code: parent
            for code, new in single.items()
            if new not in merged and (parent := begin.get(new)) is not None and parent != above[code]
        },
    )


# What each node of a tree was made of in the tree before one or more changes: a public, linear map.

Parts = Mapping[str, Fraction]  # {code of a leaf before: which share of it}


@dataclass(frozen=True)
class TreeMap:
    """From the nodes of one tree, `before`, to those of the tree that follows it, `after`. leaves: for each
    leaf of `after` its leaves of `before`, with the public share of each; none for a unit that had no
    readings. nodes: {code in `after`: code in `before`} of every unit that is in both trees. with_new: the
    leaves of `after` that are, or hold, a unit that had no readings before."""

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
        """Return this map followed by one more change, which leads from its `after` to another tree."""
        ended = change.ending.keys() - change.renamed.keys()
        lasting = {old: change.renamed.get(old, old) for old in self.after.nodes if old not in ended}
        now = {new: self.nodes[old] for old, new in lasting.items() if old in self.nodes}
        known = dict(zip(self.after.leaves, self.leaves, strict=True))
        came = {change.renamed.get(leaf, leaf): parts for leaf, parts in known.items()}
        with_new = {change.renamed.get(leaf, leaf) for leaf in self.with_new} | change.added.keys()
        for old, sizes in change.split.items():
            whole = sum(sizes.values())
            for new, size in sizes.items():
                came[new] = {leaf: share * size / whole for leaf, share in known[old].items()}
            with_new |= sizes.keys() if old in self.with_new else set()
        for new, olds in change.merged.items():
            joined = defaultdict[str, Fraction](Fraction)
            for leaf, share in (part for old in olds for part in known[old].items()):
                joined[leaf] += share
            came[new] = dict(joined)
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


MOST_HIERARCHY_CHANGES = 1000
MOST_NODES_TIMES_CHANGES = 2**22


@dataclass(frozen=True)
class DatedHierarchy:
    """The oldest tree and its changes, each from a local day on. Where a day is taken, so is an hour of it.
    Raises ParameterError, naming change, code and rule, for no tree or an impossible change.

    Args:
        parents: (node, parent) of the oldest tree in order, the root's parent None.
        changes: By day, rising.
        margin: Makes cells of the leaves, on all days; None for a tree alone.
    """

    parents: tuple[tuple[str, str | None], ...]
    changes: tuple[TreeChange, ...] = ()
    margin: Margin | None = None

    def __post_init__(self) -> None:
        for problem in hierarchy_problems(self.parents, self.changes, self.margin):
            raise ParameterError(problem)

    @classmethod
    def of_units(cls, units: Sequence[Unit]) -> "DatedHierarchy":
        """Return the hierarchy of a table of `units`; split units have equal parts, nodes another order."""
        oldest = tuple((one.code, one.parent) for one in units if one.valid_from is None)
        found = cls(oldest, tuple(changes_of(units)))
        if Counter(found.units()) != Counter(units):
            raise ParameterError("these units are no table of a hierarchy")
        return found

    @cached_property
    def periods(self) -> tuple[tuple[date | None, AggregationTree], ...]:
        """Each tree with the first day on which it holds, None for the oldest; by day."""
        oldest = _oldest(self.parents)
        found: list[tuple[date | None, AggregationTree]] = [
            (None, oldest if self.margin is None else self.margin.on(oldest))
        ]
        parents: Parents = dict(self.parents)
        for change in self.changes:
            parents = change.applied(parents)
            found.append((change.valid_from, AggregationTree.from_parents(parents)))
        return tuple(found)

    def tree_of(self, day: date) -> AggregationTree:
        """Return the tree of a local day."""
        return _entry_on(self.periods, day)

    def changes_between(self, first: date, last: date) -> tuple[TreeChange, ...]:
        """Return the changes that take effect after one local day and up to another, not before it."""
        after, until = day_of(first), day_of(last)
        return tuple(one for one in self.changes if after < one.valid_from <= until)

    def map_between(self, first: date, last: date) -> TreeMap:
        """Return the map from the tree of one local day to that of a later one, or the same."""
        found = unchanged(self.tree_of(first))
        for change in self.changes_between(first, last):
            found = found.then(change, self.tree_of(change.valid_from))
        return found

    def nodes(self) -> tuple[str, ...]:
        """Return every code that is valid on some day, those of the oldest tree first."""
        return tuple(dict.fromkeys(node for _, tree in self.periods for node in tree.nodes))

    def leaves(self) -> tuple[str, ...]:
        """Return every code of a leaf on some day, those of the oldest tree first."""
        return tuple(dict.fromkeys(leaf for _, tree in self.periods for leaf in tree.leaves))

    def units(self) -> tuple[Unit, ...]:
        """Return the published table: each unit with its days, in a row for each parent."""
        return tuple(units_of(self.parents, self.changes))

    def hash_of(self, day: date) -> str:
        """Return the hash in `hashes` that identifies the tree of a local day, and those before it."""
        return _entry_on(self.hashes, day)

    @cached_property
    def hashes(self) -> tuple[tuple[date | None, str], ...]:
        """(first day, SHA-256 of the entry and of the hash before it), the oldest tree first."""
        tree = self.periods[0][1]
        margin = [tree.margin, tree.members] if isinstance(tree, Lattice) else []
        found: list[tuple[date | None, str]] = [(None, _sha256([tree.nodes, tree.parents, *margin]))]
        for change in self.changes:
            found.append((change.valid_from, _sha256([found[-1][1], change.to_document()])))
        return tuple(found)


Dated = TypeVar("Dated")


def _entry_on(dated: Sequence[tuple[date | None, Dated]], day: date) -> Dated:
    """Return the last entry that holds on a local day; each has its first day, None for the oldest."""
    *_, latest = (entry for first, entry in dated if first is None or first <= day_of(day))
    return latest


def hierarchy_problems(
    parents: Sequence[tuple[str, str | None]], changes: Sequence[TreeChange], margin: Margin | None = None
) -> Iterator[str]:
    """Yield the change, code and rule for which these are no dated hierarchy, up to the first bad change."""
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
    if margin is not None and changes:
        yield (
            f"changes and margin {margin.name!r:.80} are not taken together: publish the days from a "
            "change on as a stream of their own, under the same privacy population, or leave one out"
        )
    try:
        oldest = _oldest(tuple(parents))
        if margin is not None:
            margin.on(oldest)
    except ParameterError as error:
        yield str(error)
        return
    used: dict[str, date | None] = dict.fromkeys(now)
    before: date | None = None
    for number, change in enumerate(changes if margin is None else (), 1):
        if before is not None and change.valid_from <= before:
            found = [f"valid_from must be later than {before}, that of the change before it"]
        elif len(change.to_document()) == 1:
            found = ["it must change something"]
        elif not (found := list(change.problems(now, used))):
            now = change.applied(now)
            found = list(_no_tree(now, oldest.n_levels))
        yield from (f"change {number}, from {change.valid_from}: {problem}" for problem in found)
        if found:
            return
        used |= dict.fromkeys(change.beginning, change.valid_from)
        before = change.valid_from


@lru_cache(maxsize=4)
def _oldest(parents: tuple[tuple[str, str | None], ...]) -> AggregationTree:
    """The tree of these pairs: looked at and used several times, and it may have a million nodes."""
    return AggregationTree.from_parents(dict(parents))


def _no_tree(parents: Parents, n_levels: int) -> Iterator[str]:
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
