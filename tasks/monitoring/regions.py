"""Regions against the hierarchy: which leaf an unknown one probably is, and which nodes lack their input."""

from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree

ALIKE = 0.5
"""Names less alike than this (difflib's ratio) are not suggested."""
MOST_UNKNOWN, MOST_VANISHED = 50, 2000
"""Beyond these no nearest name is looked for: the time grows with their product."""

LONGEST_SHOWN = 80


def renamed(unknown: Sequence[str], vanished: Sequence[str]) -> dict[str, str | None]:
    """For each unknown region of a day the leaf that vanished on it and was probably renamed so, or None.

    One unknown region and one vanished leaf are a pair, however unlike. Of several, the most alike are paired
    first, each once; what is then left is a pair if it is one of each.
    """
    found: dict[str, str | None] = dict.fromkeys(unknown)
    if len(unknown) <= MOST_UNKNOWN and len(vanished) <= MOST_VANISHED:
        scored = [(likeness(one, leaf), one, leaf) for one in unknown for leaf in vanished]
        for score, one, leaf in sorted(scored, key=lambda entry: -entry[0]):
            if score >= ALIKE and found[one] is None and leaf not in found.values():
                found[one] = leaf
    unpaired = [one for one in unknown if found[one] is None]
    left = [leaf for leaf in vanished if leaf not in set(found.values())]
    if len(unpaired) == len(left) == 1:
        found[unpaired[0]] = left[0]
    return found


def nearest(name: str, leaves: Sequence[str]) -> str | None:
    """The leaf that is called most alike, or None if none is alike enough."""
    if len(leaves) > MOST_VANISHED:
        return None
    score, leaf = max(((likeness(name, leaf), leaf) for leaf in leaves), key=lambda entry: entry[0])
    return leaf if score >= ALIKE else None


def shown(name: str) -> str:
    """A name found on disk, short, its unprintable characters escaped."""
    text = name if name.isprintable() else repr(name)[1:-1]
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


def likeness(one: str, other: str) -> float:
    """In [0, 1], whatever the case."""
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def lacking(tree: AggregationTree, leaves: Collection[str]) -> tuple[str, ...]:
    """The fewest nodes that cover exactly these leaves: a node stands for all leaves below it."""
    tree = tree.tree  # a margin's nodes cover them a second time
    whole = _covered(tree, leaves) == tree.leaves_below
    return tuple(
        name
        for number, name in enumerate(tree.nodes)
        if whole[number] and (tree.parents[number] < 0 or not whole[tree.parents[number]])
    )


def touched(tree: AggregationTree, leaves: Collection[str]) -> tuple[int, ...]:
    """For each level, how many of its nodes cannot be known without these leaves."""
    hit = _covered(tree, leaves) > 0
    return tuple(int(hit[level.start : level.stop].sum()) for level in tree.levels)


def _covered(tree: AggregationTree, leaves: Collection[str]) -> NDArray[np.int64]:
    """How many of these leaves lie below each node, or are it."""
    known = set(leaves)
    return tree.add_up(np.array([[name in known] for name in tree.leaves], dtype=np.int64))[:, 0]
