"""Streams of one privacy budget that measure other quantities: a real ledger decides which are released.

Neighbours differ in one window, in every stream at once, in each by its own alpha: all that is released of it
together loses at most the budget's epsilon (Lemma 12a, docs/privacy.md).
"""

from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from optstream.errors import BudgetError
from optstream.ledger import Ledger, StreamTerms, open_ledger
from optstream.mechanisms import Laplace
from optstream.privacy import PrivacyModel
from optstream.stream import PrivatePeriod
from studies.audit.subjects.amendments import LEASE, NOW
from studies.audit.subjects.histories import History, HistorySubject

WINDOW = 1
"""Steps: what is spread over many terms shows no loss at the confidence of an audit."""
ALPHAS = {"electricity": 10, "gas": 30, "heat": 5, "water": 1}
EPSILON = Fraction(1)
WANTED = {
    "electricity": Fraction(1, 2),
    "gas": Fraction(1),
    "heat": Fraction(1, 2),
    "water": Fraction(1),
}
"""Of epsilon, by stream: more than all, of which the first and the third fit together."""


def product_subjects() -> tuple[HistorySubject, ...]:
    """Return products of one budget: two with half of it each, and four of which the ledger takes what fits.

    Returns each held to the epsilon of the whole budget.
    """
    halves = dict.fromkeys(("electricity", "gas"), Fraction(1, 2))
    return (
        _subject("two products, half of epsilon each", halves, one_budget=True),
        _subject("four products that want more than all", WANTED, one_budget=True),
    )


def apart_subjects() -> tuple[HistorySubject, ...]:
    """Return products that are BROKEN ON PURPOSE: each has a budget of its own, so none is added up.

    Returns one, which must exceed the epsilon of the budget that they should share.
    """
    return (_subject("four products, each judged by itself", WANTED, one_budget=False),)


def _subject(name: str, shares: dict[str, Fraction], *, one_budget: bool) -> HistorySubject:
    return HistorySubject(
        name,
        "a window of every stream at once",
        claimed=float(EPSILON),
        make=partial(_histories, shares, one_budget),
        hand_on=lambda *_: None,  # no stream goes on from another's memory
    )


def _histories(shares: dict[str, Fraction], one_budget: bool) -> tuple[History, History]:
    released = released_products(shares, one_budget=one_budget)

    def history(changed: bool) -> History:
        return [(mechanism, _period(name, mechanism, changed)) for name, mechanism in released]

    return history(False), history(True)


def _period(name: str, mechanism: Laplace, changed: bool) -> PrivatePeriod:
    series = np.full((1, WINDOW), ALPHAS[name] if changed else 0, dtype=np.int64)
    return PrivatePeriod(series, resolution=mechanism.model.resolution, first_step=0)


def released_products(shares: dict[str, Fraction], *, one_budget: bool) -> Sequence[tuple[str, Laplace]]:
    """Return the streams of which the ledger lets a window be released, each with its mechanism.

    Each is asked for once, in the order given, in a ledger of their own. shares: of epsilon, by stream.
    one_budget: whether they share a privacy budget, as products of one population do.
    """
    with TemporaryDirectory() as folder, closing(open_ledger(f"sqlite:///{Path(folder)}/ledger")) as ledger:
        found = []
        for name, share in shares.items():
            terms = _terms(name, "people" if one_budget else name)
            ledger.enrol(terms, NOW)
            mechanism = Laplace(terms.model.with_budget(EPSILON * share))
            if _is_reserved(ledger, name, mechanism):
                found.append((name, mechanism))
        return found


def _terms(name: str, budget: str) -> StreamTerms:
    model = PrivacyModel(EPSILON, WINDOW, ALPHAS[name], resolution=1)
    shared = Fraction(ALPHAS["electricity"])
    return StreamTerms(name, budget, model, "one series", "a step", budget_alpha=shared)


def _is_reserved(ledger: Ledger, name: str, mechanism: Laplace) -> bool:
    try:
        ledger.reserve(name, "a window", 0, mechanism.plan(WINDOW, 0), "audit", NOW, LEASE)
    except BudgetError:
        return False
    return True
