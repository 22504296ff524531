"""Hierarchy files: CSV and Parquet, of nodes and parents that may be anything."""

import io

import polars as pl
from hypothesis import strategies as st

from tests.properties.damage import damaged, names
from tests.properties.footers import lying

NODES = ("FR", "84", "11", "Île-de-France", "a.b (c)")
HEADERS = ("node,parent", "node,parent", "parent,node", "node", "node,parent,x", "")
ODD_COLUMNS = {
    "number": pl.int_range(pl.len()),
    "null": pl.lit(None),
    "nested": pl.concat_list("node"),
    "binary": pl.col("node").cast(pl.Binary),
    "category": pl.col("node").cast(pl.Categorical),
    "float": pl.lit(float("nan")),
}


def files() -> st.SearchStrategy[tuple[str, bytes]]:
    """(ending, content)."""
    csv = damaged(_csv())
    parquet = st.one_of(damaged(_parquet()), lying(_parquet()), csv)
    return st.one_of(st.tuples(st.just(".csv"), csv), st.tuples(st.just(".parquet"), parquet))


@st.composite
def _pairs(draw: st.DrawFn) -> list[tuple[str, str]]:
    pairs = [("FR", ""), ("84", "FR"), ("11", "FR")]
    name = st.one_of(st.sampled_from(NODES), names())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(pairs)))
        pairs[at : at + draw(st.integers(0, 1))] = [(draw(name), draw(name))]
    return pairs


@st.composite
def _csv(draw: st.DrawFn) -> bytes:
    mark, end = draw(st.sampled_from(['"', '"', ""])), draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    lines = [f"{mark}{node}{mark},{mark}{parent}{mark}" for node, parent in draw(_pairs())]
    return end.join([draw(st.sampled_from(HEADERS)), *lines, ""]).encode("utf-8", "surrogatepass")


@st.composite
def _parquet(draw: st.DrawFn) -> bytes:
    pairs = [tuple(text.encode("utf-8", "replace").decode() for text in pair) for pair in draw(_pairs())]
    frame = pl.DataFrame(pairs, schema=["node", "parent"], orient="row")
    kind, column = (
        draw(st.sampled_from(["plain", "plain", "missing", *ODD_COLUMNS])),
        draw(st.sampled_from(["node", "parent"])),
    )
    if kind in ODD_COLUMNS:
        frame = frame.with_columns(ODD_COLUMNS[kind].alias(column))
    return parquet_of(frame.drop(column) if kind == "missing" else frame)


def parquet_of(frame: pl.DataFrame, **options: object) -> bytes:
    sink = io.BytesIO()
    frame.write_parquet(sink, **options)
    return sink.getvalue()
