"""Codes and areas that would be read otherwise than they are written: refused."""

import json
from datetime import date

import polars as pl
import pytest

from tasks.config.hierarchy import read_areas, read_hierarchy
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


def test_areas_of_which_none_is_a_nodes_or_two_are_of_one_are_refused(tmp_path):
    corners = [[[0, 0], [1, 0], [1, 1]]]
    feature = {"id": "11", "geometry": {"type": "Polygon", "coordinates": corners}}
    (tmp_path / "areas.json").write_text(json.dumps({"features": [feature]}))
    assert [*read_areas(tmp_path / "areas.json", {"11", "84"})[0]] == ["11"]
    assert "none of its features" in read_areas(tmp_path / "areas.json", {"FR"})[1][0]
    (tmp_path / "areas.json").write_text(json.dumps({"features": [feature, feature]}))
    assert "one feature for each node" in read_areas(tmp_path / "areas.json", {"11"})[1][0]
