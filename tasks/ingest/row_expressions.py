"""The rows of one file as expressions: which step they fall on, and what they count."""

from functools import lru_cache

import polars as pl

from optstream.stream.hierarchy.margin import BETWEEN
from tasks.config import Settings
from tasks.config.tables.fields import LONGEST_COLUMN
from tasks.ingest.arrival.files import scan_file
from tasks.ingest.reading import Reading, reading
from tasks.ingest.schema import UNREADABLE, SourceFile

OUTSIDE, OFF_GRID, NO_TIMESTAMP, NO_LEAF = -1, -2, -3, -4
NO_STEP = 4
"""How many negative steps there are, each a reason why a row has none."""
ROW = "row of the file".ljust(LONGEST_COLUMN + 1, ".")
"""A name that no configured column can have."""


def scan(file: SourceFile) -> pl.LazyFrame:
    """The file alone, whatever its name looks like, without statistics, which its writer claims: they may be
    broken, or hide rows from a filter.
    """
    return scan_file(file.path, use_statistics=False)


def scan_numbered(file: SourceFile, settings: Settings) -> pl.LazyFrame:
    """The needed columns of the file, and its row numbers: a dump may hold other columns of any name."""
    columns = file.layout
    needed = [columns.timestamp, columns.value, *([columns.customer] if settings.metered else [])]
    needed += [one for one in (columns.region, columns.margin) if one is not None]
    return scan(file).select(needed).with_row_index(ROW)


def leaf_of(file: SourceFile) -> pl.Expr:
    """The index of each row's leaf, uint32; the first of a row whose region is none, or null."""
    if file.layout.region is None:
        return pl.lit(file.leaf, pl.UInt32)
    return _named_leaf(file).fill_null(0)


def _named_leaf(file: SourceFile) -> pl.Expr:
    # an integer and the same digits as text name the same leaf
    columns = [one for one in (file.layout.region, file.layout.margin) if one is not None]
    name = pl.concat_str([_text(file, column) for column in columns], separator=BETWEEN)
    return name.cast(_type_of(file.leaves), strict=False).to_physical().cast(pl.UInt32)


@lru_cache(maxsize=4)
def _type_of(leaves: tuple[str, ...]) -> pl.DataTypeExpr:
    """The type with a number for each leaf, as polars takes it: of a million names that takes 0.4 s."""
    return pl.Enum(leaves).to_dtype_expr()


def _text(file: SourceFile, column: str) -> pl.Expr:
    """A name as text; of a float that is no whole number null: it names nobody."""
    name = pl.col(column)
    if column in file.floats:
        name = pl.when(name == name.floor()).then(name).cast(pl.Int64, strict=False)
    return name.cast(pl.String)


def step_of(file: SourceFile) -> pl.Expr:
    """The step of each row, int64; negative: why it has none."""
    stamp = pl.col(file.layout.timestamp).to_physical().cast(pl.Int64) - file.start
    step = stamp // file.length
    known = pl.lit(True) if file.layout.region is None else _named_leaf(file).is_not_null()
    return (
        pl.when(~known)
        .then(NO_LEAF)
        .when(stamp.is_null())
        .then(NO_TIMESTAMP)
        .when((step < 0) | (step >= file.n_steps))
        .then(OUTSIDE)
        .when(stamp != step * file.length)
        .then(OFF_GRID)
        .otherwise(step)
    )


def customer_of(file: SourceFile) -> pl.Expr:
    """The customer as text, so that numbers in one file and text in another name the same one."""
    return _text(file, file.layout.customer)


def reading_of(file: SourceFile, settings: Settings) -> Reading:
    """How the file's readings are counted: in the column's own unit, which gives the stream's integers."""
    bounds, resolution = file.layout.in_column_units(settings.privacy.bounds, settings.privacy.resolution)
    return reading(file.layout.value, file.value, bounds, resolution)


def rows_of(
    file: SourceFile, settings: Settings, source: pl.LazyFrame, *, numbered: bool = False
) -> pl.LazyFrame:
    """The needed columns of `source`, which holds rows of the file: file, leaf, step (negative: why none),
    units, customer, row."""
    wanted = {
        "file": pl.lit(file.number, pl.UInt32),
        "leaf": leaf_of(file),
        "step": step_of(file).cast(pl.Int32),
        "units": reading_of(file, settings).units,
    }
    if settings.metered:
        wanted["customer"] = customer_of(file)
    if numbered:
        wanted["row"] = pl.col(ROW)
    return source.select(**wanted)


def is_readable(file: SourceFile, settings: Settings) -> bool:
    """Whether every needed page of the file can be read, which its footer does not tell."""
    try:
        rows_of(file, settings, scan(file)).select(pl.all().count()).collect(engine="streaming")
    except UNREADABLE:
        return False
    return True
