"""Chunks of days become private periods, with the metrics that the raw contract judges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data_contracts.metrics import LARGEST_SUM
from optstream.storage.store import name_below
from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest.arrivals import Dump, pattern_of
from tasks.ingest.clock import shifted_slots
from tasks.ingest.customers import DROPPED, customers_of_leaves, dropped_of, nobody_of, seen_of
from tasks.ingest.formats import UNREADABLE
from tasks.ingest.inspect import SourceFile, inspect
from tasks.ingest.rows import Places, cells_of, metrics_of, places_of, rows_in, rows_of, with_days
from tasks.ingest.text import forget

Units = NDArray[np.int64]
"""Raw sums of a day in units of the resolution, (n_leaves, n_steps); with `published.reporting` one column
more, the customers of each leaf.
"""


def _summed(
    files: Sequence[SourceFile], dumps: Sequence[Dump], settings: Settings
) -> tuple[pl.DataFrame, list[Units], Mapping[int, Places]]:
    """The raw frame of the sound files; of each day the units that count, and where each rule first broke."""
    cells, days = cells_of(sound(files), settings), [dump.day for dump in dumps]
    # the streaming engine takes a third of the time of the other one, where groups are many
    steps = cells.lazy().group_by("day", "leaf", "step").agg(pl.col(pl.Int64).sum(), pl.col("file").max())
    by_step = with_skipped(steps.collect(engine="streaming"), days, settings)
    uncounted = [pl.DataFrame(schema=DROPPED)]
    for number in sorted({file.day for file in files}) if settings.metered else ():
        own = [file for file in files if file.day == number]
        if len(sound(own)) == len(own):  # else the day is refused
            seen = seen_of(own)
            uncounted += [dropped_of(own, seen, settings), nobody_of(seen.nameless, settings)]
    dropped = with_days(pl.concat(uncounted), files)
    metrics = metrics_of(files, by_step, dropped, days, settings)
    places = places_of(files, cells, by_step, dropped, metrics, settings)
    units = []
    for number, day in enumerate(days):
        of_day = np.zeros((len(settings.tree_of(day).leaves), settings.calendar.n_steps(day)), dtype=np.int64)
        for change, rows in ((np.add, by_step), (np.subtract, dropped)):
            inside = rows.filter(pl.col("day") == number, pl.col("step") >= 0)
            leaf, step, counted = (inside[name].to_numpy() for name in ("leaf", "step", "units"))
            change.at(of_day, (leaf, step), counted)
        if settings.published.reporting:
            own = [file for file in files if file.day == number]
            of_day = np.column_stack([of_day, customers_of_leaves(sound(own), len(of_day))])
        units.append(of_day)
    return metrics, units, places


def with_skipped(by_step: pl.DataFrame, days: Sequence[date], settings: Settings) -> pl.DataFrame:
    """Add a 0 for each slot of an aggregated leaf that the wall clock skips and that has no row, or for each
    step without one where a supplier writes no rows of 0.
    """
    calendar, is_sparse = settings.calendar, settings.input.missing_rows == "zero"
    if not is_sparse and (settings.metered or calendar.day != "fixed"):
        return by_step
    own, cell = ["day", "leaf"], ["day", "leaf", "step"]
    absent = [by_step.select(cell).clear()]
    for number, day in enumerate(days):
        steps = range(calendar.n_steps(day)) if is_sparse else shifted_slots(calendar, day)[0]
        leaves = pl.select(
            day=pl.lit(number, pl.UInt32),
            leaf=pl.int_ranges(len(settings.tree_of(day).leaves), dtype=pl.UInt32),
        )
        slots = pl.DataFrame({"step": steps}, schema={"step": pl.Int32})
        absent.append(leaves.explode("leaf").join(slots, how="cross"))
    zeros = pl.concat(absent).join(by_step, on=cell, how="anti").with_columns(rows=pl.lit(1, pl.Int64))
    if not is_sparse:  # of a leaf without a file every row is absent
        zeros = zeros.join(by_step, on=own, how="semi")
    return pl.concat([by_step, zeros], how="diagonal").with_columns(pl.col(pl.Int64).fill_null(0))


def sound(files: Sequence[SourceFile]) -> list[SourceFile]:
    return [file for file in files if file.broken is None]


def can_be_read(file: SourceFile, settings: Settings) -> bool:
    """Whether the passes over readings and over customers can read this file by itself."""
    try:
        rows_of(file, settings, rows_in(file)).select(pl.all().count()).collect(engine="streaming")
        if settings.metered:
            dropped_of([file], seen_of([file]), settings)
    except UNREADABLE:
        return False
    return True


@dataclass(frozen=True)
class IngestedDay:
    """One day as read, for the trusted zone; `period` holds the raw sums, sealed, or None."""

    day: date
    period: PrivatePeriod | None
    metrics: pl.DataFrame = field(repr=False)
    places: Places = field(repr=False)
    fits_clock: bool = True


Reader = Callable[[Settings, Sequence[Dump]], list[IngestedDay]]
"""What reads a chunk of days, as `ingest` does."""


Unsealed = tuple[IngestedDay, Units | None]
"""A day without its period, and the raw sums that become it."""


def ingest(settings: Settings, dumps: Sequence[Dump]) -> list[IngestedDay]:
    """Read a chunk of days, one a dump, as `read_days` does; raw values stay in the returned periods."""
    return [sealed(*read, settings) for read in read_days(settings, dumps)]


def sealed(day: IngestedDay, units: Units | None, settings: Settings) -> IngestedDay:
    """The day with its raw sums in a private period."""
    if units is None:
        return day
    customers = units[:, -1].copy() if settings.published.reporting else None
    period = PrivatePeriod(
        np.ascontiguousarray(units[:, : settings.calendar.n_steps(day.day)]),
        resolution=settings.privacy.resolution,
        first_step=settings.calendar.first_step(day.day),
        customers=customers,
    )
    return replace(day, period=period)


def read_days(settings: Settings, dumps: Sequence[Dump], *, footers: bool = False) -> list[Unsealed]:
    """Read a chunk of days, or footers for `fits_clock` alone; an unreadable file costs its day only."""
    try:
        return _read_days(settings, dumps, footers=footers)
    finally:
        forget()


def _read_days(settings: Settings, dumps: Sequence[Dump], *, footers: bool) -> list[Unsealed]:
    files = inspected(settings, dumps)
    fits = [all(file.fits_clock for file in files if file.day == number) for number in range(len(dumps))]
    if footers:
        regions = [pl.DataFrame({"region": settings.tree_of(dump.day).leaves}) for dump in dumps]
        found = zip(dumps, regions, fits, strict=True)
        return [(IngestedDay(dump.day, None, own, {}, fit), None) for dump, own, fit in found]
    try:
        metrics, units, places = _summed(files, dumps, settings)
    except UNREADABLE:
        broken = {file.number for file in sound(files) if not can_be_read(file, settings)}
        files = [replace(file, broken=file.unreadable) if file.number in broken else file for file in files]
        metrics, units, places = _summed(files, dumps, settings)
    result = []
    for number, dump in enumerate(dumps):
        own = metrics.filter(pl.col("day") == number).drop("day", "leaf")
        whole = own["file_fault"].null_count() == own.height
        day = IngestedDay(dump.day, None, own, places.get(number, {}), fits[number])
        result.append((day, units[number] if whole else None))
    return result


def inspected(settings: Settings, dumps: Sequence[Dump]) -> list[SourceFile]:
    largest = max(map(abs, settings.privacy.bounds)) / settings.privacy.resolution + 1
    is_partial, files = not pattern_of(settings).is_of_one_day, list[SourceFile]()
    for number, dump in enumerate(dumps):
        n_steps, layout = settings.calendar.n_steps(dump.day), settings.input_of(dump.day)
        leaves = settings.tree_of(dump.day).leaves
        for leaf, paths in enumerate(dump.files):
            for path in paths:
                name = name_below(path, settings.input_folder)
                file = SourceFile(len(files), number, leaf, path, name, n_steps, layout, leaves, is_partial)
                files.append(inspect(file, dump.day, settings, dump.hashes.get(path, "")))
        if sum(file.rows for file in files if file.day == number) * largest > LARGEST_SUM:
            files[-1] = replace(files[-1], broken="too_many_rows")
    return files
