"""Days in any order, guarantees that change, against the brute force; `make histories` runs more of them."""

import os
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from unittest.mock import patch

import pytest

from optstream.ledger import WindowLoss, lifecycle
from optstream.ledger.accounting import charges_of, losses_with
from optstream.ledger.schema import ReleaseRow
from optstream.privacy import GaussianSpend, OrderSpend
from optstream.privacy.accountant import repriced
from tests.optstream.ledger.histories import MARGIN, run

HISTORIES = int(os.environ.get("OPTSTREAM_HISTORIES", "12"))
SEED = os.environ.get("OPTSTREAM_HISTORIES_SEED", "1")
HAPPENED = (
    "products", "margins", "amendments", "shares refused", "refused", "restatements refused",
    "currencies refused", "changes", "changes refused",
)  # fmt: skip


@pytest.mark.parametrize(
    ("database", "currency"),
    [
        ("sqlite", "epsilon"),
        pytest.param("sqlite", "rho", marks=pytest.mark.slow),
        pytest.param("postgresql", "epsilon", marks=pytest.mark.nightly),
        pytest.param("postgresql", "rho", marks=pytest.mark.nightly),
    ],
)
def test_no_window_is_above_any_guarantee_that_was_stated_for_one_of_its_days(request, database, currency):
    url = request.getfixturevalue(f"{database}_url")
    counts = run(url, HISTORIES, SEED, currency=currency)
    assert counts["histories"] == HISTORIES
    assert counts["reserved"] > 20
    assert [what for what in HAPPENED if not counts[what]] == []
    if currency == "epsilon":
        assert counts["joint noise"] > 0
        assert counts["joint blocks"] > 0


# Ledgers with one wrong line each, which the histories must find.

RESERVE, TERMS = "optstream.ledger.lifecycle", "optstream.ledger.terms"


def each_stream_by_itself():
    """The other streams of the privacy budget are not added up."""
    check = lifecycle._check_windows

    def of_one_stream(connection, grant, stream_id, *rest):
        own = ReleaseRow.stream_id == stream_id
        with patch(f"{RESERVE}.losses_with", lambda *some, **named: losses_with(*some, own, **named)):
            check(connection, grant, stream_id, *rest)

    return patch(f"{RESERVE}._check_windows", of_one_stream)


def _without(kept):
    """Charges of those releases alone for which `kept` is true."""
    return patch(
        "optstream.ledger.accounting.charges_of",
        lambda near, guarantees: charges_of([one for one in near if kept(one)], guarantees),
    )


def rho_as_epsilon():
    """k neighbours in a row cost k times the rho of one, and not the square."""

    def linear(spend, planned, other):
        found = repriced(spend, planned, other)
        if not isinstance(spend, GaussianSpend):
            return found
        factor = found.alpha_units // spend.alpha_units
        if factor == 1:
            return found
        return replace(spend, scale=spend.scale * Fraction(10**6, isqrt(10**12 * factor) + 1))

    return patch("optstream.ledger.accounting.repriced", linear)


def restatements_for_free():
    """What restatements have taken of their share, by conditions on their releases, is not looked at."""

    def without(connection, grant, plan, *only):
        found = losses_with(connection, grant, plan, *only)
        return found if len(only) < 2 else [replace(found[0], loss=WindowLoss(0, 0))]

    return patch(f"{RESERVE}.losses_with", without)


def midnight_for_free():
    """Windows that began before a period pay nothing for its joint noise."""
    real = OrderSpend.charged

    def charged(spend, window_length):
        units, price = real(spend, window_length)
        units[: window_length - 1] = 0
        return units, price

    return patch.object(OrderSpend, "charged", charged)


ABOVE = "guarantee, window and cost are"
OTHER_TREE = "changes the hierarchy of days that were reserved|has another tree"
TWINS = {
    "the guarantee in force alone prices plans": (
        lambda: patch(f"{RESERVE}.losses_with", lambda *some, **named: losses_with(*some, **named)[:1]),
        ("epsilon", 9, ABOVE),
    ),
    "each stream by itself": (each_stream_by_itself, ("epsilon", 1, ABOVE)),
    "margins for free": (lambda: _without(lambda one: one.spend.level != MARGIN), ("rho", 1, ABOVE)),
    "known noise for free": (lambda: _without(lambda one: not one.is_known), ("epsilon", 2, ABOVE)),
    "rho as epsilon": (rho_as_epsilon, ("rho", 9, ABOVE)),
    "restatements for free": (restatements_for_free, ("rho", 1, "restatements")),
    "any currency": (
        lambda: patch(f"{TERMS}.check_currency_kept", lambda *_: None), ("rho", 1, "two currencies")
    ),
    "any shares": (
        lambda: patch(f"{TERMS}.refuse_more_than_all", lambda *_: None),
        ("rho", 2, "chosen shares are more than all"),
    ),
    "any tree on days that were reserved": (
        lambda: patch(f"{TERMS}.continues", lambda *_: True), ("epsilon", 2, OTHER_TREE)
    ),
    "midnight for free": (midnight_for_free, ("epsilon", 1, ABOVE)),
}  # fmt: skip
"""The currency, and seeds by which little is tried before the wrong line shows."""


@pytest.mark.slow
@pytest.mark.parametrize(("twin", "tried"), TWINS.values(), ids=TWINS)
def test_a_broken_twin_is_found(sqlite_url, twin, tried):
    currency, seed, found = tried
    with twin(), pytest.raises(AssertionError, match=found):
        run(sqlite_url, histories=10, seed=seed, currency=currency)
