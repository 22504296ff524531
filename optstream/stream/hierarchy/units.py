"""The units of a hierarchy that changes: since when and until when each holds, and what it became."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction

from optstream.stream.hierarchy.tree_change import TreeChange


@dataclass(frozen=True)
class Unit:
    """A unit of the hierarchy while its code and its parent stay the same.

    Attributes:
        code: Its name in dumps and rows.
        parent: The code of the unit above it; None for the root.
        valid_from: The first local day; None where it is of the oldest tree.
        valid_until: The last local day; None where no change ends it.
        became: What ends the row: its code again where it was moved, its new codes where it was renamed,
            split or merged; none where it was removed, or is not ended.
    """

    code: str
    parent: str | None
    valid_from: date | None
    valid_until: date | None = None
    became: tuple[str, ...] = ()


def units_of(parents: Sequence[tuple[str, str | None]], changes: Sequence[TreeChange]) -> Iterator[Unit]:
    """Yield every unit with the days on which it holds, of the oldest tree's (node, parent) and changes by
    day: as they end; then those that no change ends.
    """
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
    """Yield the changes that end and begin units, as `units_of` yields them, by day; split units have parts
    of the same size.
    """
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
    end = {one.code: one for one in ending}
    into = Counter(new for one in end.values() for new in one.became)
    renamed = {
        code: one.became[0]
        for code, one in end.items()
        if len(one.became) == 1 and one.became[0] != code and into[one.became[0]] == 1
    }
    split = {code: one.became for code, one in end.items() if len(one.became) > 1}
    merged: dict[str, list[str]] = {}
    for code, one in end.items():
        if len(one.became) == 1 and into[one.became[0]] > 1:
            merged.setdefault(one.became[0], []).append(code)
    moved = {
        code: str(begin[new])
        for code, one in end.items()
        for new in one.became
        if len(one.became) == 1 and new not in merged and begin.get(new) is not None
        if begin[new] != renamed.get(str(one.parent), one.parent)
    }
    return TreeChange(
        day,
        renamed=renamed,
        split={code: dict.fromkeys(parts, Fraction(1)) for code, parts in split.items()},
        merged={new: tuple(olds) for new, olds in merged.items()},
        added={code: str(parent) for code, parent in begin.items() if code not in into},
        removed=tuple(code for code, one in end.items() if not one.became),
        moved=moved,
    )
