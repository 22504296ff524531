"""Nights of the small stream by HistoryInformed, whose last days get new estimates."""

from datetime import date, timedelta

from optstream.catalogue import check_files, read_catalogue
from optstream.stream import Measured
from tasks.ledger.verify import verify
from tasks.release import steps
from tasks.release.day import Status
from tasks.release.due import due
from tasks.storage.private_files import read_verified

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(6)]


def night(house, *days, **changes):
    """Release these days, then give earlier ones the estimates that are due; the latter by date."""
    for work in house.release(*days, **changes).values():
        assert work.outcome.status is Status.PUBLISHED, work.outcome
    return revised(house)


def revised(house, **changes):
    run = house.run(**changes)
    ended = steps.publish_revisions(run, steps.revise_estimates(run, due(run)))
    return {day.day: day.outcome for day in ended}


def listed(house):
    return {entry.period: entry.vintage for entry in read_catalogue(house.folder / "published").entries}


def stored(house, day):
    record = house.record(day)
    folder = house.settings.measurements_of(day, record.revision)
    return Measured.from_bytes(read_verified(folder, record.measurements_hash))


def sound(house):
    assert house.ledger.verify() == []
    assert verify(house.settings, house.ledger).problems == ()
    assert check_files(house.folder / "published") == []
