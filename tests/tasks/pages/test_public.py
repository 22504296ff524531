"""What the data users' page says is what the files hold, read past the code under test; and nothing else."""

import json
import shutil
import subprocess
import sys
from datetime import timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.privacy import PrivacyModel
from tasks.pages.calendar import marks_of_facts
from tasks.pages.public import public_page, snippets
from tasks.pages.published import NO_SUMMARIES, public_facts, read_summaries
from tasks.pages.render import day_in_words
from tests.tasks.pages.conftest import FIRST, GONE, N_DAYS, facts_of
from tests.tasks.pages.published_days import NOISE_MW


def rows_of(folder):
    """All rows, by polars' own reader of the folder."""
    return pl.read_parquet(folder / "data", hive_partitioning=True)


def test_daily_figures_are_those_of_the_files(forty_days):
    facts = facts_of(forty_days)
    found = (
        rows_of(forty_days)
        .group_by("date", "node")
        .agg(pl.col("load_mw").mean().alias("mean"), pl.col("load_mw_se").mean().alias("error"))
    )
    assert found.height == (N_DAYS - 1) * 13
    for row in found.iter_rows(named=True):
        number = [node.name for node in facts.nodes].index(row["node"])
        column = (row["date"] - facts.daily.first).days
        assert facts.daily.mean[number, column] == pytest.approx(row["mean"], rel=1e-12)
        assert row["error"] is None
        assert np.isnan(facts.daily.error[number, column])
    assert np.isnan(facts.daily.mean[:, (GONE - FIRST).days]).all()


def test_the_error_of_a_daily_mean_is_never_understated(forty_days):
    """The mean of the steps' deviations bounds the deviation of the mean, for any correlation."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        root = rng.normal(size=(6, 6))
        covariance = root @ root.T
        of_mean = np.sqrt(covariance.mean())
        assert of_mean <= np.sqrt(np.diag(covariance)).mean() + 1e-12
    place = open_storage(forty_days)
    _, kept = public_facts(place, read_catalogue(place), NO_SUMMARIES)
    assert kept.filter(pl.col("node") == "FR")["noise"][0] == pytest.approx(NOISE_MW * 12**0.5)


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


def test_a_copy_of_the_folder_alone_gives_the_same_page_wherever_and_whenever(forty_days, tmp_path):
    page = public_page(facts_of(forty_days))
    copy = tmp_path / "elsewhere"
    shutil.copytree(forty_days, copy)
    for path in copy.rglob("*"):
        path.touch()
    assert public_page(facts_of(copy)) == page
    assert str(tmp_path).encode() not in page


def test_what_is_kept_spares_reading_and_changes_no_byte(forty_days, tmp_path, monkeypatch):
    place = open_storage(forty_days)
    catalogue = read_catalogue(place)
    facts, summaries = public_facts(place, catalogue, NO_SUMMARIES)
    kept = tmp_path / "kept.parquet"
    summaries.write_parquet(kept)
    read = []
    real = type(place).read
    monkeypatch.setattr(
        type(place), "read", lambda self, name, largest: read.append(name) or real(self, name, largest)
    )
    again, same = public_facts(place, catalogue, read_summaries(kept))
    assert public_page(again) == public_page(facts)
    assert same.equals(summaries)
    assert {name for name in read if name.startswith("data/")} == {
        entry.file for entry in catalogue.entries[-28:] if not entry.withdrawn
    }


@pytest.mark.parametrize("number", [3, 20, -1])
def test_a_file_that_is_not_the_published_one_is_a_gap_and_named(forty_days, tmp_path, number):
    """One of the first days, one of the last 28, the newest: the other days are shown as before."""
    copy = tmp_path / "published"
    shutil.copytree(forty_days, copy)
    before, entry = facts_of(copy), read_catalogue(copy).entries[number]
    column = (entry.period - FIRST).days
    others = [other for other in range(N_DAYS) if other != column]
    (copy / entry.file).write_bytes((copy / read_catalogue(copy).entries[4].file).read_bytes())
    for what in ("damaged", "missing"):
        facts = facts_of(copy)
        assert facts.lost == {entry.period: what}
        assert np.isnan(facts.daily.mean[:, column]).all()
        assert np.array_equal(facts.daily.mean[:, others], before.daily.mean[:, others], equal_nan=True)
        assert entry.period not in facts.recent.days
        assert set(before.recent.days) - {entry.period} == set(facts.recent.days)
        page = public_page(facts).decode()
        assert f"{day_in_words(entry.period)} ({what})" in page
        assert "The file of 1 published day cannot be read" in page
        assert {mark.day for mark in marks_of_facts(facts) if mark.state == "lost"} == {entry.period}
        (copy / entry.file).unlink(missing_ok=True)


def test_the_epsilon_is_what_any_window_may_lose_and_not_the_newest_plan(tmp_path, monkeypatch):
    """A plan that leaves a tenth to restatements, and an older guarantee that gave more."""
    from tests.tasks.pages import published_days as module

    real, made = module.ReleaseStatement, []

    def stated(**fields):
        made.append(fields["period"])
        guarantee = {1: "1", 2: "3/2", 3: "1"}[len(made)]
        return real(**{**fields, "epsilon_plan": Fraction(9, 10), "model": PrivacyModel(guarantee, 48, 10)})

    monkeypatch.setattr(module, "ReleaseStatement", stated)
    module.lay_out_published(tmp_path / "one", FIRST, 1)
    facts = facts_of(tmp_path / "one")
    assert facts.statement.epsilon_plan == Fraction(9, 10)
    assert facts.epsilon == 1
    assert b"factor e<sup>1</sup>" in public_page(facts)
    module.lay_out_published(tmp_path / "two", FIRST, 2)
    assert facts_of(tmp_path / "two").epsilon == Fraction(3, 2)


RUN = """
import json, sys
lines = sys.stdin.read().splitlines()
scope = {}
exec("\\n".join(lines[:-1]), scope)
found = eval(lines[-1], scope)
pairs = found.rows() if hasattr(found, "rows") else list(found.items())
print(json.dumps({str(day)[:10]: mean for day, mean in pairs}))
"""


@pytest.fixture
def expected(without_noise):
    rows = pl.read_parquet(without_noise / "data", hive_partitioning=True).filter(pl.col("node") == "FR")
    return {str(day): mean for day, mean in rows.group_by("date").agg(pl.col("load_mw").mean()).rows()}


def code_of(tool):
    return next(one.code for one in snippets("load_mw", "FR") if one.tool == tool)


@pytest.mark.parametrize("tool", ["polars", "pandas"])
@pytest.mark.slow
def test_python(without_noise, expected, tool):
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=code_of(tool), cwd=without_noise, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert json.loads(done.stdout) == pytest.approx(expected)


def test_the_dataset_holds_no_page(without_noise):
    from tasks.pages.public import write_public_page

    before = pl.read_parquet(without_noise / "data").height
    write_public_page(without_noise)
    assert (without_noise / "index.html").is_file()
    assert pl.read_parquet(without_noise / "data").height == before
    assert pl.read_parquet(without_noise / "**/*.parquet").height == before
