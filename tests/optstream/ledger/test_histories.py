"""The short form of `make histories`: days in any order, guarantees that change, against the brute force."""

import pytest

from tests.optstream.ledger.histories import broken_twins
from tests.optstream.ledger.histories.machine import run

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
    counts = run(url, histories=12, chosen_seed=20, currency=currency)
    assert counts["histories"] >= 12
    assert counts["reserved"] > 20
    assert [what for what in HAPPENED if not counts[what]] == []
    if currency == "epsilon":
        assert counts["joint noise"] > 0
        assert counts["joint blocks"] > 0


ABOVE = "guarantee, window and cost are"
OTHER_TREE = "changes the hierarchy of days that were reserved|has another tree"
TWINS = {
    "in_force_alone": ("epsilon", 1, ABOVE),
    "each_stream_by_itself": ("epsilon", 1, ABOVE),
    "margins_for_free": ("rho", 20, ABOVE),
    "compromise_forgotten": ("epsilon", 2, ABOVE),
    "rho_as_epsilon": ("rho", 1, ABOVE),
    "restatements_for_free": ("rho", 30, "restatements"),
    "any_currency": ("rho", 20, "two currencies"),
    "any_shares": ("rho", 20, "chosen shares are more than all"),
    "any_tree": ("epsilon", 4, OTHER_TREE),
    "blocks_as_steps": ("epsilon", 4, ABOVE),
}
"""The currency, and seeds by which little is tried before the wrong line shows."""


@pytest.mark.slow
@pytest.mark.parametrize("twin", TWINS)
def test_a_broken_twin_is_found(sqlite_url, twin):
    currency, chosen_seed, found = TWINS[twin]
    with getattr(broken_twins, twin)(), pytest.raises(AssertionError, match=found):
        run(sqlite_url, histories=100, chosen_seed=chosen_seed, currency=currency)
