"""The file of a closed day: the rows of its hours, with the hashes that these had as files of their own."""

import hashlib
from collections.abc import Sequence
from itertools import product

import polars as pl

from optstream.catalogue.backends import Readable
from optstream.catalogue.index import Entry
from optstream.catalogue.layout import LARGEST_RELEASE
from optstream.catalogue.parquet import Footer, decode, encode
from optstream.catalogue.rows import hash_rows, schema
from optstream.errors import PublicationError
from optstream.stream.period import day_of

FORMAT = "optstream.day/1"


def encode_day(entries: Sequence[Entry], frames: Sequence[pl.DataFrame]) -> bytes:
    """Return the Parquet file of a day, sorted by (step, node); the footer names each hour with its hashes
    and its rows' number.

    entries: of its hours that are published, rising. frames: the rows of each, all of the same columns.
    """
    rows = pl.concat(frames)
    hours = [
        [entry.period.isoformat(), entry.file_hash, entry.rows_hash, frame.height]
        for entry, frame in zip(entries, frames, strict=True)
    ]
    return encode(rows, Footer(hash_rows(rows), {"format": FORMAT, "hours": hours}))


def read_day(storage: Readable, value_column: str, entries: Sequence[Entry], verify: bool) -> pl.DataFrame:
    """Return the rows of a closed day, as its hours' own files had them. What is read is not trusted.

    entries: its hours that are listed as closed in one file, rising. verify: whether to compare the hashes of
    the file, and of each hour's rows. Raises PublicationError where the file is missing, or is not the one
    that the catalogue names.
    """
    name = entries[0].shown_in
    try:
        data = storage.read(name, LARGEST_RELEASE)
    except FileNotFoundError as error:
        raise PublicationError(f"{name} is missing; restore it from a copy") from error
    if verify and hashlib.sha256(data).hexdigest() != entries[0].closed_in:
        raise PublicationError(f"{name} differs from its hash in the catalogue; restore it")
    inner, footer = decode(data)
    hours, day = footer.statement.get("hours"), day_of(entries[0].period)
    listed = [[one.period.isoformat(), one.file_hash, one.rows_hash] for one in entries]
    if (
        not isinstance(hours, list)
        or not all(isinstance(one, list) and len(one) == 4 and type(one[3]) is int for one in hours)
        or [one[:3] for one in hours] != listed
        or any(day_of(one.period) != day for one in entries)
    ):
        raise PublicationError(f"{name} has other hours than the catalogue names; restore it")
    rows = inner.select(pl.lit(day, dtype=pl.Date()).alias("date"), pl.all())
    wanted = (schema(value_column, *has) for has in product((True, False), repeat=2))
    if not any(list(one.items()) == list(rows.schema.items()) for one in wanted):
        raise PublicationError(f"{name} has other columns than a release has; restore it")
    if verify:
        _check_hours(name, rows, [one[3] for one in hours], entries)
    return rows


def _check_hours(name: str, rows: pl.DataFrame, heights: Sequence[int], entries: Sequence[Entry]) -> None:
    """Raise PublicationError unless the rows are those that the hours' own files had."""
    at = 0
    for height, entry in zip(heights, entries, strict=True):
        if hash_rows(rows.slice(at, height)) != entry.rows_hash:
            raise PublicationError(
                f"the rows of {entry.period} in {name} differ from their hash in the catalogue; restore it"
            )
        at += height
    if at != rows.height:
        raise PublicationError(f"{name} has more rows than its hours; restore it")
