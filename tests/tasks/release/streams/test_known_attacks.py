"""Owners that wake up, files that are lost, noise that others know, ledgers that are too old."""

import shutil
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import LedgerError
from optstream.ledger import Key, Ledger, ReleaseState
from optstream.stream import PrivatePeriod
from tasks.operate import withdraw as withdrawal
from tasks.release import run
from tasks.release.reserve import look_at_folders, reserve
from tasks.release.run import Judged, Requested, Status, terms_of
from tests.failing import raising
from tests.tasks.two_regions import FEW_BLOCKS, STEPS

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(4)]


@pytest.fixture
def pegasus(installation):
    installation.change_mechanism("PeGaSus", 'threshold = "100000"')
    installation.simulate(*DAYS)
    return installation


def groups_of(installation, day):
    return [part.choices["groups"] for part in installation.measured(day).parts]


def opened_before(installation, day):
    first = installation.settings.calendar.first_step(day)
    return any(
        start < first for level in groups_of(installation, day) for series in level for start in series[:1]
    )


def test_windows_whose_groups_rest_on_a_compromised_threshold_are_lost(pegasus):
    """Days 2 and 3 went on with thresholds of day 1; with its noise known they protect nobody."""
    pegasus.release(*DAYS[:3])
    assert opened_before(pegasus, DAYS[1])
    assert opened_before(pegasus, DAYS[2])
    known = pegasus.compromise(DAYS[0], "a leak")
    assert known == DAYS[:3]
    calendar = pegasus.settings.calendar
    end = calendar.first_step(DAYS[2]) + calendar.n_steps(DAYS[2])
    first = calendar.first_step(DAYS[0])
    begun = [s[0] for level in groups_of(pegasus, DAYS[2]) for s in level]
    assert min(begun) < first + 48, "the group began in the compromised day"
    assert pegasus.ledger.window_spent("people", range(end + 40, end + 41)).epsilon == float("inf")


def unreleased(stale):
    """The first day as its owner knows it that has read the dump, and not reserved."""
    found = run.look_up(stale, Requested(DAYS[0]))
    period = PrivatePeriod(np.zeros((2, 48), np.int64), resolution=Fraction(1), first_step=0)
    return Judged(found.day, found.revision, period, {})


def test_an_owner_that_wakes_up_leaves_its_successors_raw_state(pegasus, monkeypatch):
    """tasks.release.run.void destroys all raw files before the ledger says whose the release is."""
    pegasus.release(DAYS[0], steps=STEPS[:5])
    stale = pegasus.run(owner="stale")
    # the first owner reserved; the second takes over once the lease is over, and draws
    judged = unreleased(stale)
    pegasus.later(hours=1)
    first = reserve(stale, judged, look_at_folders(stale))
    pegasus.later(hours=1)
    pegasus.release(DAYS[0], steps=STEPS[:6])
    assert pegasus.record(DAYS[0]).state is ReleaseState.DRAWN
    before = pegasus.raw_files()
    assert before
    with pytest.raises(LedgerError):
        run.void(stale, first, "it raised")  # what `_give_up` does; the ledger refuses it
    assert pegasus.raw_files() == before


@pytest.fixture
def listed(installation, monkeypatch):
    """A day that readers have, whose run died between catalogue and ledger."""
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_published", raising(LedgerError("away")))
        installation.release(DAYS[0])
    installation.later(hours=1)
    assert installation.entry(DAYS[0])
    return installation


def test_a_listed_day_is_not_made_void(listed):
    """Its trusted files are lost: VOID, while readers have it."""
    shutil.rmtree(listed.settings.staging_of(DAYS[0], 0))
    shutil.rmtree(listed.settings.measurements_of(DAYS[0], 0))
    assert listed.status(DAYS[0]) is Status.PUBLISHED
    assert listed.record(DAYS[0]).state is ReleaseState.PUBLISHED
    assert listed.rows().height == 3 * 48


def test_a_listed_day_that_is_void_can_be_withdrawn(listed):
    listed.ledger.void(Key("two-regions", DAYS[0].isoformat()), "measurements are gone", listed.now)
    listed.withdraw(DAYS[0])
    assert listed.entry(DAYS[0]).withdrawn
    assert listed.problems() == []


def test_a_withdrawal_records_a_restatement_published_while_it_waited(installation, monkeypatch):
    """`latest` is read before the publishers' lock: the tombstone names revision 1, the ledger gets 0."""
    installation.configure('restatement_share = "0"', 'restatement_share = "1/2"')
    installation.release(DAYS[0])
    genuine = withdrawal.withdraw_published

    def waits(*arguments, **named):
        installation.release(DAYS[0], restate=True)
        return genuine(*arguments, **named)

    monkeypatch.setattr(withdrawal, "withdraw_published", waits)
    installation.withdraw(DAYS[0])
    assert installation.entry(DAYS[0]).withdrawn
    monkeypatch.undo()
    assert installation.status(DAYS[0]) is Status.WITHDRAWN


def test_an_older_ledger_is_refused_where_another_stream_of_the_population_has_published_since(installation):
    """It holds the newest head of this stream's folder, and not what the other has spent."""
    text = (installation.folder / "optstream.toml").read_text()
    own, other = text, text.replace('"two-regions"', '"twins"').replace('"published"', '"elsewhere"')

    def release_as(configuration, day):
        (installation.folder / "optstream.toml").write_text(configuration)
        return installation.outcome(day)

    assert release_as(own, DAYS[0]).status is Status.PUBLISHED
    (installation.folder / "optstream.toml").write_text(other)
    run.enrol(installation.run())
    copy = installation.copy_ledger()
    installation.simulate(*DAYS)
    assert release_as(other, DAYS[3]).status is Status.PUBLISHED
    assert release_as(own, DAYS[3]).status is Status.REFUSED  # the population's window is full
    installation.bring_back(copy)
    refused = release_as(own, DAYS[3])
    assert refused.status is Status.FAILED
    assert "restored from an older copy" in refused.message


def test_a_hierarchy_that_was_amended_is_not_remembered_in_the_old_shape(installation):
    """The state of two regions failed the draw of three after its first sample: every later day was void."""
    installation.change_mechanism("HistoryInformed", FEW_BLOCKS)
    assert installation.status(DAYS[0]) is Status.PUBLISHED
    installation.configure('11 = "FR"', '11 = "FR"\n24 = "FR"')
    installation.simulate(*DAYS[:3])
    installation.ledger.amend(terms_of(installation.settings), "a region more", installation.now)
    for day in DAYS[1:3]:
        assert installation.status(day) is Status.PUBLISHED
