"""A copied trusted folder that is run elsewhere: seen wherever one machine can see the other.

With a ledger and a published folder of its own, a copy shares nothing with the first: both draw, and nothing
can tell. docs/faults.md says so, and the last test here keeps it true.
"""

import pytest

from tests.by_night import few
from tests.faults.disk.two_machines import ORDERS, make_pair, one_after_the_other, out_of_sight


@pytest.mark.parametrize("shared", few([True, False], 1))
@pytest.mark.parametrize("order", few(ORDERS.values(), 1), ids=ORDERS)
def test_one_ledger_gives_a_day_to_one_machine(postgresql_bench, order, shared):
    """Whatever the published folders: the day is drawn once."""
    outcome = order(postgresql_bench, make_pair(postgresql_bench, shared))
    assert outcome.draws == 1
    assert not outcome.is_double


def test_one_published_folder_shows_the_first_machines_days(sqlite_bench):
    """The catalogue carries a ledger's head that the copy does not have: refused before the draw."""
    outcome = one_after_the_other(sqlite_bench, make_pair(sqlite_bench, shared_published=True))
    assert outcome.before_draw
    assert outcome.is_told
    assert outcome.draws == len(outcome.shown) == 1


@pytest.mark.parametrize("order", list(ORDERS.values())[1:], ids=list(ORDERS)[1:])
def test_one_published_folder_shows_one_release_of_a_day(sqlite_bench, order):
    """Two copies that draw at the same time: readers are given what came first, and never another."""
    outcome = order(sqlite_bench, make_pair(sqlite_bench, shared_published=True))
    assert not outcome.is_double
    assert len(outcome.shown) == 1


@pytest.mark.nightly
def test_a_copy_on_the_same_machine_sees_what_the_first_published(sqlite_bench):
    """The terms in its ledger name the folder that the first publishes to."""
    outcome = one_after_the_other(sqlite_bench, make_pair(sqlite_bench, shared_published=False))
    assert outcome.before_draw
    assert outcome.is_told
    assert outcome.draws == 1


@pytest.mark.nightly
def test_copies_that_share_nothing_cannot_see_each_other(sqlite_bench):
    """The control, and the limit: two draws of one day, shown in two folders."""
    pair = make_pair(sqlite_bench, shared_published=False)
    assert pair.blind
    outcome = out_of_sight(sqlite_bench, pair)
    assert outcome.is_double
    assert outcome.draws == 2
