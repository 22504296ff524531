"""Each published file in a few figures a node, kept by the file's hash: ten years are not read every night.

A published file never changes, so what was once summed up stays so. What is kept is made of published
files alone, and a page is the same, byte for byte, with it and without it; it lies in the trusted folder for
no other reason than that the published one belongs to readers.
"""

import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from optstream.catalogue import Entry, ReleaseStatement, error_columns
from optstream.catalogue.backends import Storage
from optstream.catalogue.index import DayEntry
from optstream.catalogue.layout import LARGEST_RELEASE
from optstream.catalogue.read import read_columns, read_file, read_statement
from optstream.catalogue.replicates import Replicates, read_replicates, replicate_columns
from optstream.errors import PublicationError
from tasks.trusted.files import write_private

MOST_NODES = 10_000
"""Nodes that are summed up, level by level from the root: of a million its upper levels."""

SCHEMA = pl.Schema(
    {
        "file_hash": pl.String(),
        "node": pl.String(),
        "mean": pl.Float64(),
        "noise": pl.Float64(),
        "model": pl.Float64(),
        "epsilon": pl.String(),
        "terms": pl.List(pl.String()),
        "size": pl.Int64(),
    }
)
_MEANS = {"node": pl.String, "known": pl.Float64, "whole": pl.Boolean}


@dataclass(frozen=True, eq=False)
class Summaries:
    """What is kept of each published file, so that it is read once.

    rows: one for each file and node; see `SCHEMA`. noise, model: errors of the mean, from the file of errors,
    else the means of the steps' own, which are the most that they can be; null where no file says. epsilon:
    the most that any window may lose by its release, exact, as text. terms: what it was drawn under, in words
    (`ReleaseStatement.terms_in_words`); of a day of hours each that occurs. size: of the file, in bytes.
    """

    rows: pl.DataFrame

    @classmethod
    def empty(cls) -> "Summaries":
        """Nothing known."""
        return cls(pl.DataFrame(schema=SCHEMA))

    @classmethod
    def read(cls, path: Path) -> "Summaries":
        """What was kept; nothing where there is none, or where it is not as `write` leaves it."""
        try:
            rows = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            return cls.empty()
        return cls(rows) if rows.schema == SCHEMA else cls.empty()

    def write(self, path: Path) -> None:
        """Keep them, readable by their owner alone. Raises OSError."""
        held = io.BytesIO()
        self.rows.write_parquet(held, compression="zstd")
        write_private(path, held.getvalue())

    def joined(self, others: "Summaries", entries: Sequence[Entry]) -> "Summaries":
        """These, and the others' of the files of these entries."""
        wanted = [entry.file_hash for entry in entries]
        theirs = others.rows.filter(pl.col("file_hash").is_in(wanted))
        return Summaries(pl.concat([self.rows, theirs]).sort("file_hash", "node"))

    def completed(
        self, place: Storage, entries: Sequence[Entry], value: str
    ) -> tuple["Summaries", list[Entry]]:
        """Those of these files, and of no other, and the entries whose file is not the one that is listed.
        Reads the files that are not known.
        """
        wanted = [entry.file_hash for entry in entries]
        kept = self.rows.filter(pl.col("file_hash").is_in(wanted))
        known = set(kept["file_hash"].unique())
        fresh = [entry for entry in entries if entry.file_hash not in known]
        parts, lost = [kept], []
        for entry in fresh:
            try:
                parts.append(_summed_up(place, entry, value))
            except PublicationError:
                lost.append(entry)
        return Summaries(pl.concat(parts).sort("file_hash", "node")), lost


def _summed_up(place: Storage, entry: Entry, value: str) -> pl.DataFrame:
    """The rows of a file. A day whose noise is not known at every step is not known as a whole, and so its
    model's error.
    """
    columns = error_columns(value)
    rows = _upper_levels(read_columns(place, entry, {"step", "node", "level", value, *columns}, set(columns)))
    own = entry.own if isinstance(entry, DayEntry) else (entry,)
    stated = [read_statement(place, one) for one in own]
    terms = list(dict.fromkeys(one.terms_in_words for one in stated))
    noise, model = (pl.col(name).cast(pl.Float64) for name in columns)
    known, whole = pl.col("known").first(), pl.col("whole").first()
    of_model = pl.coalesce(pl.when(whole).then(known), model.mean())
    found = rows.join(_of_means(place, entry, stated[-1]), on="node", how="left").group_by("node")
    return found.agg(
        pl.col(value).cast(pl.Float64).mean().alias("mean"),
        pl.when(noise.null_count() == 0).then(pl.coalesce(known, noise.mean())).alias("noise"),
        pl.when(model.null_count() == 0).then(of_model).alias("model"),
    ).select(
        pl.lit(entry.file_hash).alias("file_hash"),
        "node",
        "mean",
        "noise",
        "model",
        pl.lit(str(max(one.epsilon_of_grant for one in stated))).alias("epsilon"),
        pl.lit(terms, dtype=pl.List(pl.String)).alias("terms"),
        pl.lit(_size(place, entry), dtype=pl.Int64).alias("size"),
    )


def _upper_levels(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the first nodes, level by level: a function of the release alone."""
    first = rows.filter(pl.col("step") == rows["step"].min())
    if first.height <= MOST_NODES:
        return rows
    names = first.sort("level", "node").head(MOST_NODES)["node"]
    return rows.filter(pl.col("node").is_in(names.implode()))


def _size(place: Storage, entry: Entry) -> int:
    if isinstance(entry, DayEntry) and entry.closed_in is None:
        return sum(_size(place, one) for one in entry.own)
    if isinstance(entry, DayEntry):
        return len(place.read(entry.file, LARGEST_RELEASE))
    return len(read_file(place, entry))


def _of_means(place: Storage, entry: Entry, statement: ReleaseStatement) -> pl.DataFrame:
    """Return the standard error of each node's daily mean, as the file of errors has it, and whether it is of
    the whole error; no rows where there is no such file.
    """
    if isinstance(entry, DayEntry):  # no file has the covariance of its hours' errors
        return pl.DataFrame(schema=_MEANS)
    found = None
    with suppress(PublicationError):  # `check_files` names what is lost, and there is a bound without it
        found = read_replicates(place, entry, statement)
    if not isinstance(found, Replicates):
        return pl.DataFrame(schema=_MEANS)
    columns = replicate_columns(found.rows)
    means = found.rows.group_by("node").agg(pl.col(columns).cast(pl.Float64).mean())
    known = pl.concat_list(columns).list.std().alias("known")
    return means.select("node", known, pl.lit(found.of == "whole").alias("whole"))
