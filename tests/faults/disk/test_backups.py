"""Restored backups: nothing that others saw is drawn or shown anew, and somebody is told.

A few restores, on PostgreSQL by night; `make powercuts` does hundreds.
"""

import random

import pytest

from tests.faults.disk.backups import Restored, happen, restore, restores

SEED = 20160603


@pytest.fixture(scope="module")
def past(bench):
    """Four steps of a random history."""
    points = ["before commit in Ledger.record_drawn, 1", "after commit in Ledger.record_staged, 1"]
    return happen(bench, random.Random(SEED), points, 4)


def before_a_day(past):
    """The newest moment at which readers had not yet seen some day that they saw later."""
    periods = [{period for period, _, _ in moment.sights} for moment in past.moments]
    ever = set().union(*periods)
    return max(number for number in range(len(periods)) if set().union(*periods[: number + 1]) < ever)


@pytest.mark.parametrize("stores", [["published"], ["trusted"], ["trusted", "published"], []], ids=" + ".join)
def test_the_newest_ledger_knows_all(past, stores):
    newest = len(past.moments) - 1
    assert restore(past, Restored(stores, dict.fromkeys(stores, 1), False, newest)).broken == []


OLDER = (["ledger"], ["ledger", "published"], ["ledger", "trusted"])
MOVED_TOO = [(stores, stores != ["ledger"]) for stores in OLDER]
BY_NIGHT = [pytest.param(stores, not moved, marks=pytest.mark.nightly) for stores, moved in MOVED_TOO]


@pytest.mark.parametrize(("stores", "moved"), [*MOVED_TOO, *BY_NIGHT])
def test_an_older_ledger_draws_no_day_that_others_saw(past, stores, moved):
    newest = len(past.moments) - 1
    one = Restored(stores, dict.fromkeys(stores, before_a_day(past)), moved, newest)
    assert past.knowable(one)
    assert restore(past, one).broken == []


def test_the_control_is_caught(past):
    """All three at once leave no trace: the judge, who saw everything, finds the second draw."""
    newest = len(past.moments) - 1
    stores = ("ledger", "trusted", "published")
    one = Restored(stores, dict.fromkeys(stores, before_a_day(past)), False, newest)
    assert not past.knowable(one)
    assert restore(past, one).double_spends


def test_every_subset_is_restored(past):
    tried = list(restores(past, random.Random(SEED)))
    assert len({(one.stores, one.moved) for one in tried}) == 14
