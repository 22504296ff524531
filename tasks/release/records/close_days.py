"""Put the hours of days that are over into one file a day, in the published folder (docs/hours.md)."""

from contextlib import suppress
from datetime import date, timedelta

from optstream.catalogue import find_catalogue
from optstream.catalogue.hours.closed_days import close_days, finish_closing, open_days
from optstream.errors import OptStreamError
from tasks.release.run import Run
from tasks.signing.sign import signer_of


def close_over(run: Run) -> tuple[date, ...]:
    """Close the days that are over: all their hours are listed, or were withdrawn, or no run takes them up
    any more ([schedule] catch_up_days). Returns those that were closed; nothing is drawn or charged.

    What stands in the way, such as an hour's missing file or a folder that cannot be written, stops no
    release: what is listed is whole, and the next run tries again; so it does where a close was cut short.
    """
    settings = run.settings
    with suppress(OptStreamError, OSError):
        catalogue = find_catalogue(settings.published_folder) if settings.stream.period == "hour" else None
        if catalogue is None:
            return ()
        today = settings.local_day(run.clock())
        given_up = today - timedelta(days=settings.scheduling.catch_up_days)
        finish_closing(settings.published_folder, catalogue, given_up)
        over = {
            day
            for day, entries in open_days(catalogue).items()
            if day < today and (day < given_up or len(entries) == len(settings.calendar.periods_of(day)))
        }
        return close_days(settings.published_folder, over, signer_of(settings, run.ledger)) if over else ()
    return ()
