"""The published rows of a few nodes and days: what readers have, and nothing else."""

from collections.abc import Collection
from datetime import date

import polars as pl

from optstream.catalogue import error_columns, read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.catalogue.columns import read_columns
from tasks.config import Settings

COLUMNS = {
    "at": pl.Int64(),
    "node": pl.String(),
    "value": pl.Float64(),
    "noise": pl.Float64(),
    "error": pl.Float64(),
}


def read_nodes(settings: Settings, nodes: Collection[str], days: Collection[date]) -> pl.DataFrame:
    """Return what is published of these nodes on these days; days without a release have no rows.

    Args:
        settings: Of the stream.
        nodes: Their names.
        days: Local days.

    Returns:
        `COLUMNS`, sorted by node and time. at: the step's start in seconds since 1970; noise: the standard
        deviation of what the noise did; error: of all that is wrong; both null where the file does not say.

    Raises:
        PublicationError: There is no catalogue, or a file is not the one that it lists.
    """
    place = open_storage(settings.published_folder)
    catalogue = read_catalogue(place)
    value = catalogue.value_column
    errors = error_columns(value)
    frames = [pl.DataFrame(schema=COLUMNS)]
    for entry in catalogue.entries:
        if entry.period in days and not entry.withdrawn:
            rows = read_columns(place, entry, {"timestamp", "node", value, *errors}, {"timestamp", *errors})
            frames.append(
                rows.filter(pl.col("node").is_in(list(nodes)) & pl.col("timestamp").is_not_null()).select(
                    pl.col("timestamp").dt.epoch("s").alias("at"),
                    "node",
                    pl.col(value).alias("value"),
                    pl.col(errors[0]).alias("noise"),
                    pl.col(errors[1]).alias("error"),
                )
            )
    return pl.concat(frames).sort("node", "at")
