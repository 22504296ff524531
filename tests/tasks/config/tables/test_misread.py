"""Codes that would be read otherwise than they are written: refused."""

from datetime import date

import polars as pl
import pytest

from tasks.config.hierarchy import read_hierarchy
from tasks.config.schema import Hierarchy


@pytest.mark.parametrize(
    ("codes", "is_read"),
    [
        ([1.0, 2.0], False),
        ([True, False], False),
        ([date(2016, 1, 1), date(2016, 1, 2)], False),
        (["01", "1"], True),
        ([1, 2], True),
    ],
)
def test_codes_have_one_spelling(tmp_path, codes, is_read):
    table = pl.DataFrame({"node": codes, "parent": [None, codes[0]]})
    table.write_parquet(tmp_path / "nodes.parquet")
    nodes, problems = read_hierarchy(Hierarchy(file="nodes.parquet"), tmp_path)
    assert (nodes is not None) == is_read
    assert [*(nodes.parents if nodes else ())] == ([str(code) for code in codes] if is_read else [])
    assert is_read or "text or whole numbers" in problems[0]


@pytest.mark.parametrize("header", ["node,parent,parent", "node,node,parent", "node,parent,name,name"])
def test_a_column_that_is_there_twice_is_refused(tmp_path, header):
    rows = [",".join(["FR"] + [""] * header.count(",")), ",".join("1" * (header.count(",") + 1))]
    (tmp_path / "nodes.csv").write_text("\n".join([header, *rows]))
    nodes, (problem,) = read_hierarchy(Hierarchy(file="nodes.csv"), tmp_path)
    assert nodes is None
    assert "must have each column once" in problem


@pytest.mark.parametrize(
    "facts",
    [
        {"name": [1.0, 2.0]},
        {"name": [True, False]},
        {"latitude": [True, False], "longitude": [False, True]},
        {"latitude": [date(1970, 1, 5)] * 2, "longitude": [1.0, 2.0]},
    ],
)
def test_facts_of_another_type_are_refused(tmp_path, facts):
    pl.DataFrame({"node": ["FR", "84"], "parent": ["", "FR"], **facts}).write_parquet(tmp_path / "n.parquet")
    nodes, problems = read_hierarchy(Hierarchy(file="n.parquet"), tmp_path)
    assert nodes is None
    assert "true or a date" in problems[0]
