"""The hierarchy's source: tables of the configuration, or a CSV or Parquet file."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import polars as pl

from optstream.catalogue.about import NodeFacts
from optstream.errors import ParameterError
from optstream.storage.parquet import Limits, claims_of
from tasks.config.fields import is_node_name
from tasks.config.schema import Hierarchy

LARGEST_TREE_FILE = 64 * 2**20
MOST_NODES = 2**22
LIMITS = Limits(rows=MOST_NODES, columns=1000)
"""What a Parquet file's footer may claim."""
UNUSABLE_TREE = (
    "must hold the columns node and parent, and may hold name, latitude and longitude, "
    "readable as its ending says"
)
# a column of whole numbers is text as it stands
CODES = dict.fromkeys(("node", "parent", "name"), pl.String)
PLACES = dict.fromkeys(("latitude", "longitude"), pl.Float64)


class Nodes(NamedTuple):
    """The hierarchy as read. parents: the root's is None. facts: of nodes that have a name or a place."""

    parents: dict[str, str | None]
    facts: dict[str, NodeFacts]


def read_hierarchy(section: Hierarchy, folder: Path) -> tuple[Nodes | None, list[str]]:
    """Return the nodes and the problems found; None where there is no usable table."""
    rows: list[Mapping[str, Any]] = [
        {"node": node, "name": section.names.get(node), "latitude": latitude, "longitude": longitude}
        for node in dict.fromkeys((*section.names, *section.places))
        for latitude, longitude in [section.places.get(node, (None, None))]
    ]
    if (section.parents is None) == (section.file is None):
        given = "neither" if section.parents is None else "both"
        return None, [f"hierarchy must have one of the keys parents, file; got {given}"]
    if section.parents is not None:
        key, pairs = "hierarchy.parents", list(section.parents.items())
    else:
        key, table = "hierarchy.file", _read_file(folder / str(section.file))
        if isinstance(table, str):
            return None, [f"hierarchy.file {section.file!r} {table}"]
        pairs = list(table.select("node", "parent").iter_rows())
        if not {row["node"] for row in rows}.isdisjoint(table["node"]):
            return None, [
                "hierarchy.names and places go with parents, or are of units that begin by a change; "
                "hierarchy.file has columns for its own"
            ]
        rows = [*table.iter_rows(named=True), *rows]
    if len(pairs) > MOST_NODES:
        return None, [f"{key} must name at most {MOST_NODES:,} nodes; got {len(pairs):,}"]
    problems = []
    if bad := [node for node, _ in pairs if not is_node_name(node)]:
        listed = ", ".join(f"{str(node)!r:.80}" for node in bad[:5])
        problems.append(
            f"{key} must name nodes, which name folders, by letters (without combining marks), digits, "
            "spaces and _.,'()+- only, starting with a letter or digit, at most 200 bytes; "
            f"got {listed}. What readers see may be any words: hierarchy.names, or the column name of "
            "hierarchy.file"
        )
    parents = {str(node): parent or None for node, parent in pairs}
    if len(parents) < len(pairs):
        problems.append(f"{key} must name each node once")
    if problems:
        return None, problems
    changes = section.tree_changes
    codes = {*parents, *(code for change in changes for code in change.beginning)}
    if (margin := section.margin) is not None:
        codes |= {*margin.nodes, *(cell for leaf in parents for cell in margin.cells_of(leaf))}
    facts, problems = _facts_of(rows, codes)
    renamed = (pair for change in changes for pair in change.renamed.items())
    respelled = {new for old, new in renamed if _folded(old) == _folded(new)}
    return Nodes(parents, facts), problems + _alike(codes - respelled)


DRAWN_AS_NOTHING = {0x115F: None, 0x1160: None}
"""Hangul's fillers, the only letters that nobody sees."""


def _folded(code: str) -> str:
    return "".join(normalize("NFKC", code).translate(DRAWN_AS_NOTHING).casefold().split())


def _alike(codes: Collection[str]) -> list[str]:
    """Return what is wrong with codes that people and file systems take for one, or that end in a space."""
    found: dict[str, list[str]] = defaultdict(list)
    for code in sorted(codes):
        found[_folded(code)].append(code)
    problems = [
        f"hierarchy: {', '.join(map(repr, same[:5]))} differ by case, spaces or the form of letters alone: "
        "give each unit a code of its own"
        for same in found.values()
        if len(same) > 1
    ]
    if spaced := [code for code in sorted(codes) if code != code.strip()]:
        problems.append(f"hierarchy: {spaced[0]!r:.80} ends in a space: take it out, in the dumps too")
    return problems[:5]


def _facts_of(
    rows: Iterable[Mapping[str, Any]], nodes: Collection[str]
) -> tuple[dict[str, NodeFacts], list[str]]:
    """The facts of the rows that have any, and what is wrong with the first rows."""
    facts, problems = {}, []
    for row in rows:
        given = {key: row[key] for key in ("name", *PLACES) if row.get(key) is not None}
        named = f"{str(row['node'])!r:.80}"
        if given and row["node"] not in nodes:
            problems.append(f"hierarchy: {named} has a name or a place, and is not a node")
        elif given:
            try:
                facts[row["node"]] = NodeFacts(**given)
            except ParameterError as error:
                problems.append(f"hierarchy: node {named}: {error}")
    return facts, problems[:5]


def _read_file(path: Path) -> pl.DataFrame | str:
    """The columns that are known, or what is wrong with the file."""
    if path.suffix not in (".csv", ".parquet"):
        return "must end in .csv or .parquet"
    try:
        if not path.is_file():
            return "does not exist, or is not a file"
        if path.stat().st_size > LARGEST_TREE_FILE:
            return "must be at most 64 MiB"
    except (OSError, ValueError):
        return "is no path that can be looked up; shorten it"
    try:
        if path.suffix == ".csv":
            table = pl.read_csv(path, infer_schema=False, glob=False)
            if twice := [name for name in table.columns if f"{name}_duplicated_0" in table.columns]:
                return f"must have each column once; {twice[0]!r:.80} is there twice: take one out"
        else:
            claims = claims_of(path)
            if claims is None or not claims.is_flat:
                return UNUSABLE_TREE
            if not claims.within(LIMITS):
                return f"must claim {LIMITS.words}"
            table = pl.read_parquet(path, glob=False, hive_partitioning=False)
        kinds, texts = table.schema, (pl.String, pl.Categorical, pl.Enum, pl.Null)
        if not all(kinds[one].is_integer() or kinds[one] in texts for one in CODES if one in kinds):
            return (
                "must have text or whole numbers as node, parent and name: 1.0, true or a date is read "
                "otherwise than dumps and readers write it"
            )
        if not all(
            kinds[one].is_numeric() or kinds[one] in (pl.String, pl.Null) for one in PLACES if one in kinds
        ):
            return "must have numbers as latitude and longitude: true or a date is none"
        wanted = [one for one in (*CODES, *PLACES) if one in kinds or one in ("node", "parent")]
        return table.select(pl.col(one).cast({**CODES, **PLACES}[one]) for one in wanted)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return UNUSABLE_TREE
