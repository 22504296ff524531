"""Whether a run has anything to do: by ledger and published folder, before an orchestrator is loaded."""

from collections.abc import Sequence
from datetime import date
from itertools import chain

from optstream.catalogue import find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.layout import PAGE
from optstream.catalogue.metadata.write_metadata import check_metadata
from optstream.catalogue.page import check_curves, check_page
from optstream.errors import PublicationError
from tasks.config import Settings
from tasks.release.day import Ended, Requested
from tasks.release.due import due
from tasks.release.run import Run, enrol, look_up


def over_already(run: Run, days: Sequence[date]) -> list[Ended] | None:
    """Return the outcomes of days of which nothing is left to do; None where a run would do anything at all:
    one of them is to be released or finished, an earlier day is due a new estimate, or a page is not of the
    days that are published.

    Where all days are over, the run's terms are compared with the ledger's, as in every run. Raises
    LedgerError if that has another privacy guarantee for the stream.
    """
    if run.restate:
        return None
    newest = [run.ledger.latest(run.stream, day.isoformat()) for day in days]
    if any(record is None or record.state.is_under_way for record in newest):
        return None
    enrol(run)  # which refuses another guarantee than the ledger has
    if run.ledger.vintages(run.stream, unpublished=True):
        return None
    if waiting := due(run, days):
        from tasks.release.revise import changes_any  # most of a second: only where a day is due

        if changes_any(run, waiting):
            return None
    if not pages_are_made(run.settings):
        return None
    ended = [look_up(run, Requested(day)) for day in days]
    over = [day for day in ended if isinstance(day, Ended)]
    return over if len(over) == len(days) else None  # else another run has just begun a revision


def pages_are_made(settings: Settings) -> bool:
    """Whether pages and what they load are of the newest catalogue: a run that died, or met a full disk,
    leaves them behind.
    """
    place = open_storage(settings.published_folder)
    try:
        catalogue = find_catalogue(place)
        if catalogue is None or not place.is_file(PAGE) or not settings.report_file.is_file():
            return False
        return not check_page(place, catalogue) and not any(
            chain(check_metadata(place, catalogue), check_curves(place))
        )
    except PublicationError:
        return False
