"""Some nodes and days of a published folder."""

from datetime import date, timedelta

import polars as pl
import pytest

from optstream.catalogue import read_published
from optstream.catalogue.about import NodeFacts
from optstream.catalogue.backends import open_storage
from optstream.catalogue.read import catalogue_reader, rows_of, with_names
from optstream.errors import ParameterError
from tests.optstream.catalogue.folders import take_back

DAYS = [date(2016, 2, 1) + timedelta(days=number) for number in range(3)]


@pytest.fixture
def folder(tmp_path, put_all):
    """Three published days."""
    put_all(tmp_path / "published", *DAYS)
    return tmp_path / "published"


def selected(folder, *arguments, **options):
    storage = open_storage(folder)
    return rows_of(storage, catalogue_reader(storage, None)(), *arguments, **options)


def test_a_selection_is_the_published_rows_and_reads_no_other_day(folder):
    (folder / f"data/date={DAYS[0]}").rename(folder / "gone")
    chosen = selected(folder, ["84"], DAYS[1])
    (folder / "gone").rename(folder / f"data/date={DAYS[0]}")
    published = read_published(folder)
    assert chosen.equals(published.filter((pl.col("node") == "84") & (pl.col("date") > DAYS[0])))
    assert selected(folder).equals(published)


def test_what_is_not_there_is_said(folder):
    with pytest.raises(ParameterError, match="has a node '99'"):
        selected(folder, ["84", "99"])
    take_back(folder, DAYS[2])
    with pytest.raises(ParameterError, match="no day of this span is published"):
        selected(folder, first=DAYS[2])


def test_names_stand_beside_their_nodes(folder):
    rows = selected(folder, first=DAYS[2])
    named = with_names(
        rows, {"84": NodeFacts(name="Auvergne"), "FR": NodeFacts(latitude=46.0, longitude=2.0)}
    )
    assert named.columns[named.columns.index("node") + 1] == "name"
    assert dict(named.select("node", "name").unique().iter_rows()) == {
        node: "Auvergne" if node == "84" else None for node in rows["node"].unique()
    }
    assert with_names(rows, {"FR": NodeFacts(latitude=46.0, longitude=2.0)}).equals(rows)
    assert with_names(named, {"84": NodeFacts(name="another")}).equals(named)
