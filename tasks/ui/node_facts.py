"""The published rows of a few nodes and days: what readers have, and nothing else."""

from collections.abc import Collection
from contextlib import suppress
from datetime import date
from pathlib import PurePosixPath

import polars as pl

from optstream.catalogue import Entry, error_columns, read_catalogue
from optstream.catalogue.backends import Storage, open_storage
from optstream.catalogue.layout import SUPERSEDED, folder_of, is_release_name
from optstream.catalogue.read import read_columns, read_statement
from optstream.errors import PublicationError
from optstream.stream import day_of
from tasks.config import Settings

COLUMNS = {
    "at": pl.Int64(),
    "node": pl.String(),
    "value": pl.Float64(),
    "noise": pl.Float64(),
    "error": pl.Float64(),
}
MOST_REPLACED = 40
"""Files of a day that are read: a page must answer, whatever lies there."""


def read_nodes(settings: Settings, nodes: Collection[str], days: Collection[date]) -> pl.DataFrame:
    """Return what is published of these nodes on these local days; days without a release have no rows.

    `COLUMNS`, sorted by node and time. at: the step's start in seconds since 1970; noise: the standard
    deviation of what the noise did; error: of all that is wrong; both null where the file does not say.
    Raises PublicationError if there is no catalogue, or a file is not the one that it lists.
    """
    place = open_storage(settings.published_folder)
    catalogue = read_catalogue(place)
    frames = [pl.DataFrame(schema=COLUMNS)]
    for entry in catalogue.listed:
        if day_of(entry.period) in days:
            frames.append(_rows(place, entry, catalogue.value_column, nodes))
    return pl.concat(frames).sort("node", "at")


def read_replaced(settings: Settings, node: str, days: Collection[date]) -> dict[str, pl.DataFrame]:
    """Return what was published of a node before a newer vintage or revision took its place.

    `COLUMNS` by "revision 0, vintage 1", the oldest first, of the first 40 files of a day; one that cannot be
    read is left out. Raises PublicationError if there is no catalogue.
    """
    place = open_storage(settings.published_folder)
    value = read_catalogue(place).value_column
    found: dict[tuple[int, int], list[pl.DataFrame]] = {}
    for day in days:
        names = [PurePosixPath(name) for name in place.names_below(folder_of(SUPERSEDED, day))]
        for name in [one for one in names if is_release_name(one.name)][:MOST_REPLACED]:
            digest = name.stem.removeprefix("release-")
            old = Entry(
                period=day,
                revision=0,
                vintage=0,
                file_hash=digest,
                rows_hash=digest,
                ledger_head="unknown",
            )
            with suppress(PublicationError):
                stated, rows = read_statement(place, old), _rows(place, old, value, {node})
                found.setdefault((stated.revision, stated.vintage), []).append(rows)
    return {
        f"revision {revision}, vintage {vintage}": pl.concat(frames).sort("at")
        for (revision, vintage), frames in sorted(found.items())
    }


def _rows(place: Storage, entry: Entry, value: str, nodes: Collection[str]) -> pl.DataFrame:
    errors = error_columns(value)
    rows = read_columns(place, entry, {"timestamp", "node", value, *errors}, {"timestamp", *errors})
    return rows.filter(pl.col("node").is_in(list(nodes)) & pl.col("timestamp").is_not_null()).select(
        pl.col("timestamp").dt.epoch("s").alias("at"),
        "node",
        pl.col(value).alias("value"),
        pl.col(errors[0]).alias("noise"),
        pl.col(errors[1]).alias("error"),
    )
