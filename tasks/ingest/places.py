"""Where each rule of the raw contract first broke: file and step, for messages that a person can act on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tasks.config import Settings
from tasks.ingest.cells import with_days
from tasks.ingest.metrics import CELL_RULES
from tasks.ingest.schema import SourceFile


@dataclass(frozen=True)
class Place:
    """A file, by its name below the input folder, and a step of the day; None where the rule has none.

    found: the columns that the file has, where the rule is about which it has, and they are few.
    """

    file: str | None = None
    step: int | None = None
    found: tuple[str, ...] = ()


Places = Mapping[tuple[str, str], Place]


def places_of(
    files: Sequence[SourceFile], cells: pl.DataFrame, dropped: pl.DataFrame, settings: Settings
) -> dict[int, Places]:
    """For each day (index) the first place of each (region, rule) that broke."""
    found: dict[int, dict[tuple[str, str], Place]] = {}
    names = {file.number: file.name for file in files}
    leaves = {file.day: file.leaves for file in files}
    for file in files:
        if file.broken is not None:
            region = file.leaves[file.leaf]
            found.setdefault(file.day, {}).setdefault(
                (region, file.broken), Place(file.name, found=file.found)
            )
    for rule, frame in _broken_cells(files, cells, dropped, settings):
        first = frame.sort("step", "file").group_by("day", "leaf", maintain_order=True).first()
        for row in first.iter_rows(named=True):
            step = row["step"] if row["step"] >= 0 else None
            place = Place(names.get(row["file"]), step)
            found.setdefault(row["day"], {})[leaves[row["day"]][row["leaf"]], rule] = place
    return dict(found)


def _broken_cells(
    files: Sequence[SourceFile], cells: pl.DataFrame, dropped: pl.DataFrame, settings: Settings
) -> Iterator[tuple[str, pl.DataFrame]]:
    """For each rule about rows the cells that break it: day, leaf, file (null if none), step."""
    key = ["day", "leaf", "file", "step"]
    for rule, broken in CELL_RULES.items():
        yield rule, cells.filter(broken).select(key)
    inside = cells.filter(pl.col("step") >= 0)
    by_step = inside.group_by("day", "leaf", "step").agg(pl.col("file").max(), pl.col("rows").sum())
    yield "duplicates", by_step.filter(pl.col("rows") > 1).select(key)
    for rule in ("duplicates", "two_leaves"):
        own = with_days(dropped.filter(pl.col("rule") == rule), files).select(key)
        if not own.is_empty():
            yield rule, own
    yield "steps_found", _missing(files, inside, settings).select(key)


def _missing(files: Sequence[SourceFile], inside: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    sound = [file for file in files if file.broken is None]
    found = {(file.day, file.leaf, file.n_steps) for file in sound}
    if settings.input.region is not None:
        # one file or a few a day, with the rows of every leaf
        found = {(one.day, leaf, one.n_steps) for one in sound for leaf in range(len(one.leaves))}
    expected = pl.DataFrame(
        list(found), schema={"day": pl.UInt32, "leaf": pl.UInt32, "n_steps": pl.Int32}, orient="row"
    )
    own = inside.group_by("day", "leaf").agg(n_found=pl.col("step").n_unique())
    lacking = expected.join(own, on=["day", "leaf"], how="left")
    lacking = lacking.filter(pl.col("n_found").fill_null(0) < pl.col("n_steps"))
    steps = lacking.with_columns(step=pl.int_ranges("n_steps", dtype=pl.Int32)).explode("step")
    missing = steps.join(inside, on=["day", "leaf", "step"], how="anti")
    return missing.with_columns(file=pl.lit(None, pl.UInt32))
