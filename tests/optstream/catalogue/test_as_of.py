"""Rows in the hierarchy of another day: added up or left out, never divided."""

from datetime import date, timedelta
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from optstream.catalogue.about import find_hierarchy, hierarchy_rows, put_hierarchy
from optstream.catalogue.backends import open_storage
from optstream.catalogue.read import made_of, rows_as_of
from optstream.catalogue.rows import schema
from optstream.errors import PublicationError
from optstream.stream import DatedHierarchy, TreeChange
from tests.optstream.catalogue.conftest import frame_of, nodes_of

OLDEST = (("FR", None), ("N", "FR"), ("S", "FR"), ("1", "N"), ("2", "N"), ("3", "S"), ("4", "S"))
DAY = timedelta(days=1)
SPLIT, MERGED, LAST = date(2016, 7, 1), date(2016, 8, 1), date(2016, 9, 1)
HALVES = {"1a": Fraction(1), "1b": Fraction(1)}
HIERARCHY = DatedHierarchy(
    OLDEST,
    (
        TreeChange(SPLIT, split={"1": HALVES}, renamed={"2": "2x"}),
        TreeChange(MERGED, merged={"34": ("3", "4")}, added={"5": "S"}),
        TreeChange(LAST, removed=("5",), moved={"1a": "S"}),
    ),
)
BEFORE = SPLIT - DAY


def sources(wanted, day):
    return {one.node: one.sources for one in made_of(HIERARCHY, wanted, day)}


@pytest.mark.parametrize(
    ("wanted", "day", "expected"),
    [
        # days before a split have the whole and what is above it, and no parts; days after add its parts up
        (
            SPLIT,
            BEFORE,
            {"FR": "FR", "N": "N", "S": "S", "2x": "2", "3": "3", "4": "4", "1a": None, "1b": None},
        ),
        (BEFORE, SPLIT, {"1": "1a 1b", "2": "2x", "N": "N"}),
        # a merged unit is the sum of what it was made of, and its parts are not there after it; what had no
        # readings adds nothing, and what came is not in what was
        (MERGED, SPLIT, {"34": "S", "5": None, "S": "S"}),
        (SPLIT, MERGED, {"3": None, "FR": "1a 1b 2x 34"}),
        # a unit that moved is counted where the wanted day has it; before the split neither is known
        (LAST, MERGED, {"S": "1a 34", "N": "1b 2x"}),
        (LAST, BEFORE, {"S": None, "N": None, "FR": "FR"}),
    ],
)
def test_a_node_is_the_sum_of_the_same_leaves_or_is_not_there(wanted, day, expected):
    found = sources(wanted, day)
    assert {node: " ".join(found[node]) if node in found else None for node in expected} == expected


@pytest.mark.parametrize(
    "after",
    [
        [{"merged": {"19": ("1", "9")}}],
        [{"split": {"9": HALVES}}, {"merged": {"19": ("1", "1a")}}],
        [{"renamed": {"9": "9x"}}, {"merged": {"19": ("1", "9x")}}, {"renamed": {"19": "19x"}}],
    ],
)
def test_what_a_new_unit_was_merged_into_is_not_the_unit_of_before(after):
    """Days with rows of the new unit cannot be read as of a day before it came."""
    changes = [{"added": {"9": "N"}}, *after]
    days = [SPLIT + number * DAY for number in range(len(changes))]
    own = [TreeChange(day, **one) for day, one in zip(days, changes, strict=True)]
    hierarchy = DatedHierarchy(OLDEST, tuple(own))
    found = {one.node: one.sources for one in made_of(hierarchy, BEFORE, days[-1])}
    assert found == {"S": ("S",), "2": ("2",), "3": ("3",), "4": ("4",)}
    # and what it was merged with is all that the days before have of it
    back = {one.node: one.sources for one in made_of(hierarchy, days[-1], BEFORE)}
    assert back["FR"] == ("FR",)


def rows_of(day):
    """A row for each node and two steps; the value of a leaf is its own power of two."""
    tree = HIERARCHY.tree_of(day)
    leaves = np.array([[2.0**number, 10 * 2.0**number] for number in range(len(tree.leaves))])
    frame = frame_of(day, nodes_of(tree), tree.add_up(leaves).tolist())
    errors = {"load_mw_noise_se": pl.lit(1.0), "load_mw_se": pl.lit(2.0)}
    return frame.with_columns(**errors).cast(pl.Schema(schema("load_mw")))


def test_rows_of_all_days_come_in_the_tree_of_one_with_customers_and_estimates_where_a_day_has_them():
    more = {"load_mw_estimate": pl.col("load_mw") + 1, "customers": pl.lit(3.0), "customers_se": pl.lit(1.0)}
    days = [rows_of(BEFORE), rows_of(SPLIT).with_columns(**more), rows_of(LAST)]
    rows = pl.concat(days, how="diagonal")
    found = rows_as_of(rows, HIERARCHY, BEFORE, "load_mw")
    assert found.columns == rows.columns
    assert found.schema == rows.schema
    assert found.filter(date=BEFORE).equals(rows.filter(date=BEFORE).sort("date", "step", "node"))
    split = {row["node"]: row for row in found.filter(date=SPLIT, step=0).to_dicts()}
    parts = {row["node"]: row["load_mw"] for row in rows.filter(date=SPLIT, step=0).to_dicts()}
    one, two = split["1"], split["2"]
    assert one["load_mw"] == parts["1a"] + parts["1b"] == one["load_mw_estimate"] - 2
    assert (one["load_mw_se"], one["load_mw_noise_se"]) == (None, None)
    assert (one["parent"], one["level"]) == ("N", 2)
    assert (one["customers"], one["customers_se"]) == (6.0, None)
    assert (two["load_mw"], two["load_mw_se"]) == (parts["2x"], 2.0)
    assert (two["customers"], two["customers_se"]) == (3.0, 1.0)
    assert split["FR"]["load_mw_se"] == 2.0


def test_the_table_comes_back_with_the_same_trees(tmp_path):
    (tmp_path / "catalogue.json").touch()
    assert put_hierarchy(tmp_path, HIERARCHY, {"1": "One"}.get)
    assert not put_hierarchy(tmp_path, HIERARCHY, {"1": "One"}.get)
    found = find_hierarchy(open_storage(tmp_path))
    for day in (BEFORE, SPLIT, MERGED, LAST):
        assert dict(found.tree_of(day).parents_by_name()) == dict(HIERARCHY.tree_of(day).parents_by_name())
        assert {one.node: one.sources for one in made_of(found, LAST, day)} == sources(LAST, day)
    rows = pl.read_parquet(tmp_path / "hierarchy.parquet")
    assert rows.columns == ["node", "parent", "name", "valid_from", "valid_until", "became"]
    assert rows.filter(node="1").rows() == [("1", "N", "One", None, BEFORE, "1a;1b")]


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda rows: rows.drop("became"),
        lambda rows: rows.select(reversed(rows.columns)),
        lambda rows: rows.with_columns(valid_until=pl.lit(None, pl.Date)),
        lambda rows: rows.filter(pl.col("node") != "FR"),
        lambda rows: rows.with_columns(pl.col("became").replace({"1a;1b": "1a;1c"})),
        lambda rows: pl.concat([rows, rows]),
        lambda rows: rows.with_columns(pl.col("node").replace("4", None)),
        lambda rows: rows.with_columns(valid_from=pl.lit(date.min)),
        lambda rows: rows.with_columns(valid_until=pl.lit(date.max)),
        lambda rows: rows.with_columns(valid_from=pl.lit(2**31 - 1, pl.Int32).cast(pl.Date)),
    ],
)
def test_a_table_that_is_none_is_refused_with_its_remedy(tmp_path, spoiled):
    spoiled(hierarchy_rows(HIERARCHY, {}.get)).write_parquet(tmp_path / "hierarchy.parquet")
    with pytest.raises(PublicationError, match="not as OptStream writes it; `optstream report` rebuilds it"):
        find_hierarchy(open_storage(tmp_path))


def test_more_work_than_a_hierarchy_can_be_is_refused_before_it_is_done(tmp_path):
    """A few hundred kilobytes of rows would keep a reader busy for hours."""
    n, first = 3000, date(1990, 1, 1)
    lines = [("FR", None, None, None, None, None)]
    for number in range(n):
        day = first + number * DAY
        lines.append((f"a{number}", "FR", None, None, day - DAY, f"b{number}"))
        lines.append((f"b{number}", "FR", None, day, None, None))
    table = pl.DataFrame(lines, schema=hierarchy_rows(HIERARCHY, {}.get).schema, orient="row")
    with patch.object(TreeChange, "applied", side_effect=AssertionError("a change was worked out")):
        for rows, error in ((table, PublicationError), (table.head(2 * 999), AssertionError)):
            rows.write_parquet(tmp_path / "hierarchy.parquet")
            with pytest.raises(error):
                find_hierarchy(open_storage(tmp_path))


def test_texts_of_the_table_are_bounded_as_those_of_every_file(tmp_path, monkeypatch):
    """A few kilobytes of rows that repeat a text would fill a reader's memory."""
    put_hierarchy(tmp_path, HIERARCHY, {"1": "x" * 10_000}.get)
    assert find_hierarchy(open_storage(tmp_path)) is not None
    monkeypatch.setattr("optstream.storage.parquet.FEW_TEXTS", 1000)
    with pytest.raises(PublicationError, match="not as OptStream writes it"):
        find_hierarchy(open_storage(tmp_path))
