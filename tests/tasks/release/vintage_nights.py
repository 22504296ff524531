"""Nights of the small stream by HistoryInformed, whose last days get new estimates."""

from datetime import date, timedelta

from optstream.catalogue import read_catalogue
from tasks.release import pipeline as steps
from tasks.release.revise import due
from tasks.release.run import Status
from tests.tasks.release.noises import no_noise

DAYS = [date(2016, 6, 1) + timedelta(days=number) for number in range(6)]


def night(installation, *days, **changes):
    """Release these days, then give earlier ones the estimates that are due; the latter by date."""
    for work in installation.release(*days, **changes).values():
        assert work.status is Status.PUBLISHED, work
    return revised(installation)


def revised(installation):
    run = installation.run(noise=no_noise())
    ended = steps.publish_revisions(run, steps.revise_estimates(run, due(run)))
    return {day.day: day for day in ended}


def listed(installation):
    return {
        entry.period: entry.vintage for entry in read_catalogue(installation.folder / "published").entries
    }
