"""Chunks of days become private periods, with the metrics that the raw contract judges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream.stream import PrivatePeriod
from tasks.config import Settings
from tasks.ingest.arrival.discover import Dump
from tasks.ingest.arrival.parts import parts_of, place_of
from tasks.ingest.cells import by_step_of, cells_of, nobody_of, with_days
from tasks.ingest.metrics import metrics_of
from tasks.ingest.people import DROPPED, dropped_of, seen_of
from tasks.ingest.places import Place, places_of
from tasks.ingest.row_expressions import is_readable
from tasks.ingest.schema import UNREADABLE, SourceFile, inspect
from tasks.ingest.spread import Spread


@dataclass(frozen=True)
class IngestedDay:
    """One day as read. For the trusted zone: the metrics count rows.

    Attributes:
        day: The local day.
        period: The raw sums, sealed; None where a file could not be read. Whether it may be released is for
            `validate` to say.
        metrics: The raw frame, a row for each region in tree order.
        places: What was first found where, by (region, metric) or (region, fault of a file).
    """

    day: date
    period: PrivatePeriod | None
    metrics: pl.DataFrame = field(repr=False)
    places: Mapping[tuple[str, str], Place] = field(repr=False)


Reader = Callable[[Settings, Sequence[Dump]], list[IngestedDay]]
"""What reads a chunk of days, as `ingest` does."""


@dataclass(frozen=True)
class ReadDay:
    """As `IngestedDay`, before the raw sums are sealed in a period: int64 units, (n_leaves, n_steps)."""

    day: date
    units: NDArray[np.int64] | None = field(repr=False)
    metrics: pl.DataFrame = field(repr=False)
    places: Mapping[tuple[str, str], Place] = field(repr=False)


def ingest(settings: Settings, dumps: Sequence[Dump], spread: Spread | None = None) -> list[IngestedDay]:
    """Read a chunk of days; raw values stay in the returned periods.

    Never fails for what a dump holds, as `read_days`: what is wrong is in the metrics.

    Args:
        settings: Of the stream.
        dumps: Complete ones, as `discover` finds them.
        spread: Where the sums and the customers of each leaf are read, if not here.

    Returns:
        A day for each dump, in their order.
    """
    return [sealed(read, settings) for read in read_days(settings, dumps, spread)]


def sealed(read: ReadDay, settings: Settings) -> IngestedDay:
    """The day with its raw sums in a private period."""
    first_step = settings.calendar.first_step(read.day)
    period = None
    if read.units is not None:
        period = PrivatePeriod(read.units, resolution=settings.privacy.resolution, first_step=first_step)
    return IngestedDay(read.day, period, read.metrics, read.places)


def read_days(settings: Settings, dumps: Sequence[Dump], spread: Spread | None = None) -> list[ReadDay]:
    """Read a chunk of days: lazy plans over many files, only the needed columns, streaming.

    spread: where the sums and the customers of each leaf are read, if not here.

    Never raises for what a dump holds: what is wrong is in the metrics, and `validate` judges it. A file
    that cannot be read costs its own day only.
    """
    files = inspected(settings, dumps)
    try:
        cells, dropped = _read(files, settings, spread)
    except UNREADABLE:
        broken = {file.number for file in _sound(files) if not _can_be_read(file, settings)}
        files = [file.failed("unreadable") if file.number in broken else file for file in files]
        cells, dropped = _read(files, settings)
    by_step = by_step_of(cells)
    metrics = metrics_of(files, by_step, dropped, dumps, settings)
    places = places_of(files, cells, by_step, dropped, metrics, settings)
    dropped, result = with_days(dropped, files), []
    for number, dump in enumerate(dumps):
        own = metrics.filter(pl.col("day") == number).drop("day", "leaf")
        whole = own["file_fault"].null_count() == own.height
        units = _units(by_step, dropped, number, dump.day, settings) if whole else None
        result.append(ReadDay(dump.day, units, own, places.get(number, {})))
    return result


def inspected(settings: Settings, dumps: Sequence[Dump]) -> list[SourceFile]:
    files: list[SourceFile] = []
    for number, dump in enumerate(dumps):
        n_steps, layout = settings.calendar.n_steps(dump.day), settings.input_of(dump.day)
        parts, leaves = parts_of(settings, dump.day), settings.tree_of(dump.day).leaves
        for leaf, (part, paths) in enumerate(zip(parts, dump.files, strict=True)):
            folder = place_of(part, dump.day)
            for path in paths:
                name = f"{folder}/{path.name}"
                file = SourceFile(len(files), number, leaf, path, name, n_steps, layout, leaves)
                files.append(inspect(file, dump.day, settings))
    return files


def _sound(files: Sequence[SourceFile]) -> list[SourceFile]:
    return [file for file in files if file.broken is None]


def _can_be_read(file: SourceFile, settings: Settings) -> bool:
    """Whether the passes over readings and over customers can read this file by itself."""
    if not is_readable(file, settings):
        return False
    if settings.metered:
        try:
            dropped_of([file], seen_of([file], settings), settings)
        except UNREADABLE:
            return False
    return True


def _read(
    files: Sequence[SourceFile], settings: Settings, spread: Spread | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The cells of all sound files, and what is dropped of them. Raises polars' errors."""
    cells = cells_of(_sound(files), settings, spread)
    dropped, nameless = _people(files, settings, spread)
    return pl.concat([cells, nobody_of(nameless, settings)], how="diagonal").fill_null(0), dropped


def _people(
    files: Sequence[SourceFile], settings: Settings, spread: Spread | None
) -> tuple[pl.DataFrame, list[SourceFile]]:
    """The metered rows that do not count, and the files that may have rows of nobody.

    Day by day, for the customers of one day fit in memory. Of a day that is refused for a file, nothing
    is dropped.
    """
    dropped, nameless = [pl.DataFrame(schema=DROPPED)], []
    for day in sorted({file.day for file in files}) if settings.metered else ():
        own = [file for file in files if file.day == day]
        sound = _sound(own)
        if len(sound) < len(own):
            nameless += sound
            continue
        seen = seen_of(own, settings, spread)
        nameless += seen.nameless
        dropped.append(dropped_of(own, seen, settings))
    return pl.concat(dropped), nameless


def _units(
    by_step: pl.DataFrame, dropped: pl.DataFrame, number: int, day: date, settings: Settings
) -> NDArray[np.int64]:
    """A day's units, less those of the rows that do not count."""
    units = np.zeros((len(settings.tree_of(day).leaves), settings.calendar.n_steps(day)), dtype=np.int64)
    for change, rows in ((np.add, by_step), (np.subtract, dropped)):
        own = rows.filter(pl.col("day") == number, pl.col("step") >= 0)
        change.at(units, (own["leaf"].to_numpy(), own["step"].to_numpy()), own["units"].to_numpy())
    return units
