"""Dumps of one day: files of two regions, sound, odd or hostile."""

import io
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl
from hypothesis import strategies as st

from optstream.stream import Calendar
from tests.properties.damage import CANARY, damaged, names
from tests.properties.footers import lying

FIRST_DAY = date(2025, 3, 28)
"""Two days before the clock goes forward."""
CALENDAR = Calendar(30, "Europe/Paris")
ODD_VALUES = (0.0, -1.0, 1e300, float("nan"), float("inf"), float("-inf"), None, CANARY, 2.0**53, -1e-320)
TYPES = (
    *(pl.Int8, pl.UInt64, pl.Int128, pl.UInt128, pl.Float32, pl.Decimal(38, 0), pl.Decimal(38, 37)),
    *(pl.String, pl.Boolean, pl.Binary, pl.Date, pl.Time, pl.Duration("ns"), pl.Categorical, pl.Null),
    *(pl.Datetime("ms"), pl.Datetime("ns", "Asia/Tokyo"), pl.Datetime("us"), pl.List(pl.Float64)),
)
FILES = ("part-1.parquet", "é.parquet", "*.parquet", "?.parquet", "part[0].parquet", ".parquet")
TARGETS = ("/dev/zero", "../..", "loop.parquet", "part-9.parquet", "/etc/passwd")
CODECS = ("zstd", "snappy", "gzip", "uncompressed", "lz4", "brotli")


@dataclass(frozen=True)
class Delivered:
    """What lies in one region's folder. folder: its name; files: name and content; a link if text."""

    folder: str
    files: tuple[tuple[str, bytes | str], ...]
    marker: bool = True


def cases(n_days: int, *, metered: bool) -> st.SearchStrategy[list[list[Delivered]]]:
    """For each of these days what the regions delivered: read in one chunk, each stands among others."""
    days = [_day(FIRST_DAY + timedelta(days=number), metered) for number in range(n_days)]
    return st.tuples(*days).map(list)


def parquet_of(frame: pl.DataFrame, **options: object) -> bytes:
    sink = io.BytesIO()
    frame.write_parquet(sink, **options)
    return sink.getvalue()


def sound(day: date, *, metered: bool) -> bytes:
    """The file that a region should deliver."""
    return parquet_of(_rows(day, metered))


def _rows(day: date, metered: bool) -> pl.DataFrame:
    stamps = pl.Series("timestamp", CALENDAR.utc_times(day), dtype=pl.Datetime("us", "UTC"))
    rows = pl.DataFrame({"timestamp": stamps}).with_columns(load=pl.lit(CANARY))
    return rows.with_columns(customer_id=pl.lit("anna 71234")) if metered else rows


@st.composite
def _day(draw: st.DrawFn, day: date, metered: bool) -> list[Delivered]:
    whole = sound(day, metered=metered)

    def rarely(once_in: int = 10) -> bool:
        return draw(st.integers(1, once_in)) == 1

    delivered = [Delivered("region=84", (("part-0.parquet", whole),))]
    if rarely():
        return [*delivered, Delivered("region=11", (("part-0.parquet", whole),))]
    odd = _written_odd(day, metered)
    content = st.one_of(odd, damaged(odd), lying(st.just(whole)), lying(odd), damaged(st.just(whole)))
    odd_name = names().map(lambda name: f"{name}.parquet")
    file_name = st.one_of(st.just("part-0.parquet"), st.sampled_from(FILES), odd_name)
    files = draw(st.lists(st.tuples(file_name, content), max_size=3))
    files = files or [("part-0.parquet", draw(content))]
    if rarely():
        files.append(("loop.parquet", draw(st.sampled_from(TARGETS))))
    delivered.append(Delivered("region=11", tuple(files), marker=not rarely(20)))
    if rarely():
        delivered.append(Delivered(f"region={draw(names())}", (("part-0.parquet", whole),)))
    return delivered


@st.composite
def _written_odd(draw: st.DrawFn, day: date, metered: bool) -> bytes:
    rows = _rows(day, metered)
    for _ in range(draw(st.integers(0, 2))):
        rows = draw(st.sampled_from(CHANGES))(rows, draw)
    group = draw(st.sampled_from([None, 1, 7]))
    return parquet_of(rows, compression=draw(st.sampled_from(CODECS)), row_group_size=group)


def _value(rows: pl.DataFrame, draw: st.DrawFn) -> pl.DataFrame:
    at, value = draw(st.integers(0, 60)), draw(st.sampled_from(ODD_VALUES))
    changed = pl.when(pl.int_range(pl.len()) == at).then(pl.lit(value, pl.Float64)).otherwise(pl.col("load"))
    return rows.with_columns(load=changed) if rows.schema.get("load") == pl.Float64 else rows


def _type(rows: pl.DataFrame, draw: st.DrawFn) -> pl.DataFrame:
    column, kind = draw(st.sampled_from(rows.columns or ["load"])), draw(st.sampled_from(TYPES))
    if column not in rows.columns:
        return rows
    try:
        return rows.with_columns(pl.col(column).cast(kind, strict=False))
    except (pl.exceptions.PolarsError, OverflowError):
        return rows.with_columns(pl.lit(None, kind).alias(column))


def _nested(rows: pl.DataFrame, draw: st.DrawFn) -> pl.DataFrame:
    column = draw(st.sampled_from(rows.columns or ["load"]))
    nested = pl.struct(pl.all()) if draw(st.booleans()) else pl.concat_list(pl.lit(1), pl.lit(2))
    return rows.with_columns(nested.alias(column)) if rows.columns else rows


def _columns(rows: pl.DataFrame, draw: st.DrawFn) -> pl.DataFrame:
    column = draw(st.sampled_from(["timestamp", "load", "customer_id", "row of the file", "file", "step"]))
    deed = draw(st.sampled_from(["drop", "null", "rename", "many"]))
    if deed == "many":
        return rows.with_columns(pl.lit(0).alias(f"c{number}") for number in range(300))
    if deed == "rename" and column in rows.columns:
        name = draw(names()).encode("utf-8", "replace").decode()
        return rows if name in rows.columns else rows.rename({column: name})
    without = rows.drop(column, strict=False)
    return without if deed == "drop" else without.with_columns(pl.lit(None).alias(column))


def _height(rows: pl.DataFrame, draw: st.DrawFn) -> pl.DataFrame:
    match draw(st.sampled_from(["head", "empty", "twice", "reverse", "shift", "other customer"])):
        case "head":
            return rows.head(draw(st.integers(1, 47)))
        case "empty":
            return rows.clear()
        case "twice":
            return pl.concat([rows, rows])
        case "reverse":
            return rows.reverse()
        case "shift" if isinstance(rows.schema.get("timestamp"), pl.Datetime):
            return rows.with_columns(pl.col("timestamp") + timedelta(minutes=draw(st.integers(-90, 90))))
        case "other customer" if "customer_id" in rows.columns:
            name = draw(names()).encode("utf-8", "replace").decode()
            return rows.with_columns(customer_id=pl.lit(name))
    return rows


CHANGES = (_value, _value, _type, _type, _nested, _columns, _height)
