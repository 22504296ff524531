"""`hierarchy.parquet`: which units the hierarchy had on which days, and what each became. No data.

It is there where the hierarchy ever changed, or will on a known day; rows of releases keep the codes of their
day and are joined to it by node and date. Like `about.json` it tells public facts of the configuration.
"""

import io
from collections.abc import Callable
from datetime import date

import polars as pl

from optstream.catalogue.backends import Location, Readable
from optstream.catalogue.layout import HIERARCHY
from optstream.catalogue.rows import HIERARCHY_COLUMNS
from optstream.catalogue.signing import Signer, put_fact
from optstream.errors import OptStreamError, PublicationError
from optstream.storage.parquet import Limits, decode_table
from optstream.stream import DatedHierarchy, Unit

LARGEST_HIERARCHY = 2**28
"""Bytes of the file, which anyone may have written."""
LIMITS = Limits(rows=2**23, columns=6)
FIRST, LAST = ((date(year, 1, 1) - date(1970, 1, 1)).days for year in (2, 9999))
"""Days since 1970 of the first and the last date that may be in it: Python has the days beside them."""
SEPARATOR = ";"
"""Between the codes that a unit became; no node of a configuration has one in its name."""
COLUMNS = {one.name: one.type for one in HIERARCHY_COLUMNS}


def hierarchy_rows(hierarchy: DatedHierarchy, names: Callable[[str], str | None]) -> pl.DataFrame:
    """Return a row for each unit while its code and its parent stay the same; names: of a node, or None."""
    rows = [
        (
            one.code,
            one.parent,
            names(one.code),
            one.valid_from,
            one.valid_until,
            SEPARATOR.join(one.became) or None,
        )
        for one in hierarchy.units()
    ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def put_hierarchy(
    folder: Location | str,
    hierarchy: DatedHierarchy,
    names: Callable[[str], str | None],
    signer: Signer | None = None,
) -> bool:
    """Atomically replace `hierarchy.parquet`, signed if there is a key; none is made without changes."""
    buffer = io.BytesIO()
    hierarchy_rows(hierarchy, names).write_parquet(buffer, compression="zstd", statistics=False)
    return put_fact(folder, HIERARCHY, buffer.getvalue(), bool(hierarchy.changes), LARGEST_HIERARCHY, signer)


def find_hierarchy(
    storage: Readable, check: Callable[[bytes], object] | None = None
) -> DatedHierarchy | None:
    """Return the dated hierarchy of a published folder, None where it never changed; check: as for
    `read_about`.
    """
    try:
        data = storage.read(HIERARCHY, LARGEST_HIERARCHY)
    except FileNotFoundError:
        return None
    if check is not None:
        check(data)
    try:
        rows, _ = decode_table(data, LIMITS, HIERARCHY)
        if [*rows.schema.items()] != [*COLUMNS.items()] or rows["node"].has_nulls() or not _are_days(rows):
            raise ValueError
        return DatedHierarchy.of_units([_unit(*row) for row in rows.iter_rows()])
    except (OptStreamError, ValueError, KeyError) as error:
        raise PublicationError(
            f"{HIERARCHY} is not as OptStream writes it; `optstream report` makes it anew"
        ) from error


def _are_days(rows: pl.DataFrame) -> bool:
    """Whether all dates are ones of a stream; looked at as numbers, for polars panics at those far away."""
    numbers = rows.select(pl.col("valid_from", "valid_until").to_physical())
    return all(number.is_between(FIRST, LAST).all() for number in numbers)


def _unit(
    node: str, parent: str | None, _: str | None, first: date | None, last: date | None, became: str | None
) -> Unit:
    return Unit(node, parent, first, last, tuple(became.split(SEPARATOR)) if became else ())
