"""The hierarchy's source: a table of the configuration, or a CSV or Parquet file."""

from pathlib import Path

import polars as pl

from optstream.storage.parquet_limits import Limits, claims_of
from tasks.config.tables.fields import is_node_name
from tasks.config.tables.sections import Hierarchy

LARGEST_FILE = 64 * 2**20
MOST_NODES = 2**22
LIMITS = Limits(rows=MOST_NODES, columns=1000)
"""What a Parquet file's footer may claim."""
UNUSABLE = "must hold the columns node and parent, readable as its ending says"
Parents = dict[str, str | None]


def read_hierarchy(section: Hierarchy, folder: Path) -> tuple[Parents | None, list[str]]:
    """Return {node: parent} and the problems found; None where there is no usable table."""
    if (section.parents is None) == (section.file is None):
        given = "neither" if section.parents is None else "both"
        return None, [f"hierarchy must have one of the keys parents, file; got {given}"]
    if section.parents is not None:
        key, pairs = "hierarchy.parents", list(section.parents.items())
    else:
        key = "hierarchy.file"
        table = _read_file(folder / str(section.file))
        if isinstance(table, str):
            return None, [f"hierarchy.file {section.file!r} {table}"]
        pairs = list(table.iter_rows())
    if len(pairs) > MOST_NODES:
        return None, [f"{key} must name at most {MOST_NODES:,} nodes; got {len(pairs):,}"]
    problems = []
    bad = [node for node, _ in pairs if not is_node_name(node)]
    if bad:
        listed = ", ".join(f"{str(node)!r:.80}" for node in bad[:5])
        problems.append(
            f"{key} must name nodes, which name folders, by letters, digits, spaces and _.,'()+- only, "
            f"starting with a letter or digit, at most 200 bytes; got {listed}"
        )
    parents: Parents = {str(node): parent or None for node, parent in pairs}
    if len(parents) < len(pairs):
        problems.append(f"{key} must name each node once")
    return (None, problems) if problems else (parents, [])


def _read_file(path: Path) -> pl.DataFrame | str:
    """The two columns as text, or what is wrong with the file."""
    if path.suffix not in (".csv", ".parquet"):
        return "must end in .csv or .parquet"
    try:
        if not path.is_file():
            return "does not exist, or is not a file"
        if path.stat().st_size > LARGEST_FILE:
            return "must be at most 64 MiB"
    except (OSError, ValueError):
        return "is no path that can be looked up; shorten it"
    if path.suffix == ".parquet":
        claims = claims_of(path)
        if claims is None or not claims.is_flat:
            return UNUSABLE
        if not claims.within(LIMITS):
            return f"must claim {LIMITS.words}"
    try:
        if path.suffix == ".csv":
            table = pl.read_csv(path, infer_schema=False, glob=False)
        else:
            table = pl.read_parquet(path, glob=False, hive_partitioning=False)
        # strict: a parent column of numbers is text as it stands
        return table.select(pl.col("node").cast(pl.String), pl.col("parent").cast(pl.String))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return UNUSABLE
