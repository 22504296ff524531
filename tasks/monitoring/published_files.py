"""Which listed files of the published folder are not there as they were published. Opens none of them.

`optstream ledger verify` reads and compares every file; this is what can be looked at every hour.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

import polars as pl

from optstream.catalogue import Catalogue, Entry, find_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.hours.day_entry import DayEntry, day_entries
from optstream.catalogue.layout import DATA
from optstream.errors import PublicationError
from tasks.config import Settings

MISSING, RESIZED = "is missing", "is not as long as it was"


def lost_files(settings: Settings, catalogue: Catalogue | None) -> dict[date, str]:
    """The listed days whose file is missing, or has another size than when it was last read, with which.

    One listing of the folder; of a local one the sizes as well. A day that was withdrawn or published anew
    meanwhile is left out, and where the folder cannot be listed, every day is.
    """
    if catalogue is None:
        return {}
    place, listed = open_storage(settings.published_folder), catalogue.listed
    try:
        there = set(place.names_below(DATA))
        found = _resized(settings, listed) | {
            one.period: MISSING for one in listed if one.shown_in not in there
        }
        now = find_catalogue(place) if found else catalogue
    except (PublicationError, OSError):
        return {}
    same = set(() if now is None else now.listed) & set(listed)
    return {one.period: found[one.period] for one in listed if one.period in found and one in same}


def _resized(settings: Settings, listed: Iterable[Entry]) -> dict[date, str]:
    """By the sizes that the pages' summaries keep; files that no page was made of yet are not looked at, nor
    those of hours whose day is open.
    """
    folder, known = settings.published_folder, _known_sizes(settings)
    if not isinstance(folder, Path):
        return {}
    found: dict[date, str] = {}
    for entry in day_entries(listed):
        own = entry.own if isinstance(entry, DayEntry) else (entry,)
        size = known.get(entry.closed_in or "" if isinstance(entry, DayEntry) else entry.file_hash)
        path = folder / entry.file
        if size is not None and path.is_file() and path.stat().st_size != size:
            found |= dict.fromkeys([one.period for one in own], RESIZED)
    return found


def _known_sizes(settings: Settings) -> Mapping[str, int]:
    kept = kept_figures(settings)
    return {} if kept is None else dict(kept.select("file_hash", "size").unique().drop_nulls().iter_rows())


def kept_figures(settings: Settings) -> pl.DataFrame | None:
    """What the pages keep of every published file and node (`tasks.reports.summaries.SCHEMA`): published
    values alone. None where there is none yet.
    """
    columns = ["file_hash", "node", "mean", "noise", "model", "size"]
    try:
        return pl.read_parquet(settings.summaries_file, columns=columns)
    except (OSError, pl.exceptions.PolarsError):
        return None
