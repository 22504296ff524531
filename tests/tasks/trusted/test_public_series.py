"""Covariates' files: any of the layouts, by node; private ones are refused, unusable ones gone without."""

import hashlib
import os
from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from optstream.stream.calendar import ORIGIN
from tasks.trusted import covariates as reading
from tasks.trusted.covariates import read_covariates, read_here
from tests.tasks.two_regions import FEW_BLOCKS, released_by

FIRST = date(2016, 2, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
INFORMED = released_by("HistoryInformed", keys=FEW_BLOCKS)
UNKNOWN = "0" * 64
ENTRY = f"""[[covariates]]
name = "warmth"
path = "warmth.csv"
sha256 = "{UNKNOWN}"
source = "the weather service"
"""


def hashed(folder, text=ENTRY):
    """The text with the hash of the file that it names, and with its ending."""
    for name in ("warmth.csv", "warmth.parquet"):
        if (file := folder / name).is_file():
            text = text.replace("warmth.csv", name)
            text = text.replace(UNKNOWN, hashlib.sha256(file.open("rb").read(2**20)).hexdigest())
    return text


@pytest.fixture
def configured(load_text, tmp_path):
    return lambda text=ENTRY, before=INFORMED: load_text(before + hashed(tmp_path, text))


@pytest.fixture(autouse=True)
def read_in_this_process(monkeypatch):
    monkeypatch.setattr(reading, "_read_apart", read_here)


def one(settings, until=DAYS[-1]):
    found = read_covariates(settings, until)
    assert found.unread == {}
    (covariate,) = found.read
    return covariate


def gone_without(settings):
    """Why the only covariate is gone without."""
    found = read_covariates(settings, DAYS[-1])
    assert found.read == ()
    (why,) = found.unread.values()
    assert why.startswith("covariate warmth: ")
    return why


def by_node(nodes=("84", "11"), **columns):
    rows = [
        (day, node, 10.0 * at + number) for at, node in enumerate(nodes) for number, day in enumerate(DAYS)
    ]
    return pl.DataFrame(rows, schema=["date", "node", "value"], orient="row").with_columns(**columns)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_row_for_each_node_the_nodes_above_as_their_mean(configured, tmp_path, ending):
    table = by_node()
    if ending == "csv":
        table.write_csv(tmp_path / "warmth.csv")
    else:
        table.write_parquet(tmp_path / "warmth.parquet")
    found = one(configured())
    assert (found.name, found.first_day, found.lag_days) == ("warmth", (FIRST - ORIGIN).days, 1)
    assert np.array_equal(found.values, [[5, 6, 7, 8], [0, 1, 2, 3], [10, 11, 12, 13]])


def test_one_row_serves_all_and_gaps_are_missing(configured, tmp_path):
    by_node(("84",)).drop("node")[[0, 1, 3]].write_parquet(tmp_path / "warmth.parquet")
    found = one(configured())
    assert np.array_equal(found.values, [[0, 1, np.nan, 3]], equal_nan=True)
    assert one(configured(), DAYS[1]).values.tolist() == [[0, 1]], "nothing of later days"


def test_instants_are_averaged_over_local_days(configured, tmp_path):
    """23:30 UTC is the next day in Paris."""
    times = [datetime(2016, 2, 1, 12, tzinfo=UTC), datetime(2016, 2, 1, 23, 30, tzinfo=UTC)]
    later = [datetime(2016, 2, 2, 12, tzinfo=UTC)]
    table = pl.DataFrame({"timestamp": times + later, "degrees": [1, 2, 4]})
    table.write_parquet(tmp_path / "warmth.parquet")
    found = one(configured(ENTRY + 'value = "degrees"\n'))
    assert found.values.tolist() == [[1, 3]]


CSV, PARQUET = "warmth.csv", "warmth.parquet"


def csv(*nodes, **columns):
    return lambda folder: by_node(*nodes, **columns).write_csv(folder / CSV)


def parquet(**columns):
    return lambda folder: by_node(**columns).write_parquet(folder / PARQUET)


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda folder: None, "or absolute; found nothing: correct the path"),
        (lambda folder: (folder / CSV).write_text("x,y\n1,2\n"), "a column date or timestamp"),
        (lambda folder: (folder / CSV).write_text("date,t\n"), "it has 'date', 't': name its columns by"),
        (lambda folder: (folder / CSV).write_bytes(b"\xff\x00,\n,,,"), "warmth"),
        (lambda folder: (folder / PARQUET).write_bytes(b"PAR1"), "must be a Parquet file of at most"),
        (csv(("xx",)), "such as '84', in column 'node'; it names none: "),
        (parquet(value=pl.lit(np.nan)), "have a number"),
        (parquet(value=pl.lit(-np.inf)), "have a number"),
        (parquet(value=pl.lit(1e300)), "have a number"),
        (csv(date=pl.date(2999, 1, 1)), "up to 2016-02-04"),
        (parquet(value=pl.lit("a")), "must be of numbers"),
        (csv(date=pl.lit("x")), "of dates or instants"),
        (lambda folder: os.mkfifo(folder / CSV), "must be a regular file"),
        (lambda folder: (folder / CSV).mkdir(), "cannot be read (Is a directory)"),
        (lambda folder: (folder / CSV).symlink_to(CSV), "found nothing"),
        (lambda folder: os.truncate((folder / CSV).open("w").name, 2**40), "at most 64 MiB: leave out"),
        (lambda folder: by_node(**{"x" * 999: 1}).drop("value").write_csv(folder / CSV), "'xxx"),
    ],
)
def test_what_cannot_be_used_is_gone_without_and_said(configured, tmp_path, write, why):
    write(tmp_path)
    said = gone_without(configured())
    assert why in said
    assert len(said) < 500


def test_no_other_file_is_read_than_the_one_whose_hash_is_named(configured, tmp_path):
    by_node().write_csv(tmp_path / "warmth.csv")
    settings = configured()
    assert one(settings).values.shape == (3, 4)
    with (tmp_path / "warmth.csv").open("a") as file:
        file.write("2016-02-04,84,1\n")
    assert "warmth.csv is not the file whose sha256 the configuration names" in gone_without(settings)


def test_of_a_wrong_file_without_a_line_of_names_no_reading_is_said(configured, tmp_path):
    (tmp_path / "warmth.csv").write_text("71.25,2016-02-01,84\n80.5,2016-02-02,84\n")
    said = gone_without(configured())
    assert "it has a first line that is no line of names" in said
    assert "71.25" not in said


def test_values_beyond_all_measure_and_days_of_other_centuries_cost_themselves_alone(configured, tmp_path):
    table = by_node(("84",)).drop("node")
    wrong = pl.DataFrame({"date": [date(1, 1, 1), date(9999, 12, 31), DAYS[1]], "value": [1.0, 2.0, 1e300]})
    pl.concat([table, table, wrong]).write_csv(tmp_path / "warmth.csv")
    found = one(configured())
    assert found.first_day == (FIRST - ORIGIN).days
    assert found.values.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[",
        b"[" * 10**6,
        b"1",
        b'{"first_day": 1e999, "values": [[1]]}',
        b'{"first_day": 5875, "values": [[1], [2]]}',
        b'{"first_day": 5875, "values": [[1], [2, 3], [4]]}',
        b'{"first_day": 5879, "values": [[1]]}',
        b'{"first_day": 5000, "values": [[1]]}',
        b'{"first_day": 5875, "values": []}',
        b'{"first_day": 5875.0, "values": [[1]]}',
        b'{"first_day": 5875, "values": [[%d]]}' % 10**400,
    ],
)
def test_nothing_that_a_process_says_is_taken_for_granted(configured, monkeypatch, said):
    monkeypatch.undo()
    monkeypatch.setattr(reading, "_answer_of_process", lambda asked: said)
    assert "the process that reads it ended over it" in gone_without(configured())
