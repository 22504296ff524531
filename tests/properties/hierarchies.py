"""Hierarchy files: CSV and Parquet, of nodes and parents that may be anything."""

import io

import polars as pl
from hypothesis import strategies as st

from tests.properties.damage import damaged, names
from tests.properties.footers import lying

NODES = ("FR", "84", "11", "Île-de-France", "a.b (c)")


def files() -> st.SearchStrategy[tuple[str, bytes]]:
    """(ending, content)."""
    csv = damaged(_csv()).map(lambda data: (".csv", data))
    parquet = st.one_of(damaged(_parquet()), lying(_parquet())).map(lambda data: (".parquet", data))
    return st.one_of(csv, parquet, damaged(_csv()).map(lambda data: (".parquet", data)))


@st.composite
def _pairs(draw: st.DrawFn) -> list[tuple[str, str]]:
    pairs = [("FR", ""), ("84", "FR"), ("11", "FR")]
    name = st.one_of(st.sampled_from(NODES), names())
    for _ in range(draw(st.integers(0, 4))):
        pair = (draw(name), draw(name))
        at = draw(st.integers(0, len(pairs)))
        pairs[at : at + draw(st.integers(0, 1))] = [pair]
    return pairs


@st.composite
def _csv(draw: st.DrawFn) -> bytes:
    header = draw(st.sampled_from(["node,parent", "node,parent", "parent,node", "node", "node,parent,x", ""]))
    mark = draw(st.sampled_from(['"', '"', ""]))
    lines = [f"{mark}{node}{mark},{mark}{parent}{mark}" for node, parent in draw(_pairs())]
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return end.join([header, *lines, ""]).encode("utf-8", "surrogatepass")


@st.composite
def _parquet(draw: st.DrawFn) -> bytes:
    pairs = [tuple(text.encode("utf-8", "replace").decode() for text in pair) for pair in draw(_pairs())]
    frame = pl.DataFrame(pairs, schema=["node", "parent"], orient="row")
    kind = draw(
        st.sampled_from(
            ["plain", "plain", "number", "null", "nested", "binary", "category", "float", "missing"]
        )
    )
    column = draw(st.sampled_from(["node", "parent"]))
    changes = {
        "number": pl.int_range(pl.len()),
        "null": pl.lit(None),
        "nested": pl.concat_list("node"),
        "binary": pl.col("node").cast(pl.Binary),
        "category": pl.col(column).cast(pl.Categorical),
        "float": pl.lit(float("nan")),
    }
    if kind in changes:
        frame = frame.with_columns(changes[kind].alias(column))
    if kind == "missing":
        frame = frame.drop(column)
    sink = io.BytesIO()
    frame.write_parquet(sink)
    return sink.getvalue()
