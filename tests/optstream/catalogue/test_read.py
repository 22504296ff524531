"""Reading whole periods through the catalogue, some nodes and days, whatever goes on in the folder."""

import json
from datetime import date, timedelta

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from optstream.catalogue import check_files, error_columns, publish, read, read_published, stage
from optstream.catalogue.about import NodeFacts
from optstream.catalogue.backends import open_storage
from optstream.catalogue.publication import close_days
from optstream.catalogue.read import catalogue_reader, rows_of, with_names
from optstream.catalogue.rows import schema
from optstream.errors import ParameterError, PublicationError
from optstream.stream.period import Hour
from tests.optstream.catalogue.conftest import make_rows, make_statement, put, put_days, take_back
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

    polars = pl.read_parquet(data).select(columns).sort("date", "step", "node")
    assert polars.equals(wanted)

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


def test_a_link_out_of_the_folder_is_not_read(tmp_path):
    entry = put(tmp_path / "published", DAY).entry
    path = tmp_path / "published" / entry.file
    path.rename(tmp_path / "away.parquet")
    path.symlink_to(tmp_path / "away.parquet")
    with pytest.raises(PublicationError, match="outside"):
        read_published(tmp_path / "published")


def test_another_release_under_the_name_is_refused_without_verify(tmp_path):
    first, second = put(tmp_path, DAY).entry, put(tmp_path, NEXT).entry
    (tmp_path / first.file).write_bytes((tmp_path / second.file).read_bytes())
    with pytest.raises(PublicationError, match="another release"):
        read_published(tmp_path)


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
