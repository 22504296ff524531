"""Rows are read whole, some of them, or in the hierarchy of another day, whatever goes on in the folder."""

import json
from datetime import date, timedelta
from fractions import Fraction
from unittest.mock import patch

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from optstream.catalogue import check_files, error_columns, publish, read, read_published, stage
from optstream.catalogue.about import NodeFacts, find_hierarchy, hierarchy_rows, put_hierarchy
from optstream.catalogue.backends import open_storage
from optstream.catalogue.publication import close_days
from optstream.catalogue.read import catalogue_reader, made_of, rows_as_of, rows_of, with_names
from optstream.catalogue.rows import schema
from optstream.errors import ParameterError, PublicationError
from optstream.stream import DatedHierarchy, TreeChange
from optstream.stream.period import Hour
from tests.optstream.catalogue.conftest import make_rows, make_statement, put, put_days, take_back, tree_frame
from tests.optstream.catalogue.folders import DAY, NEXT


def expected(*days, **more):
    rows = [make_rows(day, **more).sort("step", "node") for day in sorted(days)]
    return pl.concat(rows).cast(pl.Schema(schema("load_mw")))


def test_releases_of_before_there_were_standard_errors_are_read_with_others(tmp_path):
    old = make_rows(DAY).drop("load_mw_noise_se", "load_mw_se")
    stated = make_statement(DAY, standard_errors=None)
    assert "standard_errors" not in stated.to_json()
    publish(tmp_path, [stage(old, stated)], lambda known: "head-0")
    put(tmp_path, NEXT)
    frame = read_published(tmp_path, verify=True)
    assert dict(frame.schema) == schema("load_mw")
    wanted = expected(DAY, NEXT)
    cleared = [pl.when(pl.col("date") > DAY).then(name).alias(name) for name in error_columns("load_mw")]
    assert frame.equals(wanted.with_columns(cleared))
    assert check_files(tmp_path) == []


def test_data_is_one_hive_dataset_in_polars_pyarrow_and_duckdb(tmp_path):
    put(tmp_path, DAY)
    put(tmp_path, NEXT)
    put(tmp_path, DAY, revision=2)  # superseded files must not be in the dataset
    put(tmp_path, NEXT, revision=2)
    data = tmp_path / "data"
    wanted = expected(DAY, NEXT, revision=2)
    columns = wanted.columns

    assert pl.read_parquet(data).select(columns).sort("date", "step", "node").equals(wanted)

    typed = ds.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    table = ds.dataset(data, partitioning=typed).to_table()
    assert table.schema.field("date").type == pa.date32()
    assert pl.from_arrow(table).select(columns).sort("date", "step", "node").equals(wanted)

    query = f"from read_parquet('{data}/*/*.parquet', hive_partitioning = true)"
    kinds = dict(duckdb.sql(f"select column_name, column_type from (describe {query})").fetchall())
    assert kinds["date"] == "DATE"
    assert kinds["timestamp"] == "TIMESTAMP WITH TIME ZONE"
    frame = duckdb.sql(f"select * {query}").pl().select(columns)
    assert frame.cast(pl.Schema(schema("load_mw"))).sort("date", "step", "node").equals(wanted)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda d, e: e.update(file="../../etc/passwd"), "relative names"),
        (lambda d, e: e.update(file="/etc/passwd"), "relative names"),
        (lambda d, e: e.update(manifest=e["file"]), "relative names"),
        (lambda d, e: e.update(file_hash="../" + "a" * 61), "file_hash"),
        (lambda d, e: e.update(rows_hash="A" * 64), "rows_hash"),
        (lambda d, e: e.update(revision=-1), "revision"),
        (lambda d, e: e.update(revision=True), "revision"),
        (lambda d, e: e.update(vintage=1.0), "vintage"),
        (lambda d, e: e.update(ledger_head=""), "ledger_head"),
        (lambda d, e: e.update(withdrawn=False), "withdrawn"),
        (lambda d, e: e.update(extra=1), "extra"),
        (lambda d, e: e.pop("manifest"), "manifest"),
        (lambda d, e: d["periods"].update({"../x": e}), "periods"),
        (lambda d, e: d["periods"].update({"20160203": e}), "periods"),
        (lambda d, e: d["periods"].update({"2016-02-03": 1}), "2016-02-03"),
        (lambda d, e: d["periods"].update({"2016-02-30": e}), "not a date"),
        (lambda d, e: d["periods"].update({"\udcff": e}), "not a date"),
        (lambda d, e: e.update(withdrawn=None), "withdrawn"),
        (lambda d, e: e.update(closed_in=None), "closed_in must be left out"),
        (lambda d, e: e.update(closed_in="a" * 64), "of an hour"),
        (lambda d, e: d.update(periods=[]), "periods"),
        (lambda d, e: d.pop("periods"), "periods"),
        (lambda d, e: d.pop("format"), "format"),
        (lambda d, e: d.update(format="optstream.catalogue/2"), "sequence"),
        *(
            (lambda d, e, given=given: d.update(format="optstream.catalogue/2", sequence=given), "sequence")
            for given in (0, -1, 1.5, "1", True, 2**53, None)
        ),
        *(
            (lambda d, e, day=day: d.update(periods={day: e}), "outside the years 1970 to 2199")
            for day in ("0001-01-01", "1969-12-31", "2200-01-01", "9999-12-31")
        ),
        (lambda d, e: d.update(more=1), "more"),
        (lambda d, e: d.update(stream="a\nb"), "stream"),
        (lambda d, e: d.update(value_column="a/b"), "value_column"),
        (lambda d, e: d.update(ledger_head=5), "ledger_head"),
    ],
)
def test_a_catalogue_is_not_trusted(tmp_path, change, rule):
    put(tmp_path, DAY)
    document = json.loads((tmp_path / "catalogue.json").read_text())
    change(document, document["periods"].get("2016-02-01"))
    (tmp_path / "catalogue.json").write_text(json.dumps(document))
    with pytest.raises(PublicationError, match=rule):
        read_published(tmp_path)


def test_a_link_out_of_the_folder_and_another_release_are_refused_without_verify(tmp_path):
    folder = tmp_path / "published"
    path, other = (folder / put(folder, day).entry.file for day in (DAY, NEXT))
    path.rename(tmp_path / "away.parquet")
    path.symlink_to(tmp_path / "away.parquet")
    with pytest.raises(PublicationError, match="outside"):
        read_published(folder)
    path.unlink()
    path.write_bytes(other.read_bytes())
    with pytest.raises(PublicationError, match="another release"):
        read_published(folder)


@pytest.mark.parametrize(
    ("overtake", "days"),
    [(lambda folder: put(folder, DAY, revision=2), [DAY, NEXT]), (take_back, [NEXT])],
)
def test_a_reader_that_is_overtaken_has_the_day_as_it_was_or_none(tmp_path, monkeypatch, overtake, days):
    """The race, made certain: a revision or a withdrawal lands between the catalogue and its files."""
    put(tmp_path, DAY)
    put(tmp_path, NEXT)
    genuine, calls = read.read_catalogue, []

    def overtaken(folder, check):
        catalogue = genuine(folder, check)
        if not calls:
            calls.append(overtake(tmp_path))
        return catalogue

    monkeypatch.setattr(read, "read_catalogue", overtaken)
    assert read_published(tmp_path, verify=True).equals(expected(*days))


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b"NaN", b'{"stream": 1, "stream": 2}'])
def test_other_bytes_are_not_a_catalogue(tmp_path, data):
    (tmp_path / "catalogue.json").write_bytes(data)
    for reader in (read_published, check_files):
        with pytest.raises(PublicationError, match="unique keys" if b"2" in data else r"catalogue\.json"):
            reader(tmp_path)


def test_a_closed_day_is_read_from_its_file_though_an_hour_was_withdrawn(tmp_path):
    for hour in range(3):
        rows = make_rows(DAY).with_columns(pl.col("step") + 4 * hour)
        publish(tmp_path, [stage(rows, make_statement(Hour(DAY, hour)))], lambda _: "h1")
    take_back(tmp_path, Hour(DAY, 1))
    assert close_days(tmp_path, [DAY]) == (DAY,)
    assert check_files(tmp_path) == []
    before = read_published(tmp_path, verify=True)
    assert before["step"].unique().to_list() == [0, 1, 2, 3, 8, 9, 10, 11]
    (tmp_path / "superseded").rename(tmp_path / "away")
    assert read_published(tmp_path, verify=True).equals(before)
    assert selected(tmp_path, ["84"], DAY, DAY, verify=True).equals(before.filter(node="84"))


DAYS = [date(2016, 2, 1) + timedelta(days=number) for number in range(3)]


@pytest.fixture
def three_days(tmp_path):
    put_days(tmp_path / "published", *DAYS)
    return tmp_path / "published"


def selected(three_days, *arguments, **options):
    storage = open_storage(three_days)
    return rows_of(storage, catalogue_reader(storage, None)(), *arguments, **options)


def test_a_selection_is_the_published_rows_reads_no_other_day_and_says_what_is_not_there(three_days):
    (three_days / f"data/date={DAYS[0]}").rename(three_days / "gone")
    chosen = selected(three_days, ["84"], DAYS[1])
    (three_days / "gone").rename(three_days / f"data/date={DAYS[0]}")
    published = read_published(three_days)
    assert chosen.equals(published.filter((pl.col("node") == "84") & (pl.col("date") > DAYS[0])))
    assert selected(three_days).equals(published)
    with pytest.raises(ParameterError, match="has a node '99'"):
        selected(three_days, ["84", "99"])
    take_back(three_days, DAYS[2])
    with pytest.raises(ParameterError, match="no day of this span is published"):
        selected(three_days, first=DAYS[2])


def test_no_column_of_names_is_added_where_no_node_has_one_or_rows_have_such_a_column(three_days):
    rows = selected(three_days)
    assert with_names(rows, {"FR": NodeFacts(latitude=46.0, longitude=2.0)}).equals(rows)
    called = rows.rename({"load_mw": "name"})
    assert with_names(called, {"84": NodeFacts(name="Auvergne")}).equals(called)


# Rows in the hierarchy of another day: added up or left out, never divided.

OLDEST = (("FR", None), ("N", "FR"), ("S", "FR"), ("1", "N"), ("2", "N"), ("3", "S"), ("4", "S"))
ONE_DAY = timedelta(days=1)
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
BEFORE = SPLIT - ONE_DAY


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
    days = [SPLIT + number * ONE_DAY for number in range(len(changes))]
    own = [TreeChange(day, **one) for day, one in zip(days, changes, strict=True)]
    hierarchy = DatedHierarchy(OLDEST, tuple(own))
    found = {one.node: one.sources for one in made_of(hierarchy, BEFORE, days[-1])}
    assert found == {"S": ("S",), "2": ("2",), "3": ("3",), "4": ("4",)}
    # and what it was merged with is all that the days before have of it
    assert {one.node: one.sources for one in made_of(hierarchy, days[-1], BEFORE)}["FR"] == ("FR",)


def rows_in_tree(day):
    """A row for each node and two steps; the value of a leaf is its own power of two."""
    tree = HIERARCHY.tree_of(day)
    leaves = np.array([[2.0**number, 10 * 2.0**number] for number in range(len(tree.leaves))])
    frame = tree_frame(day, tree, tree.add_up(leaves).tolist())
    errors = {"load_mw_noise_se": pl.lit(1.0), "load_mw_se": pl.lit(2.0)}
    return frame.with_columns(**errors).cast(pl.Schema(schema("load_mw")))


def test_rows_of_all_days_come_in_the_tree_of_one_with_customers_and_estimates_where_a_day_has_them():
    more = {"load_mw_estimate": pl.col("load_mw") + 1, "customers": pl.lit(3.0), "customers_se": pl.lit(1.0)}
    days = [rows_in_tree(BEFORE), rows_in_tree(SPLIT).with_columns(**more), rows_in_tree(LAST)]
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
        day = first + number * ONE_DAY
        lines.append((f"a{number}", "FR", None, None, day - ONE_DAY, f"b{number}"))
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
