"""Chunks of days become private periods, with the metrics that the raw contract judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl

from data_contracts.raw import raw_rules
from optstream.stream import PrivatePeriod
from tasks.ingest.cells import can_be_dropped_from, cells_of, dropped_of, is_readable
from tasks.ingest.discover import PREFIX, Dump
from tasks.ingest.metrics import metrics_of
from tasks.ingest.places import Place, places_of
from tasks.ingest.schema import UNREADABLE, SourceFile, inspect
from tasks.settings import Settings

FILES_A_PLAN = 96
"""Files read by one lazy plan: each takes a blocking thread, and polars warns of a deadlock at 512."""


@dataclass(frozen=True)
class IngestedDay:
    """One day as read. For the trusted zone: the metrics count rows.

    period: None where the raw contract has a structural reason to refuse. metrics: a row for each region,
    in tree order, a column for each rule of the raw contract, and steps_found, steps_expected.
    places: where a rule first broke, by (region, rule).
    """

    day: date
    period: PrivatePeriod | None
    metrics: pl.DataFrame = field(repr=False)
    places: Mapping[tuple[str, str], Place] = field(repr=False)


def ingest(settings: Settings, dumps: Sequence[Dump]) -> list[IngestedDay]:
    """Read a chunk of days: lazy plans over many files, only the needed columns, streaming.

    Never raises for what a dump holds: what is wrong is in the metrics, and `validate` judges it. A file
    that cannot be read costs its own day only. Raw values stay in the returned periods.
    """
    files = _inspected(settings, dumps)
    cells, files = _read(files, settings)
    dropped, files = _dropped(files, settings, len(dumps))
    metrics = metrics_of(files, cells, dropped, dumps, settings)
    places = places_of(files, cells, dropped, settings)
    cells = _without(cells, dropped)
    structural = [rule.name for rule in raw_rules(metered=settings.metered) if not rule.alarm]
    result = []
    for number, dump in enumerate(dumps):
        own = metrics.filter(pl.col("day") == number).drop("day", "leaf")
        sound = own.select(pl.sum_horizontal(structural)).sum().item() == 0
        period = _period(cells.filter(pl.col("day") == number), dump.day, settings) if sound else None
        result.append(IngestedDay(dump.day, period, own, places.get(number, {})))
    return result


def _inspected(settings: Settings, dumps: Sequence[Dump]) -> list[SourceFile]:
    files: list[SourceFile] = []
    for number, dump in enumerate(dumps):
        n_steps = settings.calendar.n_steps(dump.day)
        for leaf, paths in enumerate(dump.files):
            folder = f"{PREFIX}{settings.tree.leaves[leaf]}/date={dump.day.isoformat()}"
            for path in paths:
                file = SourceFile(len(files), number, leaf, path, f"{folder}/{path.name}", n_steps)
                files.append(inspect(file, dump.day, settings))
    return files


def _read(files: list[SourceFile], settings: Settings) -> tuple[pl.DataFrame, list[SourceFile]]:
    """The cells of all sound files; those that break half-way are found one by one and left out."""
    sound = [file for file in files if file.broken is None]
    try:
        return _cells(sound, settings), files
    except UNREADABLE:
        pass
    broken = {file.number for file in sound if not is_readable(file, settings)}
    files = [file.failed("unreadable") if file.number in broken else file for file in files]
    return _cells([file for file in files if file.broken is None], settings), files


def _cells(files: Sequence[SourceFile], settings: Settings) -> pl.DataFrame:
    if files:
        plans = [files[start : start + FILES_A_PLAN] for start in range(0, len(files), FILES_A_PLAN)]
        return pl.concat([cells_of(plan, settings) for plan in plans])
    counts = dict.fromkeys(("rows", "units", "absent", "infinite", "out_of_bounds", "no_customer"), pl.Int64)
    indices = dict.fromkeys(("file", "day", "leaf"), pl.UInt32)
    return pl.DataFrame(schema={**indices, "step": pl.Int32, **counts})


def _dropped(
    files: list[SourceFile], settings: Settings, n_days: int
) -> tuple[pl.DataFrame, list[SourceFile]]:
    """The metered rows that do not count; day by day, for the customers of one day fit in memory.

    This pass looks at customers, which the first only counts: files that break here break their day.
    """
    empty = pl.DataFrame(schema={"file": pl.UInt32, "step": pl.Int32, "rule": pl.String, "units": pl.Int64})
    if not settings.metered:
        return empty, files
    found = [empty]
    for day in range(n_days):
        own = [file for file in files if file.day == day]
        if not own or any(file.broken is not None for file in own):
            continue
        try:
            found.append(dropped_of(own, settings))
        except UNREADABLE:
            broken = {file.number for file in own if not can_be_dropped_from(file, settings)}
            broken = broken or {file.number for file in own}
            files = [file.failed("unreadable") if file.number in broken else file for file in files]
    return pl.concat(found), files


def _without(cells: pl.DataFrame, dropped: pl.DataFrame) -> pl.DataFrame:
    less = dropped.group_by("file", "step").agg(pl.col("units").sum().alias("less"))
    joined = cells.join(less, on=["file", "step"], how="left")
    return joined.with_columns(units=pl.col("units") - pl.col("less").fill_null(0)).drop("less")


def _period(cells: pl.DataFrame, day: date, settings: Settings) -> PrivatePeriod:
    sums = cells.filter(pl.col("step") >= 0).group_by("leaf", "step").agg(pl.col("units").sum())
    units = np.zeros((len(settings.tree.leaves), settings.calendar.n_steps(day)), dtype=np.int64)
    units[sums["leaf"].to_numpy(), sums["step"].to_numpy()] = sums["units"].to_numpy()
    return PrivatePeriod(units, resolution=settings.resolution, first_step=settings.calendar.first_step(day))
