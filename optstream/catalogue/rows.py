"""The rows of a release: their columns, their order and their hash."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from optstream.errors import ParameterError, PublicationError
from optstream.privacy.spends import CUSTOMERS


def error_columns(value_column: str) -> tuple[str, str]:
    """Return the names of the columns of the noise's and of the whole error's standard errors."""
    return f"{value_column}_noise_se", f"{value_column}_se"


def band_columns(value_column: str) -> tuple[str, str]:
    """Return the names of the columns of the lowest and of the highest count of a band."""
    return f"{value_column}_low", f"{value_column}_high"


def estimate_column(value_column: str) -> str:
    """Return the name of the column of estimates whose sums over time are unbiased."""
    return f"{value_column}_estimate"


CUSTOMERS_ERROR = f"{CUSTOMERS}_se"
"""With `CUSTOMERS` the columns of how many customers stand behind a node on a day."""
KINDS = {
    pl.Date: "date",
    pl.Datetime: "datetime",
    pl.Int32: "integer",
    pl.Float32: "number",
    pl.Float64: "number",
}


@dataclass(frozen=True)
class Column:
    """A column of a published table; all descriptions are made from it."""

    name: str
    type: pl.DataType
    meaning: str
    may_be_null: bool = False

    @property
    def kind(self) -> str:
        return KINDS.get(type(self.type), "string")


_SLOT = "Start of the step in UTC; empty for a slot the day does not have."
_BEFORE = (
    Column("date", pl.Date(), "The local day."),
    Column("step", pl.Int32(), "Number of the time step within the day, from 0."),
    Column("timestamp", pl.Datetime("us", "UTC"), _SLOT, True),
    Column("node", pl.String(), "The node of the hierarchy."),
    Column("parent", pl.String(), "The node above it; empty at the root.", True),
    Column("level", pl.Int32(), "Depth of the node, 0 at the root."),
)
_AFTER = (
    Column("revision", pl.Int32(), "From 0; a higher one is a new measurement of the day."),
    Column("vintage", pl.Int32(), "From 0; a higher one is a new estimate from the same measurements."),
)
_TYPES = {one.name: one.type for one in (*_BEFORE, *_AFTER)}
MAY_BE_NULL = frozenset(one.name for one in _BEFORE if one.may_be_null)
HIERARCHY_COLUMNS = (
    Column("node", pl.String(), "The code, as in the rows of these days."),
    Column("parent", pl.String(), "The code of the unit above it; empty at the root.", True),
    Column("name", pl.String(), "What people call it.", True),
    Column("valid_from", pl.Date(), "The first local day; empty for units of the oldest hierarchy.", True),
    Column("valid_until", pl.Date(), "The last local day; empty where no change ends it.", True),
    Column("became", pl.String(), "The codes that it has from then on, separated by semicolons.", True),
)
"""Of `hierarchy.parquet`."""
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
KEY = ("date", "step", "node")

ESTIMATE, REPLICATE = "estimate", "replicate_"
"""Columns of a file of replicates: the value before bound and rounding; the start of a replicate's name."""


@cache
def columns_of_replicates(n: int) -> tuple[Column, ...]:
    """Return the columns of a file of n replicates."""
    estimate = Column(ESTIMATE, pl.Float64(), "The value before the lower bound and before rounding.")
    each = "The estimate with another draw of its error."
    replicates = (Column(f"{REPLICATE}{number}", pl.Float32(), each) for number in range(1, n + 1))
    labels = (one for one in _BEFORE if one.name in ("step", "node"))
    return (*labels, estimate, *replicates)


def columns_of(
    value: str,
    with_errors: bool = True,
    with_bands: bool = False,
    with_estimate: bool = False,
    with_customers: bool = False,
) -> tuple[Column, ...]:
    """Return the columns of the published rows, in order; bands and estimates are of counts alone."""
    (noise, model), (low, high), kind = error_columns(value), band_columns(value), pl.Float64()
    errors = (
        Column(noise, kind, "Standard deviation of the noise in the value; no error bar.", True),
        Column(model, kind, "Standard error of the value by the mechanism's own model.", True),
    )
    bands = (
        Column(low, kind, "Lowest count of a band that holds the true count in 95 % of steps.", True),
        Column(high, kind, "Highest count of that band.", True),
    )
    behind = "Customers with rows on the day, with noise: a whole number, unbiased, which may be below 0."
    customers = (
        Column(CUSTOMERS, kind, behind, True),
        Column(CUSTOMERS_ERROR, kind, "Standard error of the number of customers.", True),
    )
    unbiased = "Estimate to add up over time and nodes, which may be below 0: its sums are unbiased."
    return (
        *_BEFORE,
        Column(value, kind, "The published value, with differentially private noise."),
        *(errors if with_errors else ()),
        *(bands if with_bands else ()),
        *([Column(estimate_column(value), kind, unbiased)] if with_estimate else ()),
        *(customers if with_customers else ()),
        *_AFTER,
    )


def check_value_column(name: str) -> str:
    """Return the name. Raises ParameterError unless it can be that of the published values."""
    if not _COLUMN.fullmatch(name) or name.lower() in _TYPES:
        raise ParameterError(
            "value_column must be letters, digits and underscores, at most 64, and none of the columns "
            f"{', '.join(_TYPES)}"
        )
    return name


def kind_of(name: str) -> pl.DataType:
    """Return the type of a published column; of the value, its standard errors and its band float64."""
    return _TYPES.get(name, pl.Float64())


def schema(value_column: str, *has: bool) -> dict[str, pl.DataType]:
    """Return the types of `columns_of`."""
    return {one.name: one.type for one in columns_of(value_column, *has)}


def joined_rows(frames: Iterable[pl.DataFrame], value_column: str) -> pl.DataFrame:
    """Return the rows of several releases under one another, null where a release lacks a column."""
    parts = list(frames)
    some = band_columns(value_column)[0], estimate_column(value_column), CUSTOMERS
    has = (any(name in part.columns for part in parts) for name in some)
    return pl.concat([pl.DataFrame(schema=schema(value_column, True, *has)), *parts], how="diagonal")


def ordered_rows(
    rows: pl.DataFrame, value_column: str, stated: Mapping[str, object], *has: bool
) -> pl.DataFrame:
    """Return the rows in the published types, sorted by (date, step, node as UTF-8), or raise."""
    columns = columns_of(value_column, *has)
    wanted = {one.name: one.type for one in columns}
    may_be_null = {one.name for one in columns if one.may_be_null}
    if set(rows.columns) != set(wanted):
        raise PublicationError(
            f"the rows of a release have the columns {', '.join(wanted)}; got {', '.join(rows.columns)}"
        )
    typed = rows.select(wanted.keys())
    for name, kind in wanted.items():
        # whole numbers of any width, and a root's parent of no type
        got = typed.schema[name]
        is_null = got == pl.Null() and kind == pl.String()
        if not (got.is_integer() if kind.is_integer() else got == kind or is_null):
            raise PublicationError(f"column {name} of a release is {kind}; got {got}")
    try:
        typed = typed.cast(pl.Schema(wanted))
    except pl.exceptions.InvalidOperationError as error:
        raise PublicationError("a whole-number column of a release does not fit into 32 bits") from error
    holes = [name for name in wanted if name not in may_be_null and typed[name].null_count()]
    if holes:
        raise PublicationError(f"column {holes[0]} of a release holds a null")
    for name, value in stated.items():
        if not (typed[name] == value).all():
            raise PublicationError(f"column {name} of the rows differs from the release's statement")
    if not is_ordered(typed):
        typed = typed.sort("step", "node")
        if not is_ordered(typed):
            raise PublicationError("a release holds every node at every step exactly once, and at least one")
    return typed


def holds_each_once(rows: pl.DataFrame) -> bool:
    """Return whether rows hold every node at every step exactly once, and at least one."""
    if is_ordered(rows):
        return True
    n_cells = rows["step"].n_unique() * rows["node"].n_unique()
    return rows.height == n_cells > 0 and not rows.select("step", "node").is_duplicated().any()


def is_ordered(rows: pl.DataFrame) -> bool:
    """Return whether rows are whole and sorted by (step, node): the same rising nodes at each rising step."""
    if not rows.height:
        return False
    steps, nodes = rows["step"].to_numpy(), rows["node"]
    n_nodes = int(np.count_nonzero(steps == steps[0]))
    if rows.height % n_nodes:
        return False
    by_step, first = steps.reshape(-1, n_nodes), nodes[:n_nodes]
    return bool(
        (by_step == by_step[:, :1]).all()
        and (by_step[1:, 0] > by_step[:-1, 0]).all()
        and (first[1:] > first[:-1]).all()
        and (nodes[n_nodes:] == nodes[:-n_nodes]).all()
    )


def hash_rows(rows: pl.DataFrame) -> str:
    """Return SHA-256 of the content: per column a JSON line [name, type, n], a byte a row (1 if filled), then
    little-endian values (days int32, microseconds int64; text lengths int64, then UTF-8; nulls zero or "").
    """
    digest = hashlib.sha256()
    for column in rows.iter_columns():
        digest.update(json.dumps([column.name, str(column.dtype), len(column)]).encode() + b"\n")
        plain = column.to_physical()
        if column.null_count():
            digest.update(column.is_not_null().cast(pl.UInt8).to_numpy().tobytes())
            plain = plain.fill_null("" if column.dtype == pl.String else 0)
        else:
            digest.update(b"\1" * len(column))
        numbers = (plain.str.len_bytes().cast(pl.Int64) if plain.dtype == pl.String else plain).to_numpy()
        digest.update(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
        if plain.dtype == pl.String:
            digest.update(plain.str.join("").item().encode())
    return digest.hexdigest()
