"""Draws that cannot be recorded, and syncs that fail, are never taken for done."""

import os
import threading
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.catalogue import read_catalogue
from optstream.errors import LedgerError, LedgerUnavailableError
from optstream.ledger import ReleaseState
from optstream.noise import secure_noise
from tasks.operate.doctor import noise_library
from tasks.release import draw as draw_module
from tasks.release.lineage import record_of_draw
from tasks.release.run import Status, let_go, release_lease
from tests.failing import raising
from tests.tasks.release.noises import NoiseMeanwhile, no_noise
from tests.tasks.two_regions import STEPS

DAY = date(2016, 6, 1)


def status(works):
    return works[DAY].outcome.status


def away(ledger, monkeypatch, times):
    """The database does not answer the first so many times that a draw is to be recorded."""
    genuine, calls = type(ledger).record_drawn, []

    def record_drawn(*arguments):
        calls.append(1)
        if len(calls) <= times:
            raise LedgerUnavailableError("the database is away")
        return genuine(*arguments)

    monkeypatch.setattr(type(ledger), "record_drawn", record_drawn)
    monkeypatch.setattr(draw_module, "PAUSE", timedelta(milliseconds=1))
    return calls


def die_unrecorded(installation, monkeypatch, **changes):
    """A run draws the day, and ends while the database is away."""
    away(installation.ledger, monkeypatch, 10**6)
    works = installation.release(DAY, **{"patience": timedelta(0), **changes})
    monkeypatch.undo()
    return works


def measurements(installation):
    """What is drawn, by the hash in its name, whoever's token it has."""
    found = installation.files("trusted/measurements")
    return {path.name.partition("-")[2]: data for path, data in found.items() if "-" in path.name}


def test_a_database_that_comes_back_has_the_draw_recorded(either, monkeypatch):
    calls = away(either.ledger, monkeypatch, 3)
    assert status(either.release(DAY)) is Status.PUBLISHED
    assert len(calls) == 4
    assert either.record(DAY).redraws == 0


def test_a_database_that_stays_away_loses_nothing(either, monkeypatch):
    """Once it answers, the next run takes the same bytes up, with the inputs that they were drawn from."""
    works = die_unrecorded(either, monkeypatch, patience=timedelta(milliseconds=3))
    assert status(works) is Status.FAILED
    assert "Nothing is lost" in works[DAY].outcome.message
    assert either.record(DAY).state is ReleaseState.RESERVED
    drawn = measurements(either)
    let_go(either.run(), works.values())
    assert status(either.release(DAY, owner="at once")) is Status.BUSY
    either.later(hours=1)
    assert status(either.release(DAY, noise=no_noise())) is Status.PUBLISHED
    record = either.record(DAY)
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, 0)
    assert measurements(either) == drawn
    assert record_of_draw(either.settings, DAY, 0, record.measurements_hash).inputs()
    assert either.ledger.verify() == []


def test_measurements_that_are_not_whole_are_drawn_afresh(either, monkeypatch):
    """Cut short after their name was durable, as no file system should: their own hash tells."""
    die_unrecorded(either, monkeypatch)
    (path,) = (either.folder / "trusted/measurements").rglob("1-*")
    path.write_bytes(path.read_bytes()[:-1])
    either.later(hours=1)
    assert status(either.release(DAY)) is Status.PUBLISHED
    assert either.record(DAY).redraws == 1


def test_an_owner_that_wakes_up_finds_its_draw_taken_up_and_destroys_nothing(either, monkeypatch):
    genuine = type(either.ledger).record_drawn

    def asleep(*arguments):
        monkeypatch.undo()
        either.later(hours=1)
        assert status(either.release(DAY, owner="successor")) is Status.PUBLISHED
        return genuine(*arguments)

    monkeypatch.setattr(type(either.ledger), "record_drawn", asleep)
    works = either.release(DAY, owner="sleeper")
    assert "taken over by another run" in works[DAY].outcome.message
    assert either.record(DAY).state is ReleaseState.PUBLISHED
    assert len(either.files("trusted/measurements")) == 1
    again = either.release(DAY)
    assert status(again) is Status.UNCHANGED


@pytest.mark.parametrize("ledger_answers", [True, False])
def test_the_word_of_an_owner_that_was_fenced_off_does_not_void_its_successor(
    either, monkeypatch, ledger_answers
):
    """It raises when another run has taken the day over and not drawn yet."""
    taken = {}

    def asleep():
        either.later(hours=1)
        taken.update(either.release(DAY, steps=STEPS[:5], owner="successor"))
        if not ledger_answers:
            for method in ("void", "find"):
                unreachable = raising(LedgerUnavailableError("the database is away"))
                monkeypatch.setattr(type(either.ledger), method, unreachable)
        raise MemoryError

    either.release(DAY, noise=NoiseMeanwhile(asleep, at=3), owner="sleeper")
    monkeypatch.undo()
    run = either.run(owner="successor")
    works = list(taken.values())
    for step in STEPS[5:]:
        works = step(run, works)
    assert works[0].outcome.status is Status.PUBLISHED
    assert either.record(DAY).state is ReleaseState.PUBLISHED


def test_a_library_that_does_not_load_costs_no_day(either):
    missing = NoiseMeanwhile(raising(ImportError("71234")), at="each")
    for _ in range(4):
        works = either.release(DAY, noise=missing)
        assert "nothing was" in works[DAY].outcome.message
        assert "71234" not in works[DAY].outcome.message
        let_go(either.run(), works.values())
        assert not either.record(DAY).drawing
        either.later(minutes=1)
    assert either.record(DAY).redraws == 0
    assert [severity for severity, *_ in noise_library(missing)] == ["wrong"]
    assert list(noise_library(secure_noise())) == []
    assert status(either.release(DAY)) is Status.PUBLISHED


@pytest.mark.nightly
def test_the_lease_of_a_long_draw_does_not_end(either):
    """Another run, by real clocks, is refused long after the lease of the draw's start."""
    refused = threading.Event()

    def slow():
        began = datetime.now(UTC)
        while datetime.now(UTC) < began + 3 * lease:
            refused.wait(0.05)
        other = either.release(DAY, clock=lambda: datetime.now(UTC), owner="other", lease=lease)
        assert status(other) is Status.BUSY
        refused.set()

    lease = timedelta(seconds=2)
    works = either.release(DAY, noise=NoiseMeanwhile(slow), clock=lambda: datetime.now(UTC), lease=lease)
    assert refused.is_set()
    assert status(works) is Status.PUBLISHED
    assert either.record(DAY).redraws == 0


@pytest.mark.parametrize("drawn", [True, False], ids=["whole", "not drawn"])
def test_a_lease_of_a_clock_that_ran_ahead_is_ended_by_a_person(either, monkeypatch, drawn):
    either.later(days=3650)
    if drawn:
        die_unrecorded(either, monkeypatch, owner="ahead")
    else:
        either.release(DAY, steps=STEPS[:5], owner="ahead")
    either.later(days=-3650)
    before = measurements(either)
    works = either.release(DAY)
    assert status(works) is Status.BUSY
    assert "release-lease" in works[DAY].outcome.message
    release_lease(either.settings, either.ledger, DAY, "its clock ran ahead", either.now)
    with pytest.raises(LedgerError, match="held by no run"):
        release_lease(either.settings, either.ledger, DAY, "once more", either.now)
    assert status(either.release(DAY)) is Status.PUBLISHED
    assert either.record(DAY).redraws == 0
    assert not drawn or measurements(either) == before
    assert either.ledger.verify() == []


DAYS = [date(2016, 6, 1), date(2016, 6, 2)]


@contextmanager
def failing(monkeypatch, folder):
    """Once the catalogue lists the days, no sync of this folder's own names succeeds."""
    real, own = os.fsync, folder.stat().st_ino

    def fsync(descriptor):
        if os.fstat(descriptor).st_ino == own and read_catalogue(folder).entry(DAYS[0]):
            raise OSError(5, "Input/output error")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.mark.parametrize("either", ["sqlite", "postgresql"], indirect=True)
def test_days_that_are_listed_are_not_called_unpublished(either, monkeypatch):
    either.simulate(DAYS[1] + timedelta(days=1))
    either.release(DAYS[1] + timedelta(days=1))
    with failing(monkeypatch, either.folder / "published"):
        done = either.release(*DAYS)
    catalogue = read_catalogue(either.folder / "published")
    for day in DAYS:
        outcome = done[day].outcome
        assert outcome.status is Status.FAILED
        assert "it is listed and readers have it" in outcome.message
        assert outcome.file == catalogue.entry(day).file
        assert either.record(day).state is ReleaseState.DRAWN
    either.later(hours=1)
    again = either.release(*DAYS)
    assert [again[day].outcome.status for day in DAYS] == [Status.PUBLISHED] * 2
    assert either.problems() == []


def test_a_day_without_its_lineage_is_published(installation, monkeypatch):
    """The control: a folder that cannot be written before anything is listed publishes nothing."""

    full = raising(OSError(28, "No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr("tasks.release.lineage._append", full)
        outcome = installation.release(DAYS[0])[DAYS[0]].outcome
    assert outcome.status is Status.FAILED
    assert "it is published and recorded, and its lineage event could not be written" in outcome.message
    assert outcome.file == read_catalogue(installation.folder / "published").entry(DAYS[0]).file
    assert installation.release(DAYS[0])[DAYS[0]].outcome.status is Status.UNCHANGED
    with monkeypatch.context() as patch:
        patch.setattr("optstream.catalogue.backends.write_new", full)
        outcome = installation.release(DAYS[1])[DAYS[1]].outcome
    assert (outcome.status, outcome.file) == (Status.FAILED, None)


def test_a_run_that_dies_before_it_records_leaves_no_day_without_its_lineage(installation, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tasks.release.publish.record_published", raising(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            installation.release(DAYS[0])
    assert installation.record(DAYS[0]).state is ReleaseState.DRAWN
    installation.later(hours=1)
    assert installation.release(DAYS[0])[DAYS[0]].outcome.status is Status.PUBLISHED
    runs = [event["run"]["runId"] for event in installation.lineage()]
    assert (len(runs), len(set(runs))) == (2, 1), "told twice, as one event"
