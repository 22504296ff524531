"""A disk that fails to sync: what readers have all the same is said, and completed by the next run."""

import os
from contextlib import contextmanager
from datetime import date, timedelta

import pytest

from optstream.catalogue import read_catalogue
from optstream.ledger import ReleaseState
from tasks.release.stages import Status
from tests.failing import raising

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
