"""Streams whose hierarchy changes in the middle of a window: customers go with the parts of a split leaf.

Neighbours differ in one customer's readings at every step of a window that straddles the change: in the old
leaf before it, in one of its parts after it. Whatever the trees, the window loses at most epsilon (Lemma 18,
docs/privacy.md).
"""

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import partial

import numpy as np

from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, PeGaSus
from optstream.mechanisms.base import Mechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, PrivatePeriod, State
from optstream.stream.changes import TreeChange, TreeMap, unchanged
from optstream.stream.state import public_part
from studies.audit.subjects.histories import History, HistorySubject

WINDOW = 4
"""Steps of a window and of a day; the two days' halves of a window lie on either side of the change."""
ALPHA = 10
MODEL = PrivacyModel("1", WINDOW, ALPHA, resolution=1)
BESIDE = 20
"""Of a leaf that nothing changes in."""
Make = Callable[[AggregationTree], Mechanism]


def changed_tree_subjects() -> tuple[HistorySubject, ...]:
    """Return subjects that are released over a split as nights release them.

    Returns one for each mechanism that remembers something else of the days before.
    """
    return (
        _subject("Laplace over a split", lambda tree: Hierarchical(Laplace(MODEL), tree, ("1/2", "1/2"))),
        _subject("PeGaSus over a split", lambda tree: Hierarchical(PeGaSus(MODEL), tree, ("1/2", "1/2"))),
        _subject("HistoryInformed over a split", _history_informed),
    )


def broken_tree_subjects() -> tuple[HistorySubject, ...]:
    """Return subjects that are BROKEN ON PURPOSE.

    Returns one, whose new tree has level shares that add up to 8.
    """
    return (_subject("shares above 1 from a split on", _above_one),)


def over_a_change(
    mechanism: Mechanism, state: State | None, first_step: int, between: TreeMap
) -> State | None:
    """Return what a night hands on to a day with a new tree: nothing that is not public.

    state: what the day before left. between: from the tree of then to that of now.
    """
    public = public_part(state)
    carried = None if public is None else mechanism.carried_over(public, between, first_step)
    return mechanism.recall((), carried)


def _subject(name: str, make: Make) -> HistorySubject:
    between = _split()

    def hand_on(mechanism: Mechanism, state: State | None, first_step: int) -> State | None:
        return over_a_change(mechanism, state, first_step, between) if first_step else state

    return HistorySubject(
        name,
        "a window across the change",
        claimed=float(MODEL.epsilon),
        make=partial(_histories, make, between),
        hand_on=hand_on,
    )


def _split() -> TreeMap:
    parts = {"one part": Fraction(1), "the other": Fraction(1)}
    parents = {"root": None, "whole": "root", "beside": "root"}
    change = TreeChange(date(2026, 1, 1), split={"whole": parts})
    after = AggregationTree.from_parents(change.applied(parents))
    return unchanged(AggregationTree.from_parents(parents)).then(change, after)


def _histories(make: Make, between: TreeMap) -> tuple[History, History]:
    mechanisms = [make(between.before), make(between.after)]

    def side(changed: int) -> History:
        trees = (between.before, between.after)
        days = [np.full((len(tree.leaves), WINDOW), BESIDE, np.int64) for tree in trees]
        days[0][0, WINDOW // 2 :] += changed * np.array([1, -1])
        days[1][0, : WINDOW // 2] += changed * np.array([1, -1])
        return [
            (mechanism, PrivatePeriod(values, resolution=MODEL.resolution, first_step=number * WINDOW))
            for number, (mechanism, values) in enumerate(zip(mechanisms, days, strict=True))
        ]

    return side(0), side(ALPHA)


def _history_informed(tree: AggregationTree) -> Mechanism:
    return HistoryInformedTree(HistoryInformed(MODEL, n_blocks=2, block_length=1), tree, ("1/2", "1/2"))


def _above_one(tree: AggregationTree) -> Mechanism:
    """Of the new tree each level has four times the whole of epsilon."""
    model = MODEL if "whole" in tree.nodes else MODEL.with_budget(8 * MODEL.epsilon)
    return Hierarchical(Laplace(model), tree, ("1/2", "1/2"))
