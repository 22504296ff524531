"""The last listed days beside those before them: which are far, which is the farthest; not at every look."""

from dataclasses import replace
from types import SimpleNamespace

from optstream.catalogue import Catalogue
from tasks.monitor.facts import MOST_DAYS
from tasks.ui.surprises import Surprises, surprises_of
from tests.tasks.monitoring.test_compared import FIRST, entries, figures

ORDINARY = [100.0] * 40


def found_in(kept, listed, before=None):
    settings = SimpleNamespace(tree_of=lambda _day: SimpleNamespace(leaves=("a", "b")))
    catalogue = Catalogue("load", "load_mw", "0" * 64, tuple(listed))
    view = SimpleNamespace(facts=SimpleNamespace(catalogue=catalogue))
    return surprises_of(settings, view, kept, before)


def with_far(*days):
    return [7000.0 if number in days else 100.0 for number in range(40)]


def test_far_days_are_told_the_newest_first_for_four_weeks():
    found = found_in(figures(a=with_far(11, 12, 20), b=with_far(39)), entries(40))
    assert [((one.day - FIRST).days, one.region) for one in found.far] == [(39, "b"), (20, "a"), (12, "a")]
    assert MOST_DAYS == 40 - 12


def test_of_the_newest_day_the_farthest_region_comes_first():
    found = found_in(figures(a=ORDINARY, b=[*ORDINARY[1:], 50.0]), entries(40))
    assert [(one.region, one.ratio) for one in found.newest] == [("b", 0.5), ("a", 1.0)]
    assert found.far == ()


def test_withdrawn_days_and_files_that_no_page_was_made_of_are_left_out():
    listed = entries(41)  # the last has no figures yet
    listed[39] = replace(listed[39], withdrawn=True)
    found = found_in(figures(a=with_far(39)), listed)
    assert found.far == ()
    assert {one.day for one in found.newest} == {listed[38].period}


def test_it_is_worked_out_once_for_the_same_files():
    kept, listed = figures(a=ORDINARY), entries(40)
    before = found_in(kept, listed)
    assert found_in(kept, listed, before) is before
    assert found_in(kept, listed[:-1], before) is not before


def test_without_figures_there_is_nothing():
    assert found_in(None, entries(9)) == Surprises()
    assert found_in(figures(a=[1.0] * 3), entries(3)).newest == ()
