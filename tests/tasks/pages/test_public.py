"""The data users' page, its calendar and its snippets say what the files hold, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from html import unescape

import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.backends import open_storage
from optstream.privacy import PrivacyModel
from optstream.stream import days_from
from tasks.monitor.days import DayState, State
from tasks.pages.calendar import (
    Mark,
    calendar,
    marks_of_days,
    marks_of_facts,
    stretches,
)
from tasks.pages.public import public_page
from tasks.pages.published import NO_SUMMARIES, public_facts, read_summaries
from tasks.pages.render import day_in_words, seconds
from tests.tasks.pages.conftest import FIRST, GONE, N_DAYS, facts_of
from tests.tasks.pages.published_days import NOISE_MW


def rows_of(folder):
    """All rows, by polars' own reader of the folder."""
    return pl.read_parquet(folder / "data", hive_partitioning=True)


def test_daily_figures_are_those_of_the_files(forty_days):
    facts = facts_of(forty_days)
    means = rows_of(forty_days).group_by("date", "node").agg(pl.col("load_mw", "load_mw_se").mean())
    assert means.height == (N_DAYS - 1) * 13
    assert means["load_mw_se"].null_count() == means.height
    drawn = {(node, at): (value, error) for node, at, value, error in facts.daily.iter_rows()}
    for day, node, mean, error in means.iter_rows():
        assert drawn.pop((node, seconds(day))) == (pytest.approx(mean, rel=1e-12), error)
    assert drawn == {(node.name, seconds(GONE)): (None, None) for node in facts.nodes}


def test_the_error_of_a_daily_mean_is_never_understated(forty_days):
    """The mean of the steps' deviations bounds the deviation of the mean, for any correlation."""
    place = open_storage(forty_days)
    _, kept = public_facts(place, read_catalogue(place), NO_SUMMARIES)
    assert kept.filter(pl.col("node") == "FR")["noise"][0] == pytest.approx(NOISE_MW * 12**0.5)


def test_the_last_days_are_drawn_step_by_step_with_a_gap_where_one_is_gone(forty_days):
    last = FIRST + timedelta(days=N_DAYS - 1)
    root = facts_of(forty_days).recent.filter(pl.col("node") == "FR")
    found = dict(root.select("at", "value").iter_rows())
    rows = rows_of(forty_days).filter(pl.col("node") == "FR")
    for day in days_from(last - timedelta(days=27), last):
        own = rows.filter(pl.col("date") == day).sort("step")["load_mw"].to_list() or [None]
        assert [found.pop(seconds(day) + 1800 * step) for step in range(len(own))] == own
    assert found == {}


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
    of_day = pl.col("at") // 86_400 == seconds(entry.period) // 86_400
    (copy / entry.file).write_bytes((copy / read_catalogue(copy).entries[4].file).read_bytes())
    for what in ("damaged", "missing"):
        facts = facts_of(copy)
        assert facts.lost == {entry.period: what}
        for name in ("daily", "recent"):
            shown, whole = getattr(facts, name), getattr(before, name)
            assert shown.filter(of_day)["value"].drop_nulls().is_empty()
            assert shown.filter(~of_day).equals(whole.filter(~of_day))
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


def code_of(tool, folder):
    page = public_page(facts_of(folder)).decode()
    return unescape(re.search(rf'"read-{tool}"><code class="[^"]*">(.*?)</code>', page, re.DOTALL)[1])


@pytest.mark.parametrize("tool", ["polars", "pandas"])
@pytest.mark.slow
def test_python(without_noise, expected, tool):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=code_of(tool, without_noise),
        cwd=without_noise,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == pytest.approx(expected)


def test_the_dataset_holds_no_page(without_noise):
    from tasks.pages.public import write_public_page

    before = pl.read_parquet(without_noise / "data").height
    write_public_page(without_noise)
    assert (without_noise / "index.html").is_file()
    assert pl.read_parquet(without_noise / "data").height == before
    assert pl.read_parquet(without_noise / "**/*.parquet").height == before


DAY = date(2015, 12, 30)


def test_the_last_sixty_days_stand_in_their_months_and_columns_and_older_ones_when_asked():
    marks = [Mark(DAY + timedelta(days=number), State.PUBLISHED) for number in range(70)]
    for all_days in (False, True):
        shown = calendar(marks, all_days=all_days)
        assert shown["n_older"] == 10
        found = {"months": marks[10:], "older": marks[:10] if all_days else []}
        for name, own in found.items():
            rows = [row for _, row in shown[name]]
            assert sorted(mark.day for row in rows for mark in row if mark) == [mark.day for mark in own]
            for row in rows:
                assert all(mark is None or mark.day.day == n for n, mark in enumerate(row, start=1))
    assert [name for name, _ in shown["months"]] == ["Mar 2016", "Feb 2016", "Jan 2016"]


def test_readers_know_published_restated_withdrawn_and_absent(forty_days):
    marks = {mark.day: mark.state for mark in marks_of_facts(facts_of(forty_days))}
    assert len(marks) == N_DAYS
    assert marks[GONE] == "withdrawn"
    assert sorted(set(marks.values())) == ["published", "withdrawn"]
    assert marks[FIRST] == "published"


def test_a_day_that_the_zone_skipped_is_none_that_is_absent(forty_days):
    facts = facts_of(forty_days)
    ends = zip(facts.catalogue.entries, (date(2011, 12, 29), date(2012, 1, 1)), strict=False)
    entries = tuple(entry.changed(period=day) for entry, day in ends)
    facts = replace(
        facts,
        catalogue=facts.catalogue.changed(periods=entries),
        statement=facts.statement.changed(time_zone="Pacific/Apia"),
    )
    marks = {mark.day.day: mark.state for mark in marks_of_facts(facts)}
    assert marks == {29: "published", 31: "absent", 1: "published"}


def test_a_day_that_waits_says_for_what_and_which_nodes_it_leaves_unknown():
    late = DayState(day=DAY, state=State.LATE, note=f"{DAY}: no dump", waiting_for=("84",), levels=(1, 1))
    (mark,) = marks_of_days([late], {"84": "North (84)"}.get)
    assert mark.words == (
        "30 Dec 2015: late, North (84); its day: no dump; unknown nodes: 1 of level 0, 1 of level 1"
    )


def test_neighbouring_days_that_are_alike_are_one_line_the_newest_first():
    marks = [Mark(DAY + timedelta(days=number), State.PUBLISHED) for number in range(8)]
    for number, state in ((2, State.LATE), (3, State.LATE), (5, State.LATE), (6, State.VOID)):
        marks[number] = Mark(marks[number].day, state)
    found = [(when, mark.state, n_days) for when, mark, n_days in stretches(marks)]
    assert found == [
        ("5 Jan 2016", "void", 1),
        ("4 Jan 2016", "late", 1),
        ("1 Jan 2016 to 2 Jan 2016", "late", 2),
    ]
    assert [mark.state for mark in calendar(marks, all_days=False)["legend"]] == ["published", "void", "late"]
