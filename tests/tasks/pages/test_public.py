"""What the data users' page says is what the files hold, read past the code under test; and nothing else."""

import shutil
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from benchmarks.lay_out_published import NOISE_MW
from optstream import read_published
from optstream.catalogue import read_catalogue
from optstream.catalogue.places import open_place
from optstream.errors import PublicationError
from tasks.pages import public_facts, public_page
from tasks.pages.public import MOST_POINTS
from tasks.pages.summaries import Summaries
from tests.tasks.pages.conftest import FIRST, GONE, N_DAYS, facts_of


def rows_of(folder):
    """All rows, by polars' own reader of the folder."""
    return pl.read_parquet(folder / "data", hive_partitioning=True)


def test_nodes_are_the_hierarchy_root_first(forty_days):
    nodes = facts_of(forty_days).nodes
    assert (nodes[0].name, nodes[0].parent, nodes[0].level) == ("FR", None, 0)
    assert {node.name for node in nodes[1:]} == set(rows_of(forty_days)["node"].unique()) - {"FR"}
    assert {(node.parent, node.level) for node in nodes[1:]} == {("FR", 1)}


def test_daily_figures_are_those_of_the_files(forty_days):
    facts = facts_of(forty_days)
    found = (
        rows_of(forty_days)
        .group_by("date", "node")
        .agg(
            pl.col("load_mw").mean().alias("mean"),
            pl.col("load_mw").min().alias("least"),
            pl.col("load_mw").max().alias("most"),
            pl.col("load_mw_noise_se").mean().alias("noise"),
        )
    )
    assert found.height == (N_DAYS - 1) * 13
    for row in found.iter_rows(named=True):
        number = [node.name for node in facts.nodes].index(row["node"])
        column = (row["date"] - facts.daily.first).days
        for name in ("mean", "least", "most", "noise"):
            assert getattr(facts.daily, name)[number, column] == pytest.approx(row[name], rel=1e-12)
    assert np.isnan(facts.daily.mean[:, (GONE - FIRST).days]).all()


def test_the_noise_of_a_daily_mean_is_never_understated(forty_days):
    """The mean of the steps' deviations bounds the deviation of the mean, for any correlation."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        root = rng.normal(size=(6, 6))
        covariance = root @ root.T
        of_mean = np.sqrt(covariance.mean())
        assert of_mean <= np.sqrt(np.diag(covariance)).mean() + 1e-12
    assert facts_of(forty_days).daily.noise[0, 0] == pytest.approx(NOISE_MW * 12**0.5)


def test_the_last_days_are_drawn_step_by_step_with_a_gap_where_one_is_gone(forty_days):
    recent = facts_of(forty_days).recent
    last = FIRST + timedelta(days=N_DAYS - 1)
    assert (recent.first, recent.last) == (last - timedelta(days=27), last)
    assert GONE not in recent.days
    assert len(recent.days) == 27
    rows = rows_of(forty_days)
    for number, day in enumerate(recent.days):
        own = rows.filter((pl.col("date") == day) & (pl.col("node") == "FR")).sort("step")
        assert recent.values[number][0].tolist() == own["load_mw"].to_list()
        assert recent.noise[number][0].tolist() == own["load_mw_noise_se"].to_list()


def test_files_without_the_noise_column_have_no_band(without_noise):
    facts = facts_of(without_noise)
    assert not facts.has_noise
    page = public_page(facts).decode()
    assert 'class="band"' not in page
    assert "no band is drawn" in page
    assert "load_mw_noise_se" not in page


def test_a_copy_of_the_folder_alone_gives_the_same_page_wherever_and_whenever(forty_days, tmp_path):
    page = public_page(facts_of(forty_days))
    copy = tmp_path / "elsewhere"
    shutil.copytree(forty_days, copy)
    for path in copy.rglob("*"):
        path.touch()
    assert public_page(facts_of(copy)) == page
    assert str(tmp_path).encode() not in page


def test_what_is_kept_spares_reading_and_changes_no_byte(forty_days, tmp_path, monkeypatch):
    place = open_place(forty_days)
    catalogue = read_catalogue(place)
    facts, summaries = public_facts(place, catalogue, Summaries.empty())
    kept = tmp_path / "kept.parquet"
    summaries.write(kept)
    read = []
    real = type(place).read
    monkeypatch.setattr(
        type(place), "read", lambda self, name, largest: read.append(name) or real(self, name, largest)
    )
    again, same = public_facts(place, catalogue, Summaries.read(kept))
    assert public_page(again) == public_page(facts)
    assert same.rows.equals(summaries.rows)
    assert {name for name in read if name.startswith("data/")} == {
        entry.file for entry in catalogue.entries[-28:] if not entry.withdrawn
    }


@pytest.mark.parametrize("spoil", [b"", b"PAR1 no", None])
def test_what_is_kept_and_broken_is_made_anew(forty_days, tmp_path, spoil):
    kept = tmp_path / "kept.parquet"
    if spoil is None:
        pl.DataFrame({"other": [1]}).write_parquet(kept)
    else:
        kept.write_bytes(spoil)
    assert Summaries.read(kept).rows.is_empty()
    assert Summaries.read(tmp_path / "none").rows.is_empty()


def test_a_file_that_is_not_the_published_one_is_not_drawn(forty_days, tmp_path):
    copy = tmp_path / "published"
    shutil.copytree(forty_days, copy)
    entry = read_catalogue(copy).entries[3]
    (copy / entry.file).write_bytes((copy / read_catalogue(copy).entries[4].file).read_bytes())
    with pytest.raises(PublicationError, match="differs from its hash"):
        facts_of(copy)
    (copy / entry.file).unlink()
    with pytest.raises(PublicationError, match="is missing"):
        facts_of(copy)


def test_of_very_many_nodes_and_days_only_some_are_drawn(forty_days, monkeypatch):
    monkeypatch.setattr("tasks.pages.public.MOST_POINTS", 3 * N_DAYS)
    facts = facts_of(forty_days)
    assert facts.n_drawn == 3
    assert len(facts.nodes) == 13
    assert "The first 3 of 13 nodes are drawn" in public_page(facts).decode()
    assert MOST_POINTS >= 13 * 3650


def test_the_column_reader_reads_what_the_other_reader_reads(without_noise):
    """`read_published` is strict about columns; both see the same values."""
    rows = read_published(without_noise)
    facts = facts_of(without_noise)
    mean = rows.filter((pl.col("node") == "FR") & (pl.col("date") == date(2016, 1, 1)))["load_mw"].mean()
    assert facts.daily.mean[0, 0] == pytest.approx(mean, rel=1e-12)
