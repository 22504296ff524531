"""The short form of `make histories`: days in any order, guarantees that change, against the brute force."""

from unittest.mock import patch

import pytest

from optstream.privacy import joint_spend
from tests.optstream.ledger.histories import each_stream_by_itself, in_force_alone, run


def test_no_window_is_above_any_guarantee_that_was_stated_for_one_of_its_days(url):
    counts = run(url, histories=12, chosen_seed=20)
    assert counts["histories"] >= 12
    assert counts["reserved"] > 20
    assert counts["joint noise"] > 0
    assert counts["joint blocks"] > 0
    assert counts["changes"] > 0
    assert counts["changes refused"] > 0
    assert counts["products"] > 0


def test_no_window_is_above_any_guarantee_in_rho(url):
    counts = run(url, histories=12, chosen_seed=20, currency="rho")
    assert counts["histories"] >= 12
    assert counts["reserved"] > 20
    assert counts["refused"] > 0
    assert counts["amendments"] > 0


def test_a_ledger_that_lets_any_tree_change_is_found(sqlite_url):
    found = "changes the hierarchy of days that were reserved|a day that was reserved has another tree"
    lets = patch("optstream.ledger.transactions.enrol.continues", lambda *_: True)
    with lets, pytest.raises(AssertionError, match=found):
        run(sqlite_url, histories=100, chosen_seed=20)


def test_a_pricing_by_the_guarantee_in_force_alone_is_found(sqlite_url):
    with in_force_alone(), pytest.raises(AssertionError, match="guarantee, window and cost are"):
        run(sqlite_url, histories=100, chosen_seed=20)


def test_a_stream_of_the_budget_that_is_not_added_up_is_found(sqlite_url):
    with each_stream_by_itself(), pytest.raises(AssertionError, match="guarantee, window and cost are"):
        run(sqlite_url, histories=100, chosen_seed=20)


def test_a_block_that_is_charged_as_a_step_is_found(sqlite_url):
    def as_steps(group, n_windows, window_length):
        singles = tuple(range(part.start, part.start + 1) for part in group)
        return of_steps(singles, n_windows, window_length)

    of_steps = joint_spend._most_of_one_part
    charged = patch.object(joint_spend, "_most_of_one_part", as_steps)
    with charged, pytest.raises(AssertionError, match="guarantee, window and cost are"):
        run(sqlite_url, histories=100, chosen_seed=20)
