"""Where each rule of the raw contract first broke: file and step, for messages that a person can act on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from tasks.config import Settings
from tasks.ingest.cells import with_days
from tasks.ingest.metrics import CELL_RULES, DROPPED_RULES
from tasks.ingest.schema import SourceFile


@dataclass(frozen=True)
class Place:
    """A file, by its name below the input folder, and a step of the day; None where the rule has none. found:
    the columns that the file has, where the rule is about that, and they are few.
    """

    file: str | None = None
    step: int | None = None
    found: tuple[str, ...] = ()


Places = Mapping[tuple[str, str], Place]


def places_of(
    files: Sequence[SourceFile],
    cells: pl.DataFrame,
    by_step: pl.DataFrame,
    dropped: pl.DataFrame,
    metrics: pl.DataFrame,
    settings: Settings,
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
    for rule, frame in _broken_cells(files, cells, by_step, dropped, metrics, settings):
        if frame.is_empty():
            continue
        first = frame.sort("step", "file").group_by("day", "leaf", maintain_order=True).first()
        for row in first.iter_rows(named=True):
            step = row["step"] if row["step"] >= 0 else None
            place = Place(names.get(row["file"]), step)
            found.setdefault(row["day"], {})[leaves[row["day"]][row["leaf"]], rule] = place
    return dict(found)


def _broken_cells(
    files: Sequence[SourceFile],
    cells: pl.DataFrame,
    by_step: pl.DataFrame,
    dropped: pl.DataFrame,
    metrics: pl.DataFrame,
    settings: Settings,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """For each rule about rows the cells that break it: day, leaf, file (null if none), step."""
    key = ["day", "leaf", "file", "step"]
    suspect = cells.filter(pl.any_horizontal(*CELL_RULES.values()))
    for rule, broken in CELL_RULES.items() if suspect.height else ():
        yield rule, suspect.filter(broken).select(key)
    inside = by_step.filter(pl.col("step") >= 0)
    yield "duplicates", inside.filter(pl.col("rows") > 1).select(key)
    for rule in DROPPED_RULES:
        own = with_days(dropped.filter(pl.col("rule") == rule), files).select(key)
        if not own.is_empty():
            yield rule, own
    yield "steps_found", _missing(files, metrics, inside, settings).select(key)


def _missing(
    files: Sequence[SourceFile], metrics: pl.DataFrame, inside: pl.DataFrame, settings: Settings
) -> pl.DataFrame:
    """The steps without a row, of leaves that have a file which can be read."""
    sound = [(file.day, file.leaf) for file in files if file.broken is None]
    places = pl.DataFrame(sound, schema={"day": pl.UInt32, "leaf": pl.UInt32}, orient="row")
    # one file or a few a day may have the rows of every leaf
    of = ["day", "leaf"] if settings.input.region is None else ["day"]
    lacking = metrics.filter(pl.col("steps_found") < pl.col("steps_expected")).join(places, on=of, how="semi")
    steps = lacking.with_columns(step=pl.int_ranges("steps_expected", dtype=pl.Int32)).explode("step")
    if not steps.is_empty():
        steps = steps.join(inside, on=["day", "leaf", "step"], how="anti")
    return steps.with_columns(file=pl.lit(None, pl.UInt32))
