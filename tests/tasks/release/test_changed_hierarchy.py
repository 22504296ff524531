"""Days on both sides of a change of the hierarchy: each is released under its own tree, in one ledger."""

from datetime import date, timedelta

import pytest

from tasks.release.run import Status, terms_of

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
    """Add a change to the configuration; earlier ones stay."""
    entry = f"[[hierarchy.changes]]\nvalid_from = {day}\n{operation}\n[budget]\n"
    installation.configure("[budget]\n", entry)


DAILY = {("split", "HistoryInformed"), ("merged", "HistoryInformed"), ("added", "BudgetAbsorption")}
"""With all of OptStream's; PeGaSus' raw state has a test of its own. The others are tried by night."""
CHANGES = [
    pytest.param(
        operation,
        mechanism,
        marks=[] if mechanism == "OptStream" or (operation, mechanism) in DAILY else [pytest.mark.nightly],
    )
    for operation in OPERATIONS
    for mechanism in MECHANISMS
]


@pytest.mark.parametrize(("operation", "mechanism"), CHANGES)
def test_a_change_before_and_after_which_days_are_released(installation, mechanism, operation):
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


def test_raw_state_of_a_period_that_is_forgotten_is_destroyed_as_the_next_is_drawn(installation):
    """A day before an amendment, which nothing goes on from."""
    installation.change_mechanism("PeGaSus")
    installation.released(*DAYS[:2])
    folder = installation.settings.measurements_of(DAYS[1], 0)
    assert list(folder.glob("*.raw"))
    installation.configure('epsilon = "1"', 'epsilon = "2"')
    installation.ledger.amend(terms_of(installation.settings), "another epsilon", installation.now)
    installation.simulate(DAYS[3])
    # the window of two days is still charged by the budget of before
    assert installation.status(DAYS[3]) is Status.PUBLISHED
    assert not list(folder.glob("*.raw"))


def test_a_change_that_has_not_begun_may_be_taken_back_or_written_anew(installation):
    installation.released(*DAYS[:2])
    plain = (installation.folder / "optstream.toml").read_text()
    change_from(installation, DAYS[2], 'renamed = { 11 = "IDF" }')
    installation.run()
    (installation.folder / "optstream.toml").write_text(plain)
    change_from(installation, DAYS[3], 'renamed = { 11 = "PARIS" }')
    installation.run()
    installation.simulate(*DAYS[2:])
    assert installation.statuses(*DAYS[2:]) == {Status.PUBLISHED}
    assert installation.ledger.verify() == []


def test_a_restatement_of_an_old_day_has_that_days_tree(installation):
    installation.configure('restatement_share = "0"', 'restatement_share = "1/5"')
    installation.release(*DAYS[:2])
    change_from(installation, CHANGED, 'split = { 84 = ["84N", "84S"] }')
    installation.simulate(*DAYS[2:])
    installation.release(*DAYS[2:])
    assert installation.status(DAYS[1], restate=True) is Status.PUBLISHED
    rows = installation.rows().filter(date=DAYS[1])
    assert set(rows["node"]) == {"FR", "84", "11"}
    assert set(rows["revision"]) == {1}


def test_a_dump_under_the_old_code_after_the_change_is_an_unknown_region(installation):
    installation.simulate(*DAYS)
    change_from(installation, CHANGED, 'renamed = { 11 = "IDF" }')
    done = installation.release(*DAYS)
    assert [done[day].status for day in DAYS] == [Status.PUBLISHED] * 2 + [Status.REFUSED] * 2
    assert "region=11' is not a leaf of the hierarchy" in done[CHANGED].message
