"""The section of surprises: texts, some of many regions, and the mechanism's check where it has one."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

from optstream.mechanisms import HistoryInformed, Laplace
from tasks.monitoring.compared import Comparison
from tasks.ui.surprises import Surprises
from tasks.ui.views.surprise_table import MOST_REGIONS, surprise_table
from tests.tasks.ui.conftest import FIRST

NEWEST = FIRST + timedelta(days=69)
FOUND = Surprises(
    (), tuple(Comparison(NEWEST, f"r{number}", 54321.0, 108642.0, 1.0) for number in range(MOST_REGIONS + 1))
)


def test_texts_with_their_unit_and_some_of_many_regions(snapshot):
    table = surprise_table(snapshot(surprises=FOUND))
    assert table is not None
    assert (table.newest, table.n_regions, len(table.rows)) == (NEWEST, MOST_REGIONS + 1, MOST_REGIONS)
    first = table.rows[0]
    assert (first.region, first.mean, first.usual, first.times) == ("r0", "54,321", "108,642", "0.5")
    assert table.unit == "MW"


def test_the_mechanism_s_own_check_is_told_where_it_has_one(snapshot, settings):
    def table_of(mechanism):
        found = snapshot(surprises=FOUND)
        facts = replace(found.view.facts, unlike=(FIRST, NEWEST))
        named = SimpleNamespace(mechanism=SimpleNamespace(kind=mechanism), published=settings.published)
        return surprise_table(replace(found, view=replace(found.view, facts=facts), settings=named))

    assert table_of(HistoryInformed).unlike == (NEWEST, FIRST)
    assert table_of(HistoryInformed).has_check
    assert not table_of(Laplace).has_check


def test_before_a_week_there_is_none(snapshot):
    assert surprise_table(snapshot()) is None
    assert surprise_table(snapshot(surprises=Surprises())) is None
