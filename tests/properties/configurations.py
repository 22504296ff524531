"""Configurations with other keys, values and types, TOML that only looks like it; hierarchies as files."""

import copy
import json
import tomllib
from functools import partial
from typing import Any

import polars as pl
from hypothesis import strategies as st

from tasks.config.schema import MECHANISMS
from tasks.config.templates import EXAMPLE
from tests.properties.damage import changed, damaged, names, plain_values
from tests.properties.dumps import parquet_of
from tests.properties.footers import lying

SMALL = tomllib.loads(EXAMPLE)
SMALL["hierarchy"] = {
    "parents": {"FR": "", "84": "FR", "11": "FR"},
    "names": {"84": "Auvergne-Rhône-Alpes"},
    "places": {"FR": [46.0, 2.0]},
}
SHAPES = (
    "a" + ".a" * 3000 + " = 1\n",
    "x = " + "[" * 3000 + "]" * 3000 + "\n",
    "x = 0x" + "f" * 5000 + "\n",
    "x = " + "9" * 5000 + "\n",
    "x = 1e999\n",
    "x = 1979-99-99\n",
    'x = """\n' + "\\u0000" * 3 + '"""\n',
    "[stream]\n[stream]\n",
    "[[stream]]\n[stream.name]\n",
    "".join(f"[unknown{number}]\n" for number in range(300)),
)
"""Lines that a grammar of tables does not make: great depth, length and number."""


class Verbatim(str):
    """A value as TOML writes it, for what Python's types do not hold."""


FITTING: tuple[dict[str, Any], ...] = (
    {},
    {"customer": "meter", "marker": "DONE"},
    {"factor": "0.001", "file_list": "_FILES"},
    {"factor": "1/3"},
)
DATES = ("2012-01-01", "2015-02-30", Verbatim("2015-02-03T00:00:00Z"), Verbatim("2015-02-30"))
UNFIT: tuple[dict[str, Any], ...] = (
    *({"valid_from": one} for one in DATES),
    *({"factor": one} for one in ("1e60", "1e-60", 0.001)),
    {"marker": "../x"},
    {"marker": "a", "file_list": "b"},
    {"value": "timestamp", "timestamp": "timestamp"},
    {"schema": "metered"},
    {"bounds": ["0", "1"]},
)
"""What may stand in an entry of [[input.changes]], and what may not."""
VALUES = tuple(
    Verbatim(text)
    for text in (
        *("0x" + "f" * 5000, "[" * 200 + "]" * 200, "{a" + ".a" * 14 + " = " + "{a = " * 50 + "1" + "}" * 51),
        *("1e999", "-0", "1979-05-27T07:32:00Z", "07:00:00", "0xffffffffffffffffffffffffffffffffffff"),
        "[" + '"1/1000003", ' * 200 + "]",
    )
)
ENTRIES = ("0", "1/2", "1", "1/3", "0.1", "07:00", "24:00", "20000", "-1", "1e-30")
LIKELY = (
    *("metered", "roaming", "fixed", "l1", "1min", "1h", "7min", "24h", "9999h", "UTC", "America"),
    *("Asia/Kathmandu", "../../etc/passwd", "Europe/Paris\0", "1e-60", "1e60", "1/7", "aligned", "a:b"),
    *("sqlite://", "sqlite:///:memory:", "sqlite:///a\0b", "postgresql://h:x/d", "mysql://h/d", "paper"),
    *("_SUCCESS", "load_mw", "timestamp", "published/x", ".", "/", "x" * 300, "h.csv"),
)
PARAMETERS = (1, 2, 10, 48, 10**6, 0.5, "1/2", "50", "paper", "children", "fixed")


def tables() -> st.SearchStrategy[bytes]:
    return damaged(st.one_of(_mutated(), _mutated(), _with_shapes()))


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    document: dict[str, Any] = copy.deepcopy(SMALL)
    if draw(st.booleans()):
        _other_mechanism(draw, document)
    if draw(st.integers(0, 3)) == 0:
        years = draw(st.lists(st.integers(2013, 2016), min_size=1, max_size=3, unique=True).map(sorted))
        own = st.sampled_from([*FITTING, *FITTING, *UNFIT])
        changes = [{"valid_from": f"{year}-07-01", "value": f"load of {year}"} | draw(own) for year in years]
        document["input"]["changes"] = changes
    if draw(st.booleans()):
        document = changed(draw, document, _near)
    return _toml(document).encode("utf-8", "surrogatepass")


def _other_mechanism(draw: st.DrawFn, document: dict[str, Any]) -> None:
    name = draw(st.sampled_from(sorted(MECHANISMS)))
    section, value = MECHANISMS[name], st.one_of(st.sampled_from(PARAMETERS), plain_values())
    keys = draw(st.lists(st.sampled_from(sorted(section.model_fields)), max_size=3, unique=True))
    document["mechanism"] = {"name": name} | {key: draw(value) for key in keys if key != "name"}
    if not section.tables:
        for key in ("sampling", "features"):
            document.pop(key)


def _near(value: Any) -> st.SearchStrategy[Any]:
    """Something of the same kind, so that it gets past the first check."""
    if isinstance(value, bool) or not isinstance(value, (str, int, list)):
        return plain_values()
    if isinstance(value, int):
        return st.one_of(st.integers(0, 100), st.sampled_from([10**6, 10**6 + 1, -1, 0]))
    if isinstance(value, list):
        return st.lists(st.one_of(st.sampled_from(ENTRIES), names()), max_size=70)
    return st.one_of(st.sampled_from(LIKELY), st.sampled_from(LIKELY), st.sampled_from(VALUES), names())


@st.composite
def _with_shapes(draw: st.DrawFn) -> bytes:
    lines = _toml(SMALL).splitlines(keepends=True)
    at = draw(st.integers(0, len(lines)))
    return "".join([*lines[:at], draw(st.sampled_from(SHAPES)), *lines[at:]]).encode()


quoted = partial(json.dumps, ensure_ascii=False)


def _toml(document: dict[str, Any]) -> str:
    """As TOML writes it; what TOML has no word for, nothing and depth, as text."""
    lines = []
    for section, table in document.items():
        if not isinstance(table, dict):
            lines.insert(0, f"{quoted(section)} = {_value(table)}")
            continue
        lines.append(f"[{quoted(section)}]")
        lines += [f"{quoted(key)} = {_value(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Verbatim() | int() | float():
            return str(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            return f"{{{', '.join(f'{quoted(key)} = {_value(entry)}' for key, entry in value.items())}}}"
    return '""' if value is None else quoted(str(value))


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


def hierarchies() -> st.SearchStrategy[tuple[str, bytes]]:
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
    kind = draw(st.sampled_from(["plain", "plain", "missing", *ODD_COLUMNS]))
    column = draw(st.sampled_from(["node", "parent"]))
    if kind in ODD_COLUMNS:
        frame = frame.with_columns(ODD_COLUMNS[kind].alias(column))
    return parquet_of(frame.drop(column) if kind == "missing" else frame)
