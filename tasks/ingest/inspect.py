"""What a file says before a row of it is read: a Parquet file's footer, a text's header."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from data_contracts.metrics import LIMITS
from optstream.storage.parquet import claims_of
from optstream.storage.store import Location
from optstream.stream import day_of
from tasks.config import Input, Settings
from tasks.config.fields import SINCE_EPOCH, offset_minutes
from tasks.ingest.clamping import countable
from tasks.ingest.clock import EPOCH, hides_ends, shifted_slots, start_of, turn_of, unsure_ends
from tasks.ingest.formats import UNREADABLE, opened, pages_are_whole, scan_file
from tasks.ingest.text import DAY, MICROSECOND, TextForm, form_of, is_zoned, lines_of

PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
TEXTS_OF_TIME = (pl.String, pl.Date, pl.Datetime, pl.Time)
"""Types of columns of date and time that are apart."""
MOST_SHOWN = 10
"""Columns of a file that messages name."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a chunk: where it stands, and the rule that it broke, if any.

    day, leaf: indices; of a file with the rows of every leaf the first leaf's. is_partial: whether rows of
    other days are usual. text: the form of a text file. stamp: the type of the stamps, text where they are to
    be parsed. date: microseconds from the epoch to the day, where its steps are numbered. start, length: of
    the day's steps, in the stamps' own unit; shift is added to a stamp, of shifts one each to texts with an
    offset (True) and without. doubled, skipped: slots that the wall clock shows twice, or not. turn: of sums
    by their ends, the stamp of one that ends as the clock is set, and the stamp at which it belongs. value,
    customer: the columns' types. rows: as the footer claims, or a text's lines. floats, raw: columns that
    name customers or leaves, or hold numbers of stamps, by floats, or by bytes. found: the columns of a file
    without the right ones, where they are few: many may be a customer's each, and their names are nobody's to
    show.
    """

    number: int
    day: int
    leaf: int
    path: Location
    name: str
    n_steps: int
    layout: Input
    leaves: tuple[str, ...] = ()
    is_partial: bool = False
    broken: str | None = None
    text: TextForm | None = None
    stamp: Any = None
    date: int = 0
    rows_a_step: int = 1
    start: int = 0
    length: int = 1
    shift: int = 0
    shifts: tuple[tuple[bool, int], ...] = ()
    value: Any = None
    customer: Any = None
    rows: int = 0
    floats: frozenset[str] = frozenset()
    raw: frozenset[str] = frozenset()
    fits_clock: bool = True
    doubled: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()
    turn: tuple[int, ...] = ()
    found: tuple[str, ...] = ()

    @property
    def unreadable(self) -> str:
        """The rule that it breaks if it cannot be read."""
        return "unreadable" if self.path.name.endswith(".parquet") else "unreadable_text"


def inspect(file: SourceFile, day: date, settings: Settings, sha256: str) -> SourceFile:
    """Read the footer or header and fill in the types, or the rule that the file breaks. sha256: or ""."""
    layout, metered = file.layout, settings.metered
    try:
        if sha256:
            with opened(file.path) as found:
                if hashlib.file_digest(found, "sha256").hexdigest() != sha256:
                    return replace(file, broken="other_hash")
        if not file.path.name.endswith(".parquet") and not _is_parquet(file.path):
            file, schema = _text_schema(file)
        else:
            file, schema = _parquet_schema(file)
        if file.broken:
            return file
        named = tuple(schema) if len(schema) <= MOST_SHOWN else ()
        of_leaf = [one for one in (layout.region, layout.margin) if one is not None]
        if {*layout.columns} - {*schema, layout.customer}:
            return replace(file, broken="columns", found=named)
        if (layout.customer in schema) != metered:
            return replace(file, broken="other_schema", found=named)
        # where every row lacks a value, a writer gives the column no type: of metered input no row decides
        if metered or layout.missing_rows == "zero":
            zone = "UTC" if settings.calendar.day == "elapsed" else None
            stamp = pl.String() if layout.stamp_columns[1:] else pl.Datetime("us", zone)
            types: dict[str, Any] = dict.fromkeys(layout.columns, pl.String())
            types |= {layout.value: pl.Float64(), **dict.fromkeys(layout.stamp_columns, stamp)}
            schema |= {name: kind for name, kind in types.items() if schema[name] == pl.Null}
        value = schema[layout.value]
        customer = schema[layout.customer] if metered else None
        if not (countable(value) or file.text):
            return replace(file, broken="value_type")
        if customer is not None and not _names(customer, metered):
            return replace(file, broken="customer_type")
        if not all(_names(schema[one], metered) for one in of_leaf):
            return replace(file, broken="region_type")
        floats = frozenset(one for one in layout.columns if schema[one].is_float()) - {layout.value}
        raw = frozenset(one for one in layout.columns if schema[one] == pl.Binary)
        file = replace(file, value=value, customer=customer, floats=floats, raw=raw)
        if not (file.text or pages_are_whole(file.path, layout.columns)):
            return replace(file, broken="damaged_page")
        return _with_clock(file, schema, day, settings)
    except UNREADABLE:
        return replace(file, broken=file.unreadable)


def _is_parquet(file: Location) -> bool:
    with opened(file) as found:
        return bool(found.read(4) == b"PAR1")


def _parquet_schema(file: SourceFile) -> tuple[SourceFile, dict[str, Any]]:
    with opened(file.path) as found:
        claims = claims_of(found)
    if claims is None or not claims.within(LIMITS):
        return replace(file, broken="unreadable" if claims is None else "too_much"), {}
    return replace(file, rows=claims.rows), dict(scan_file(file.path).collect_schema())


def _text_schema(file: SourceFile) -> tuple[SourceFile, dict[str, Any]]:
    form = form_of(file.path, tuple(file.layout.columns))
    if form is None:  # and no line of it is a header, which messages may show
        return file, {}
    rows = lines_of(file.path, form)
    broken = "too_much" if rows > LIMITS.rows else None
    return replace(file, text=form, rows=rows, broken=broken), dict.fromkeys(form.names, pl.String())


def _names(dtype: pl.DataType, metered: bool) -> bool:
    """Whether a column of this type can name somebody or something."""
    known = dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary)
    return known or (metered and dtype.is_float())


def _with_clock(file: SourceFile, schema: Mapping[str, Any], day: date, settings: Settings) -> SourceFile:
    """Fill in what stamps are, and where the day's steps begin on their clock."""
    calendar, layout = settings.calendar, file.layout
    by_zone, (first, *rest) = calendar.day == "elapsed", layout.stamp_columns
    stamp, unit = schema[first], PER_SECOND["us"]
    by_epoch, rows = layout.stamps_format == SINCE_EPOCH, layout.rows_a_step(settings.stream.step)
    if file.text or rest or by_epoch:
        if not all(
            schema[one] in TEXTS_OF_TIME or (layout.stamps_format and schema[one].is_numeric())
            for one in layout.stamp_columns
            if one != layout.period_number
        ):
            return replace(file, broken="timestamp_type")
        stamp = pl.String()
        zoned = by_epoch or bool(
            file.text and is_zoned(file.path, file.text, layout.stamp_columns, layout.stamps_format)
        )
    elif stamp == pl.Date and rows == 1 and calendar.step_minutes == DAY // 60:  # else all are of midnight
        stamp, zoned = pl.Datetime("us"), False
    elif isinstance(stamp, pl.Datetime):
        zoned, unit = stamp.time_zone is not None, PER_SECOND[stamp.time_unit]
    else:
        return replace(file, broken="timestamp_type")
    length = calendar.step_minutes * 60 * unit
    if layout.period_number is not None:  # each local day counts its own steps
        before = calendar.step_of_day(day) * length
        counted = replace(file, stamp=pl.String(), length=length, shift=-before, rows_a_step=rows)
        return replace(counted, date=(day_of(day) - EPOCH.date()).days * DAY * MICROSECOND)

    def clock(zoned: bool) -> tuple[bool, int, int | None]:
        shift, fixed = -(length // rows) if layout.stamps == "end" else 0, layout.stamps_zone
        if fixed is not None and not zoned:
            shift, zoned = shift - offset_minutes(fixed) * 60 * unit, True
        return zoned, shift, start_of(calendar, day, zoned=zoned)

    each = bool(file.text and settings.metered)  # each stamp by itself: no row decides what another's is
    # nor whether a day is refused: only the configuration says that all stamps are instants
    unsure = each and layout.stamps_zone is None and by_zone != by_epoch
    fits_clock = clock(zoned)[0] == by_zone and not unsure
    ends = unsure_ends(settings, day)
    zoned = by_zone if each else zoned
    _, shift, start = clock(zoned)
    _, other, since = clock(not zoned)
    shifts = [(zoned, shift)]
    if each and start is not None and since is not None:
        shifts.append((not zoned, other + (start - since) * unit))
    broken = "clock" if start is None or (unsure and since is None) else None
    if ends and hides_ends(calendar, day):
        broken = broken or "clock_ends"
    is_read_whole = layout.stamps == "end" and not (by_zone or settings.metered or ends)
    turn = turn_of(calendar, day, is_partial=file.is_partial) if is_read_whole else ()
    return replace(
        file,
        stamp=stamp,
        shift=shift,
        shifts=tuple(shifts),
        rows_a_step=rows,
        # do they name each step once where the clock changes?
        fits_clock=fits_clock,
        doubled=() if by_zone else shifted_slots(calendar, day)[1],
        skipped=() if by_zone else shifted_slots(calendar, day)[0],
        turn=tuple((start or 0) * unit + slot * length - length // rows for slot in turn),
        broken=broken,
        start=(start or 0) * unit,
        length=length,
        rows=0 if start is None else file.rows,
    )
