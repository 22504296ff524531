"""Known noise: the days that share it, by groups that cross midnight; nothing under way is drawn or shown."""

import shutil
from datetime import date, timedelta
from itertools import chain
from math import inf

import pytest

from optstream.catalogue import find_catalogue
from optstream.ledger import Ledger, ReleaseState
from tasks.release import draw, publish
from tasks.release.run import Status
from tasks.trusted.files import take_raw
from tests.by_night import few
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(6)]
FOUR = DAYS[:4]


@pytest.fixture
def pegasus(installation):
    installation.change_mechanism("PeGaSus", 'threshold = "100000"')
    installation.simulate(*DAYS)
    return installation


def opened_before(installation, day):
    first, parts = installation.settings.calendar.first_step(day), installation.measured(day).parts
    return any(series[0] < first for part in parts for series in part.choices["groups"])


@pytest.fixture
def short(pegasus):
    """One day is released, and none of the next day's windows reaches back to it."""
    pegasus.configure("window = 48", "window = 1")
    pegasus.release(DAYS[0])
    return pegasus


def lost(installation, first_step, n_steps=1):
    return installation.ledger.window_spent("people", range(first_step, first_step + n_steps)).epsilon == inf


def first_step(installation, day):
    return installation.settings.calendar.first_step(day)


def test_the_day_before_whose_open_group_ran_into_the_leaked_one_is_lost(pegasus):
    """An outcome of the leaked day may have probability 0 under one of two streams that differ there."""
    pegasus.released(DAYS[0])
    pegasus.release(DAYS[1])
    assert pegasus.compromise(DAYS[1]) == DAYS[:2]
    assert lost(pegasus, first_step(pegasus, DAYS[0]))
    # a window that ends with the first step of the day before, far from the leaked one
    assert lost(pegasus, first_step(pegasus, DAYS[0]) - 40)
    assert pegasus.raw_files() == []
    assert pegasus.ledger.verify() == []
    assert pegasus.status(DAYS[2]) is Status.REFUSED


def thresholds_of(installation, days):
    """The steps that each threshold was compared with, of every series, from what was recorded."""
    open_now, found = {}, []
    for day in days:
        for level, part in enumerate(installation.measured(day).parts):
            for node, starts in enumerate(part.choices["groups"]):
                own = open_now.pop((level, node), None)
                for step, start in enumerate(starts, first_step(installation, day)):
                    if own is None:
                        own = [step]
                        found.append(own)
                        continue
                    own.append(step)
                    if start == step:
                        own = None
                assert (own is not None) == bool(part.state["noisy"][node])
                if own is not None:
                    open_now[level, node] = own
    return found


@pytest.mark.parametrize(
    ("threshold", "leaked"),
    [
        ("20", 2),
        *(
            pytest.param(*one, marks=pytest.mark.nightly)
            for one in (("0", 1), ("100", 1), ("0", 2), ("20", 1), ("100", 2))
        ),
    ],
)
def test_exactly_the_days_that_share_a_threshold_are_marked(pegasus, threshold, leaked):
    pegasus.configure('threshold = "100000"', f'threshold = "{threshold}"')
    pegasus.release(*FOUR)
    steps = {day: set(range(first_step(pegasus, day), first_step(pegasus, day) + 48)) for day in FOUR}
    known = [own for own in thresholds_of(pegasus, FOUR) if steps[FOUR[leaked]].intersection(own)]
    expected = [day for day in FOUR if steps[day].intersection(chain.from_iterable(known))]
    assert pegasus.compromise(FOUR[leaked]) == expected
    untouched = set(FOUR) - set(expected)
    assert all(pegasus.record(day).compromised is None for day in untouched)
    assert all(pegasus.record(day).compromised == "a stolen disk" for day in expected)


def test_days_that_nobody_can_read_any_more_count_as_joined(pegasus):
    pegasus.configure('threshold = "100000"', 'threshold = "0"')
    pegasus.release(*FOUR)
    for day in FOUR:
        shutil.rmtree(pegasus.settings.measurements_of(day, 0))
    assert pegasus.compromise(FOUR[2]) == FOUR


def test_a_day_that_is_being_drawn_is_given_up(short, monkeypatch):
    """It has taken the threshold of the day before: what it draws is destroyed, not published."""
    from optstream.mechanisms import Hierarchical

    genuine = Hierarchical.measure

    def measure(self, *arguments, **named):
        assert short.compromise(DAYS[0]) == DAYS[:2]
        return genuine(self, *arguments, **named)

    monkeypatch.setattr(Hierarchical, "measure", measure)
    assert short.status(DAYS[1]) is not Status.PUBLISHED
    record = short.record(DAYS[1])
    assert (record.state, record.compromised) == (ReleaseState.VOID, "a stolen disk")
    assert short.raw_files() == []


def test_a_day_goes_on_with_no_threshold_that_became_known_before_its_draw_began(short, monkeypatch):
    """Its own windows have lost nothing, and the raw state is in its hands already."""

    def taken_too_early(folder, digest):
        raw = take_raw(folder, digest)
        assert short.compromise(DAYS[0]) == DAYS[:1]
        return raw

    with monkeypatch.context() as patched:
        patched.setattr(draw, "take_raw", taken_too_early)
        assert short.status(DAYS[1]) is Status.FAILED
    record = short.record(DAYS[1])
    assert (record.state, record.drawing, record.redraws) == (ReleaseState.RESERVED, False, 0)
    short.later(hours=1)
    assert short.status(DAYS[1]) is Status.PUBLISHED
    assert not opened_before(short, DAYS[1])
    assert short.record(DAYS[1]).compromised is None


def test_a_day_that_began_its_draw_while_the_releases_were_looked_at_is_marked_too(short, monkeypatch):
    genuine = Ledger.releases

    def releases(self, stream):
        found = genuine(self, stream)
        monkeypatch.setattr(Ledger, "releases", genuine)
        assert short.status(DAYS[1]) is Status.PUBLISHED
        return found

    monkeypatch.setattr(Ledger, "releases", releases)
    assert short.compromise(DAYS[0]) == DAYS[:2]
    assert short.record(DAYS[1]).compromised == "a stolen disk"
    assert short.raw_files() == []


@pytest.mark.parametrize(
    "mechanism", few(["HistoryInformed", "BudgetDistribution", "BudgetAbsorption", "Fast"], 1)
)
def test_mechanisms_that_remember_outputs_only_share_no_noise(installation, mechanism):
    installation.change_mechanism(mechanism)
    installation.simulate(*DAYS)
    installation.released(*DAYS[:3])
    assert all(installation.record(day).state is ReleaseState.PUBLISHED for day in DAYS[:3])
    assert installation.compromise(DAYS[1]) == [DAYS[1]]


def test_a_drawn_day_is_void_and_no_run_publishes_it(installation):
    """Someone who knows the noise can compute the raw values from the published ones."""
    run, works = installation.through(STEPS[:-1], DAYS[0])
    installation.compromise(DAYS[0])
    (late,) = STEPS[-1](run, works)
    assert late.status is Status.FAILED, late
    installation.later(hours=1)
    assert installation.status(DAYS[0]) is Status.VOID
    record = installation.record(DAYS[0])
    assert (record.state, record.compromised) == (ReleaseState.VOID, "a stolen disk")
    assert record.spends
    assert find_catalogue(installation.folder / "published") is None
    assert installation.problems() == []


def test_a_run_that_is_about_to_draw_draws_nothing(installation):
    installation.released(DAYS[0])
    run, works = installation.through(STEPS[:5], DAYS[1])
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    installation.compromise(DAYS[0])
    (refused,) = STEPS[5](run, works)
    assert refused.status is Status.REFUSED, refused
    # nor does the run that takes the day over, under the plan that was charged already
    installation.later(hours=1)
    assert installation.status(DAYS[1]) is Status.REFUSED
    assert installation.record(DAYS[1]).state is ReleaseState.RESERVED
    assert installation.ledger.verify() == []


def test_one_that_is_listed_and_not_recorded_is_reported_and_withdrawn(installation):
    run, works = installation.through(STEPS[:-1], DAYS[0])
    publish.publish(run, works)
    installation.compromise(DAYS[0])
    (line,) = installation.problems()
    assert f"optstream withdraw --date {DAYS[0]}" in line
    installation.later(hours=1)
    installation.withdraw(DAYS[0])
    assert installation.entry(DAYS[0]).withdrawn
    assert installation.problems() == []
