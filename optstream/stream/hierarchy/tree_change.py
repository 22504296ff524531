"""One change of a hierarchy, from a day on: units renamed, split, merged, added, removed or moved."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from fractions import Fraction

Parents = Mapping[str, str | None]
"""{node: its parent}, the root's None, in the order of a tree."""


@dataclass(frozen=True)
class TreeChange:
    """What becomes of some units at the start of a local day; all others stay as they are.

    Codes on the left are those of the day before; parents that are named are those of the day itself.

    Attributes:
        valid_from: The first local day on which it holds.
        renamed: {old code: new code}. The same unit; its history and its place in the order stay.
        split: {leaf that ends: {leaf that begins in its place: its public size}}, sizes in any common unit.
        merged: {leaf that begins: the leaves that end in it}, which have one parent.
        added: {unit that begins: its parent}.
        removed: Units that end.
        moved: {code: its parent from now on}. The same unit.
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
        """Return the hierarchy of the day on which it takes effect.

        Args:
            parents: Of the day before, one for which `problems` finds none.

        Returns:
            {node: parent}; what takes a unit's place stands where it stood, what is added at the end.
        """
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
        """Find why it is no change of this hierarchy.

        Args:
            parents: Of the day before.
            used: Every code that was valid on some day before, and the day since when.

        Yields:
            Operation, code and rule in words; nothing for a change that can be applied. Whether the result is
            a tree is for `AggregationTree` to say.
        """
        before = set(parents)
        inner = {parent for parent in parents.values() if parent is not None}
        for operation, codes in self._named().items():
            for code in codes:
                if code not in before:
                    yield f"{operation}: {code!r:.80} is no unit on the day before"
                elif operation in ("split", "merged") and code in inner:
                    yield (
                        f"{operation}: {code!r:.80} has units below it, and only leaves can be {operation}: "
                        "add or remove the unit and move those below it"
                    )
        yield from self._named_twice()
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
        yield from self._changed_kinds(parents, inner)

    def _named(self) -> dict[str, tuple[str, ...]]:
        """The units of the day before that each operation names."""
        merged = tuple(old for olds in self.merged.values() for old in olds)
        return {
            "renamed": tuple(self.renamed),
            "split": tuple(self.split),
            "merged": merged,
            "removed": self.removed,
            "moved": tuple(self.moved),
        }

    def _named_twice(self) -> Iterator[str]:
        """A unit has one fate; what is renamed may be moved too. A code begins once."""
        fates = [code for operation, codes in self._named().items() if operation != "moved" for code in codes]
        for codes, rule in (
            (fates, "is named twice: a unit is renamed, split, merged or removed once in a change"),
            (self.beginning, "begins twice: each unit has a code of its own"),
        ):
            for code in dict.fromkeys(code for code in codes if codes.count(code) > 1):
                yield f"{code!r:.80} {rule}"
        for code in self.moved:
            if code in fates and code not in self.renamed:
                yield f"moved: {code!r:.80} ends on that day and cannot be moved"

    def _changed_kinds(self, parents: Parents, inner: set[str]) -> Iterator[str]:
        """A leaf stays a leaf, an inner unit keeps units below it: else a code would mean other readings."""
        after = self.applied(parents)
        above = {parent for parent in after.values() if parent is not None}
        for node in parents:
            now = self.renamed.get(node, node)
            if now not in after:
                continue
            if node in inner and now not in above:
                yield f"{now!r:.80} keeps nothing below it and would become a leaf: remove it, too"
            elif node not in inner and now in above:
                yield f"{now!r:.80} is a leaf, and nothing can be put below it: split it"

    def to_document(self) -> dict[str, object]:
        """Return the change as JSON.

        Returns:
            The day, and the operations that it has, in their order.
        """
        found: dict[str, object] = {"valid_from": self.valid_from.isoformat()}
        for one in fields(self)[1:]:
            given = getattr(self, one.name)
            if given:
                found[one.name] = _plain(given)
        return found


def _plain(given: object) -> object:
    # the order of split parts, merged units and additions is the tree's, and stays
    if isinstance(given, Mapping):
        return [[key, _plain(value)] for key, value in given.items()]
    if isinstance(given, tuple):
        return list(given)
    return str(given)
