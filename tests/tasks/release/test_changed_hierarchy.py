"""Days on both sides of a change of the hierarchy: each is released under its own tree, in one ledger."""

from datetime import date, timedelta
from itertools import product

import pytest

from tasks.release.run import Status, terms_of
from tests.by_night import few
from tests.tasks.two_regions import FEW_BLOCKS

FIRST = date(2016, 6, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
CHANGED = DAYS[2]
OPERATIONS = {
    "renamed": ('renamed = { 11 = "IDF" }', {"84", "IDF"}),
    "added": ('added = { 94 = "FR" }', {"84", "11", "94"}),
    "removed": ('removed = ["11"]', {"84"}),
    "split": ('split = { 84 = { 84N = "2", 84S = "1" } }', {"84N", "84S", "11"}),
    "merged": ('merged = { ALL = ["84", "11"] }', {"ALL"}),
}
MECHANISMS = ("OptStream", "PeGaSus", "HistoryInformed", "BudgetAbsorption")


def change_from(installation, day, operation):
    entry = f"[[hierarchy.changes]]\nvalid_from = {day}\n{operation}\n[budget]\n"
    installation.configure("[budget]\n", entry)


BY_DAY = [*product(OPERATIONS, ["OptStream"]), ("merged", "HistoryInformed")]
CHANGES = [*BY_DAY, *(one for one in product(OPERATIONS, MECHANISMS) if one not in BY_DAY)]


@pytest.mark.parametrize("change", few(CHANGES, len(BY_DAY)))
def test_a_change_before_and_after_which_days_are_released(installation, change):
    operation, mechanism = change
    if mechanism != "OptStream":
        installation.change_mechanism(mechanism)
    done = installation.release(*DAYS[:2])
    text, leaves = OPERATIONS[operation]
    change_from(installation, CHANGED, text)
    installation.simulate(*DAYS[2:])
    done |= installation.release(*DAYS[2:])
    assert {one.status for one in done.values()} == {Status.PUBLISHED}, done
    rows = installation.rows()
    for day in DAYS:
        own = rows.filter(date=day)
        expected = {"FR", "84", "11"} if day < CHANGED else {"FR", *leaves}
        assert set(own["node"]) == expected, day
        assert own.height == 48 * len(expected)
        wide = own.pivot(on="node", index="step", values="load_mw")
        gap = wide["FR"] - sum(wide[leaf] for leaf in expected - {"FR"})
        assert gap.abs().max() < 1e-6
    assert len(installation.ledger.event_times("two-regions", "hierarchy")) == 1
    assert installation.problems() == []


def test_no_raw_state_goes_over_a_change(installation):
    """PeGaSus' open groups and their thresholds close at the public date, and the file is destroyed."""
    installation.change_mechanism("PeGaSus")
    installation.released(*DAYS[:2])
    change_from(installation, CHANGED, 'renamed = { 11 = "IDF" }')
    installation.simulate(CHANGED)
    settings = installation.settings
    assert list(settings.measurements_of(DAYS[1], 0).glob("*.raw"))
    assert installation.status(CHANGED) is Status.PUBLISHED
    assert not list(settings.measurements_of(DAYS[1], 0).glob("*.raw"))
    groups = [series for part in installation.measured(CHANGED).parts for series in part.choices["groups"]]
    assert min(map(min, groups)) >= settings.calendar.first_step(CHANGED)


def test_a_hierarchy_that_was_amended_is_not_remembered_in_the_old_shape(installation):
    """The state of two regions failed the draw of three after its first sample: every later day was void."""
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    assert installation.status(DAYS[0]) is Status.PUBLISHED
    installation.configure('11 = "FR"', '11 = "FR"\n24 = "FR"')
    installation.simulate(*DAYS[:3])
    installation.ledger.amend(terms_of(installation.settings), "a region more", installation.now)
    for day in DAYS[1:3]:
        assert installation.status(day) is Status.PUBLISHED
