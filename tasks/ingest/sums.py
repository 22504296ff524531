"""Chunks of days become private periods, with the metrics that the raw contract judges."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from data_contracts.metrics import LARGEST_SUM
from optstream.storage.store import name_below
from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest.arrivals import Dump, pattern_of
from tasks.ingest.clock import shifted_slots
from tasks.ingest.formats import UNREADABLE
from tasks.ingest.inspect import SourceFile, inspect
from tasks.ingest.rows import (
    KEY,
    ROW,
    Places,
    cells_of,
    customer_of,
    leaf_of,
    metrics_of,
    places_of,
    plans_of,
    rows_in,
    rows_of,
    step_of,
    with_days,
)
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


# Rows of one customer that are more than one at a step: equal names have equal hashes, so a pass over
# hashes misses nobody, and suspects are read again and judged by name.

STEP_BITS = 16
"""The low bits of a key hold the step (a day has 1,500 at most), the others the start of the hash."""
HASH = (2**64 - 1) << STEP_BITS & (2**64 - 1)
ROWS_AT_ONCE = 2**22
"""How many rows of suspects are judged together; all rows of one customer always are."""
AT_ONCE = 2
SUPERSEDED = "superseded"
"""Why a row with a lower revision does not count, which is nobody's fault."""
DROPPED = {**KEY, "rule": pl.String, "rows": pl.Int64, "units": pl.Int64}
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Seen:
    """Who may be seen twice: rising hashes, with rows of each, and the files with nameless rows."""

    suspects: Hashes
    rows: NDArray[np.int64]
    nameless: list[SourceFile]


def seen_of(files: Sequence[SourceFile]) -> Seen:
    """Read the customers of one day once, leaf by leaf, so that memory holds two leaves' rows at most."""
    own: dict[int, list[SourceFile]] = {}
    for file in files:
        own.setdefault(file.leaf, []).append(file)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(_leaf, [own[leaf] for leaf in sorted(own)]))
    hashes, rows, twice = (np.concatenate([one[part] for one in found]) for part in range(3))
    order = np.argsort(hashes, kind="stable")
    hashes, rows = hashes[order], rows[order]
    elsewhere = hashes[1:][hashes[1:] == hashes[:-1]]
    suspects = np.union1d(elsewhere, twice)
    total = np.concatenate([[0], np.cumsum(rows)])
    first, last = (np.searchsorted(hashes, suspects, side=side) for side in ("left", "right"))
    return Seen(suspects, total[last] - total[first], [file for one in found for file in one[3]])


def _leaf(files: Sequence[SourceFile]) -> tuple[Hashes, NDArray[np.int64], Hashes, Any]:
    """The customers of one leaf: hashes, rows of each, who has two rows at a step, files without a name."""
    keys = pl.concat(map(_keys, files)).collect(engine="streaming").to_series()
    nameless = list(files) if keys.null_count() else []
    own = keys.drop_nulls().to_numpy(writable=True)
    del keys
    own.sort()
    change = own[1:] ^ own[:-1]
    twice = np.unique(own[1:][change == 0] & np.uint64(HASH))
    starts = np.flatnonzero(np.concatenate([[len(own) > 0], change >> np.uint64(STEP_BITS) != 0]))
    rows = np.diff(starts, append=len(own))
    return own[starts] & np.uint64(HASH), rows, twice, nameless


def _hash(customer: pl.Expr) -> pl.Expr:
    return customer.hash() & pl.lit(HASH, pl.UInt64)


def _keys(file: SourceFile) -> pl.LazyFrame:
    """For each row the hash of its customer and its step in one integer; null if it has not both."""
    step, customer = step_of(file), customer_of(file)
    key = _hash(customer) | step.cast(pl.UInt64, strict=False)
    return rows_in(file).select(key=pl.when((step >= 0) & customer.is_not_null()).then(key))


def dropped_of(files: Sequence[SourceFile], seen: Seen, settings: Settings) -> pl.DataFrame:
    """Return the rows that the public rule drops, given the rows of one step, never a reading:
    what a customer has at a step changes that step alone (Lemma 2b, docs/privacy.md).
    """
    found = [pl.DataFrame(schema=DROPPED)]
    part = np.cumsum(seen.rows) // ROWS_AT_ONCE
    for number in np.unique(part):
        suspects = pl.LazyFrame({"hash": seen.suspects[part == number]})
        found.append(_judged(pl.concat([_rows_of_suspects(file, suspects, settings) for file in files])))
    return pl.concat(found).group_by(*KEY, "rule").agg(pl.col("rows", "units").sum())


def nobody_of(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    """The rows without a customer, which do not count: a row for each cell that has any, as `dropped_of`."""
    found = [pl.DataFrame(schema=DROPPED)]
    for file in files:
        rows = rows_of(file, settings, rows_in(file)).filter(pl.col("customer").is_null())
        counted = rows.group_by(*KEY).agg(
            rule=pl.lit("no_customer"), rows=pl.len().cast(pl.Int64), units=pl.col("units").sum()
        )
        found.append(counted.collect(engine="streaming"))
    return pl.concat(found)


def customers_of_leaves(files: Sequence[SourceFile], n_leaves: int) -> NDArray[np.int64]:
    """Return how many customers of one day each leaf has, (n_leaves,).

    A customer counts once, in the first of the leaves in which the day has a row of theirs: a function of
    their own rows alone, also where two have one hash (Lemma 24, docs/privacy.md).
    """
    first = pl.col("leaf").min()
    found = [pl.DataFrame(schema={"key": pl.UInt64, "leaf": pl.UInt32})]
    for some in plans_of(files):
        rows = [
            rows_in(file)
            .select(key=customer_of(file), leaf=leaf_of(file), step=step_of(file))
            .filter(pl.col("step") >= 0, pl.col("key").is_not_null())
            .select(pl.col("key").hash(), "leaf")
            for file in some
        ]
        found.append(pl.concat(rows).group_by("key").agg(first).collect(engine="streaming"))
    leaves = pl.concat(found).group_by("key").agg(first)["leaf"].to_numpy()
    return np.bincount(leaves, minlength=n_leaves).astype(np.int64)


def _rows_of_suspects(file: SourceFile, suspects: pl.LazyFrame, settings: Settings) -> pl.DataFrame:
    """Their rows of one file, with their amounts: nobody else's reading is counted again."""
    numbered = rows_in(file).with_row_index(ROW)
    own = numbered.join(suspects, left_on=_hash(customer_of(file)), right_on="hash", how="semi")
    rows = rows_of(file, settings, own, numbered=True).filter(pl.col("step") >= 0)
    return rows.collect(engine="streaming")


def _judged(rows: pl.DataFrame) -> pl.DataFrame:
    order = ["customer", "leaf", "number", "revision", "file", "row"]
    rows = rows.filter(pl.col("customer").is_not_null())
    rows = rows.sort(order, descending=[one in ("number", "revision") for one in order])
    leaf = pl.col("leaf")
    elsewhere = (leaf.min() != leaf.max()).over("customer", "step")
    again = pl.struct("customer", "step").is_first_distinct().not_()
    revision = pl.struct("number", "revision")
    is_old = revision != revision.first().over("customer", "step")
    rule = (
        pl.when(elsewhere)
        .then(pl.lit("two_leaves"))
        .when(again & is_old)
        .then(pl.lit(SUPERSEDED))
        .when(again)
        .then(pl.lit("duplicates"))
    )
    dropped = rows.with_columns(rule=rule).filter(pl.col("rule").is_not_null())
    return dropped.group_by(*KEY, "rule").agg(pl.len().cast(pl.Int64).alias("rows"), pl.col("units").sum())
