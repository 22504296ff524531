"""Streams whose guarantee, hierarchy or companions changed: a real ledger decides the releases.

Amended: day 0 is released under a first guarantee, which an amendment then weakens; neighbours of the first
one differ in a window across the border, where it is held to its epsilon (Lemma 12, docs/privacy.md).
Products: neighbours differ in one window, in every stream of a budget at once, in each by its own alpha; all
that is released of it together loses at most the budget's epsilon (Lemma 12a). Changed trees: customers go
with the parts of a split leaf; neighbours differ in one customer's readings in a window that straddles the
change, in the old leaf before it, in one of its parts after it (Lemma 18).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from optstream.errors import BudgetError
from optstream.ledger import Key, Ledger, StreamTerms, open_ledger
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, PeGaSus
from optstream.mechanisms.base import Mechanism
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, PrivatePeriod, State
from optstream.stream.changes import TreeChange, TreeMap, unchanged
from optstream.stream.private_period import public_part
from studies.audit.histories import History, HistorySubject

NOW, LEASE = datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=10)
WINDOW, DAYS = 4, 3
"""Steps of a window and of a day; days that are offered, the first one before an amendment."""
HALF = WINDOW // 2

Accepts = Callable[[Ledger, Laplace, int], bool]
"""Whether a day may be measured by a mechanism; the ledger then has it."""


def _periods(released: Iterable[tuple[int, Mechanism]], series: np.ndarray) -> History:
    """Return each released day with its part of a series of all days, (n_steps,)."""
    return [
        (
            mechanism,
            PrivatePeriod(
                series[None, first : first + WINDOW],
                resolution=mechanism.model.resolution,
                first_step=first,
            ),
        )
        for first, mechanism in released
    ]


# Amended guarantees.


@dataclass(frozen=True)
class Amendment:
    """The first guarantee, that of an amendment, and a plan for a day next to the first that fits both."""

    name: str
    first: PrivacyModel
    second: PrivacyModel
    little: PrivacyModel


def _model(epsilon: str, alpha: int) -> PrivacyModel:
    return PrivacyModel(epsilon, WINDOW, alpha, resolution=1)


AMENDMENTS = (
    Amendment("alpha 10 to 1", _model("1", 10), _model("1", 1), _model("1/10", 1)),
    Amendment("epsilon 1 to 10", _model("1", 10), _model("10", 10), _model("1", 10)),
)


def amended_subjects() -> tuple[HistorySubject, ...]:
    """Return days after an amendment that wait, and days that take the remaining budget."""
    return tuple(
        _amended(f"amended {one.name}, {what}", one, offers, is_reserved)
        for one in AMENDMENTS
        for what, offers in (
            ("the next day waits", [one.second]),
            ("the next day takes less", [one.second, one.little]),
        )
    )


def hasty_subjects() -> tuple[HistorySubject, ...]:
    """BROKEN ON PURPOSE: the guarantee in force alone judges a day."""
    name = "amended {}, judged by the second guarantee alone"
    return tuple(_amended(name.format(one.name), one, [one.second], fits_the_newest) for one in AMENDMENTS)


def _amended(name: str, one: Amendment, offers: Sequence[PrivacyModel], accepts: Accepts) -> HistorySubject:
    def make() -> tuple[History, History]:
        released = released_days(one, offers, accepts)
        before = np.zeros(DAYS * WINDOW, dtype=np.int64)
        after = before.copy()
        after[WINDOW - HALF : WINDOW + HALF] = one.first.alpha_units
        return _periods(released, before), _periods(released, after)

    return HistorySubject(name, "a window across the change", float(one.first.epsilon), make)


def released_days(
    amendment: Amendment, offers: Sequence[PrivacyModel], accepts: Accepts
) -> list[tuple[int, Laplace]]:
    """Return the first step of each day that is released, and its mechanism, the first that is accepted."""
    with TemporaryDirectory() as folder, closing(open_ledger(f"sqlite:///{Path(folder)}/ledger")) as ledger:
        ledger.enrol(_terms("audit", "audit", amendment.first), NOW)
        released = [(0, Laplace(amendment.first))]
        is_reserved(ledger, released[0][1], 0)
        ledger.amend(_terms("audit", "audit", amendment.second), "another guarantee", NOW)
        for first_step in range(WINDOW, DAYS * WINDOW, WINDOW):
            accepted = (one for one in map(Laplace, offers) if accepts(ledger, one, first_step))
            if (one := next(accepted, None)) is not None:
                released.append((first_step, one))
        return released


def _terms(name: str, budget: str, model: PrivacyModel, alpha: Fraction | None = None) -> StreamTerms:
    return StreamTerms(name, budget, model, "one series", "a step", budget_alpha=alpha)


def is_reserved(ledger: Ledger, mechanism: Laplace, first_step: int, name: str = "audit") -> bool:
    """Return whether the ledger reserves it; then it is recorded as drawn and published, as a night does."""
    plan, period = mechanism.plan(mechanism.model.window_length, first_step), f"from step {first_step}"
    try:
        held = ledger.reserve(Key(name, period), plan, "audit", NOW, LEASE)
    except BudgetError:
        return False
    ledger.begin_draw(held, NOW)
    ledger.record_drawn(held, "measured", plan, NOW)
    ledger.record_staged(Key(name, period), "staged", "release.parquet", NOW)
    ledger.record_published(Key(name, period), NOW)
    return True


def fits_the_newest(ledger: Ledger, mechanism: Laplace, first_step: int) -> bool:
    """BROKEN ON PURPOSE: earlier guarantees are not checked."""
    newest, *_ = ledger.judge_plan("audit", mechanism.plan(WINDOW, first_step))
    return not newest.is_broken


# Products of one privacy budget. A window has one step: many terms show no loss at an audit's confidence.

ALPHAS = {"electricity": 10, "gas": 30, "heat": 5, "water": 1}
EPSILON = Fraction(1)
WANTED = dict(zip(ALPHAS, (EPSILON / 2, EPSILON, EPSILON / 2, EPSILON), strict=True))
"""Shares of epsilon, by stream: more than all; the first and the third fit together."""


def product_subjects() -> tuple[HistorySubject, ...]:
    """Return two products with half of a budget each, and four; the ledger takes those that fit."""
    halves = dict.fromkeys(("electricity", "gas"), EPSILON / 2)
    return (
        _products("two products, half of epsilon each", halves, one_budget=True),
        _products("four products that want more than all", WANTED, one_budget=True),
    )


def apart_subjects() -> tuple[HistorySubject, ...]:
    """BROKEN ON PURPOSE: each product has a budget of its own, so none is added up."""
    return (_products("four products, each judged by itself", WANTED, one_budget=False),)


def _products(name: str, shares: dict[str, Fraction], *, one_budget: bool) -> HistorySubject:
    def make() -> tuple[History, History]:
        released = released_products(shares, one_budget=one_budget)
        before, after = (
            [
                _periods([(0, mechanism)], np.array([changed * ALPHAS[stream]]))[0]
                for stream, mechanism in released
            ]
            for changed in (0, 1)
        )
        return before, after

    # no stream goes on from another's memory
    return HistorySubject(name, "a window of every stream at once", float(EPSILON), make, lambda *_: None)


def released_products(shares: dict[str, Fraction], *, one_budget: bool) -> list[tuple[str, Laplace]]:
    """Return the streams whose window the ledger accepts, each requested once, in the order given."""
    with TemporaryDirectory() as folder, closing(open_ledger(f"sqlite:///{Path(folder)}/ledger")) as ledger:
        found, alpha = [], Fraction(ALPHAS["electricity"])
        for name, share in shares.items():
            model = PrivacyModel(EPSILON, 1, ALPHAS[name], resolution=1)
            ledger.enrol(_terms(name, "people" if one_budget else name, model, alpha), NOW)
            mechanism = Laplace(model.with_budget(EPSILON * share))
            if is_reserved(ledger, mechanism, 0, name):
                found.append((name, mechanism))
        return found


# Changed trees.

MODEL = PrivacyModel("1", WINDOW, 10, resolution=1)
UNCHANGED = 20
"""Readings of a leaf without changes."""
Make = Callable[[AggregationTree], Mechanism]


def changed_tree_subjects() -> tuple[HistorySubject, ...]:
    """Return a release over a split by each mechanism that remembers something else of the days before."""
    halves = ("1/2", "1/2")
    informed = HistoryInformed(MODEL, n_blocks=2, block_length=1)
    return (
        _split_tree("Laplace over a split", lambda tree: Hierarchical(Laplace(MODEL), tree, halves)),
        _split_tree("PeGaSus over a split", lambda tree: Hierarchical(PeGaSus(MODEL), tree, halves)),
        _split_tree("HistoryInformed over a split", lambda tree: HistoryInformedTree(informed, tree, halves)),
    )


def broken_tree_subjects() -> tuple[HistorySubject, ...]:
    """BROKEN ON PURPOSE: each level of the new tree has four times the whole of epsilon."""

    def above_one(tree: AggregationTree) -> Mechanism:
        model = MODEL if "whole" in tree.nodes else MODEL.with_budget(8 * MODEL.epsilon)
        return Hierarchical(Laplace(model), tree, ("1/2", "1/2"))

    return (_split_tree("shares above 1 from a split on", above_one),)


def _split_tree(name: str, make: Make) -> HistorySubject:
    parts = {"one part": Fraction(1), "the other": Fraction(1)}
    parents = {"root": None, "whole": "root", "beside": "root"}
    change = TreeChange(date(2026, 1, 1), split={"whole": parts})
    after = AggregationTree.from_parents(change.applied(parents))
    between = unchanged(AggregationTree.from_parents(parents)).then(change, after)

    def hand_on(mechanism: Mechanism, state: State | None, first_step: int) -> State | None:
        """Return what a night hands on to a day with a new tree: nothing that is not public."""
        if not first_step:
            return state
        public = public_part(state)
        carried = None if public is None else mechanism.carried_over(public, between, first_step)
        return mechanism.recall((), carried)

    neighbours, claimed = "a window across the change", float(MODEL.epsilon)
    return HistorySubject(name, neighbours, claimed, partial(_over_a_split, make, between), hand_on)


def _over_a_split(make: Make, between: TreeMap) -> tuple[History, History]:
    trees = (between.before, between.after)
    mechanisms = [make(tree) for tree in trees]

    def side(changed: int) -> History:
        days = [np.full((len(tree.leaves), WINDOW), UNCHANGED, np.int64) for tree in trees]
        days[0][0, HALF:] += changed * np.array([1, -1])
        days[1][0, :HALF] += changed * np.array([1, -1])
        return [
            (mechanism, PrivatePeriod(values, resolution=MODEL.resolution, first_step=number * WINDOW))
            for number, (mechanism, values) in enumerate(zip(mechanisms, days, strict=True))
        ]

    return side(0), side(int(MODEL.alpha))
