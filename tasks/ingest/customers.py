"""Rows of one customer that are more than one at a step: equal names have equal hashes, so a pass over
hashes misses nobody, and suspects are read again and judged by name.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config import Settings
from tasks.ingest.inspect import SourceFile
from tasks.ingest.rows import KEY, ROW, customer_of, leaf_of, plans_of, rows_in, rows_of, step_of

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
