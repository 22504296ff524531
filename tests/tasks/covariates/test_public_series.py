"""Covariates' files: any of the layouts, by node; private ones are refused, unusable ones gone without."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from optstream.errors import ConfigurationError, ParameterError
from optstream.stream.calendar import ORIGIN
from tasks.config import load_settings
from tasks.covariates.public_series import read_covariates
from tests.tasks.two_regions import CONFIGURATION

FIRST = date(2016, 2, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(4)]
INFORMED = CONFIGURATION.replace(
    "OptStream", 'HistoryInformed"\nscale = 5000.0\nn_blocks = 6\nblock_length = 2\n#'
).replace('[sampling]\nmethod = "equally_spaced"\nn_samples = 10\n', "")
ENTRY = '[[covariates]]\nname = "warmth"\npath = "warmth"\nsource = "the weather service"\n'


@pytest.fixture
def configured(tmp_path):
    """Write a configuration with covariates; return its settings."""

    def _configured(text=ENTRY, before=INFORMED):
        (tmp_path / "optstream.toml").write_text(before + text)
        return load_settings(tmp_path / "optstream.toml")

    return _configured


def one(settings):
    (found,), unread = read_covariates(settings)
    assert unread == ()
    return found


def by_node(nodes=("84", "11"), **columns):
    rows = [
        (day, node, 10.0 * at + number) for at, node in enumerate(nodes) for number, day in enumerate(DAYS)
    ]
    return pl.DataFrame(rows, schema=["date", "node", "value"], orient="row").with_columns(**columns)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_row_for_each_node_the_nodes_above_as_their_mean(configured, tmp_path, ending):
    table = by_node()
    table.write_parquet(tmp_path / "warmth.parquet")
    table.write_csv(tmp_path / "warmth.csv")
    found = one(configured(ENTRY.replace('"warmth"\nsource', f'"warmth.{ending}"\nsource')))
    assert (found.name, found.first_day, found.lag_days) == ("warmth", (FIRST - ORIGIN).days, 1)
    assert np.array_equal(found.values, [[5, 6, 7, 8], [0, 1, 2, 3], [10, 11, 12, 13]])


def test_one_row_serves_all_and_gaps_are_missing(configured, tmp_path):
    (tmp_path / "warmth").mkdir()
    by_node(("84",)).drop("node")[[0, 1, 3]].write_parquet(tmp_path / "warmth/a.parquet")
    found = one(configured())
    assert np.array_equal(found.values, [[0, 1, np.nan, 3]], equal_nan=True)


def test_of_a_folder_a_later_file_corrects_an_earlier_one(configured, tmp_path):
    (tmp_path / "warmth").mkdir()
    by_node().write_parquet(tmp_path / "warmth/2016-02-04.parquet")
    by_node(("84",))[:1].with_columns(value=pl.lit(99.0)).write_csv(tmp_path / "warmth/2016-02-05.csv")
    assert one(configured()).values[:, 0].tolist() == [54.5, 99.0, 10.0]


def test_instants_are_averaged_over_local_days(configured, tmp_path):
    """23:30 UTC is the next day in Paris."""
    times = [datetime(2016, 2, 1, 12, tzinfo=UTC), datetime(2016, 2, 1, 23, 30, tzinfo=UTC)]
    later = [datetime(2016, 2, 2, 12, tzinfo=UTC)]
    table = pl.DataFrame({"timestamp": times + later, "degrees": [1, 2, 4]})
    table.write_parquet(tmp_path / "warmth")
    (tmp_path / "warmth").rename(tmp_path / "w.parquet")
    found = one(configured(ENTRY.replace('path = "warmth"', 'path = "w.parquet"\nvalue = "degrees"')))
    assert found.values.tolist() == [[1, 3]]


def test_it_applies_below_the_named_nodes_alone(configured, tmp_path):
    (tmp_path / "warmth").mkdir()
    by_node(("84",)).drop("node").write_parquet(tmp_path / "warmth/a.parquet")
    found = one(configured(ENTRY + 'nodes = ["11"]\nlevel = 1\n'))
    assert np.isfinite(found.values).all(axis=1).tolist() == [False, False, True]
    assert found.level == 1


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda folder: None, "warmth must be a .parquet or .csv file, or a folder of them"),
        (lambda folder: (folder / "a.csv").write_text("x,y\n1,2\n"), "a column date or timestamp"),
        (lambda folder: (folder / "a.parquet").write_bytes(b"PAR1"), "cannot be read as a table"),
        (lambda folder: by_node(("xx",)).write_csv(folder / "a.csv"), "must name nodes of the hierarchy"),
        (lambda folder: by_node(value=pl.lit(np.nan)).write_parquet(folder / "a.parquet"), "have a number"),
        (lambda folder: by_node(value=pl.lit("a")).write_parquet(folder / "a.parquet"), "must be of numbers"),
        (lambda folder: by_node(date=pl.lit("x")).write_csv(folder / "a.csv"), "of dates or instants"),
    ],
)
def test_what_cannot_be_used_is_gone_without_and_said(configured, tmp_path, write, why):
    (tmp_path / "warmth").mkdir()
    write(tmp_path / "warmth")
    read, (unread,) = read_covariates(configured())
    assert read == ()
    assert unread.why.startswith("covariate warmth: ")
    assert why in unread.why


@pytest.mark.parametrize("place", ["dumps", "dumps/region=84", "trusted/x.csv"])
def test_a_private_place_is_refused(configured, place):
    with pytest.raises(ConfigurationError, match=r"1: path must not lie in \w+\.folder, which is private"):
        configured(ENTRY.replace('path = "warmth"', f'path = "{place}"'))


def test_a_link_to_a_private_file_is_refused_when_it_is_read(configured, tmp_path):
    (tmp_path / "warmth").mkdir()
    (tmp_path / "dumps").mkdir()
    by_node().write_csv(tmp_path / "dumps/a.csv")
    (tmp_path / "warmth/a.csv").symlink_to(tmp_path / "dumps/a.csv")
    with pytest.raises(ParameterError, match=r"lies in input\.folder, which is private"):
        read_covariates(configured())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("covariates = 1\n", "covariates must be a list of at most 8 tables, each headed [[covariates]]"),
        (ENTRY.replace("source", "origin"), "[[covariates]] 1: source is missing; it must be a text of 1 to"),
        (ENTRY.replace("source", "origin"), "[[covariates]] 1: origin is not a known key"),
        (ENTRY + "publication_lag_days = -1\n", "publication_lag_days must be after how many days"),
        (ENTRY + ENTRY, "[[covariates]] 2: name must not be that of another covariate; got 'warmth'"),
        (ENTRY + 'nodes = ["99"]\n', "[[covariates]] 1: nodes must be of the hierarchy; got '99'"),
        (ENTRY + "level = 2\n", "[[covariates]] 1: level must be in [0, 1]; got 2"),
    ],
)
def test_a_wrong_key_is_named_with_its_range(configured, text, problem):
    ahead = text + INFORMED if text.startswith("covariates") else INFORMED + text
    with pytest.raises(ConfigurationError) as caught:
        configured("", ahead)
    assert problem in str(caught.value)


def test_other_mechanisms_take_none(configured):
    with pytest.raises(ConfigurationError, match=r'\[\[covariates\]\] is for mechanism\.name "HistoryInf'):
        configured(before=CONFIGURATION)


def test_where_a_file_lies_shapes_no_release_and_what_it_is_does(configured):
    hashes = {
        configured(text).configuration_hash
        for text in (ENTRY, ENTRY.replace('path = "warmth"', 'path = "elsewhere"'))
    }
    assert len(hashes) == 1
    assert configured("").configuration_hash not in hashes
    assert configured(ENTRY + "publication_lag_days = 2\n").configuration_hash not in hashes
