"""The data users' page, its calendar and its code say what the files hold, and nothing else."""

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from html import unescape

import polars as pl
import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.about import About, NodeFacts
from optstream.catalogue.backends import open_storage
from optstream.errors import PublicationError
from optstream.stream import days_from
from tasks.monitor.days import State
from tasks.pages.calendar import marks_of_facts
from tasks.pages.public import public_page, write_public_page
from tasks.pages.published import NO_SUMMARIES, Node, public_facts, read_summaries
from tasks.pages.render import day_in_words, seconds
from tests.tasks.pages.conftest import GONE, N_DAYS, OLDEST, facts_of, lay_out_published, statement_of


def rows_of(folder):
    return pl.read_parquet(folder / "data", hive_partitioning=True)


def test_daily_figures_are_those_of_the_files(many_days):
    """The mean of the steps' deviations bounds the deviation of the mean, for any correlation."""
    place = open_storage(many_days)
    facts, kept = public_facts(place, read_catalogue(place), NO_SUMMARIES)
    means = rows_of(many_days).group_by("date", "node").agg(pl.col("load_mw", "load_mw_se").mean())
    assert means.height == (N_DAYS - 1) * len(facts.nodes)
    assert means["load_mw_se"].null_count() == means.height
    drawn = {(node, at): (value, error) for node, at, value, error in facts.daily.iter_rows()}
    for day, node, mean, error in means.iter_rows():
        assert drawn.pop((node, seconds(day))) == (pytest.approx(mean, rel=1e-12), error)
    assert drawn == {(node.name, seconds(GONE)): (None, None) for node in facts.nodes}
    noise = 300 * 3**0.5  # of three leaves
    assert kept.filter(pl.col("node") == "FR")["noise"][0] == pytest.approx(noise)


def test_what_is_kept_spares_reading_and_changes_no_byte(many_days, tmp_path, monkeypatch):
    place = open_storage(many_days)
    catalogue = read_catalogue(place)
    facts, summaries = public_facts(place, catalogue, NO_SUMMARIES)
    kept = tmp_path / "kept.parquet"
    summaries.write_parquet(kept)
    read = []
    real = type(place).read
    monkeypatch.setattr(type(place), "read", lambda self, name: read.append(name) or real(self, name))
    again, same = public_facts(place, catalogue, read_summaries(kept))
    assert public_page(again) == public_page(facts)
    assert same.equals(summaries)
    shown = {entry.file for entry in catalogue.entries[-28:] if not entry.withdrawn}
    assert {name for name in read if name.startswith("data/")} == shown


@pytest.mark.parametrize("number", [3, -1])
def test_a_file_that_is_not_the_published_one_is_a_gap_and_named(many_days, tmp_path, number):
    copy = tmp_path / "published"
    shutil.copytree(many_days, copy)
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
        assert {mark.day for mark in marks_of_facts(facts) if mark.state is State.LOST} == {entry.period}
        (copy / entry.file).unlink(missing_ok=True)


def test_the_epsilon_is_what_any_window_may_lose_and_not_the_newest_plan(tmp_path):
    days, plan = [OLDEST, OLDEST + timedelta(days=1)], Fraction(9, 10)
    lay_out_published(tmp_path / "one", [statement_of(OLDEST, epsilon_plan=plan)])
    facts = facts_of(tmp_path / "one")
    assert (facts.statement.epsilon_plan, facts.epsilon) == (plan, 1)
    assert b"factor e<sup>1</sup>" in public_page(facts)
    of_two = [statement_of(day, own, epsilon_plan=plan) for day, own in zip(days, ("3/2", "1"), strict=True)]
    lay_out_published(tmp_path / "two", of_two)
    assert facts_of(tmp_path / "two").epsilon == Fraction(3, 2)


@pytest.mark.parametrize("tool", ["polars", "pandas"])
@pytest.mark.slow
def test_the_code_of_a_tool_gives_daily_means_and_reads_no_page(without_noise, tool, monkeypatch, capfd):
    write_public_page(without_noise)
    monkeypatch.chdir(without_noise)
    page = (without_noise / "index.html").read_text()
    code = unescape(re.search(rf'"read-{tool}"><code class="[^"]*">(.*?)</code>', page, re.DOTALL)[1])
    *lines, last = code.splitlines()
    scope = {}
    exec("\n".join([*lines, f"found = {last}"]), scope)  # as a reader would
    assert capfd.readouterr() == ("", "")
    means = rows_of(without_noise).filter(pl.col("node") == "FR").group_by("date").agg(pl.mean("load_mw"))
    pairs = scope["found"].rows() if tool == "polars" else scope["found"].items()
    of_days = {str(day)[:10]: mean for day, mean in pairs}
    assert of_days == pytest.approx({str(day): mean for day, mean in means.rows()})
    assert pl.read_parquet(without_noise / "**/*.parquet").height == rows_of(without_noise).height


DAY = date(2015, 12, 30)


def test_readers_know_published_withdrawn_and_absent_and_no_day_that_the_zone_skipped(many_days):
    facts = facts_of(many_days)
    marks = {mark.day: mark.state.value for mark in marks_of_facts(facts)}
    days = days_from(OLDEST, OLDEST + timedelta(days=N_DAYS - 1))
    assert marks == dict.fromkeys(days, "published") | {GONE: "withdrawn"}
    ends = zip(facts.catalogue.entries, (date(2011, 12, 29), date(2012, 1, 1)), strict=False)
    entries = tuple(entry.changed(period=day) for entry, day in ends)
    statement = facts.statement.changed(time_zone="Pacific/Apia")
    apia = replace(facts, catalogue=facts.catalogue.changed(periods=entries), statement=statement)
    marks = {mark.day.day: mark.state.value for mark in marks_of_facts(apia)}
    assert marks == {29: "published", 31: "absent", 1: "published"}


ONE, TWO = date(2016, 6, 1), date(2016, 6, 2)


def page_of(installation):
    return (installation.folder / "published/index.html").read_bytes()


def report_of(installation):
    return installation.settings.report_file.read_text()


@pytest.fixture
def written(installation):
    installation.released(ONE, TWO)
    assert installation.write_pages() == ()
    return installation


def test_the_public_page_is_a_function_of_the_published_folder_alone(written, tmp_path_factory):
    copy = tmp_path_factory.mktemp("a reader's") / "copy"
    shutil.copytree(written.folder / "published", copy)
    (copy / "index.html").unlink()
    written.settings.trusted_folder.rename(written.folder / "gone")
    for into in (None, written.folder / "page.html"):
        write_public_page(copy, into)
        assert (into or copy / "index.html").read_bytes() == page_of(written)
    assert f"{datetime.now(UTC):%Y-%m-%d}" not in page_of(written).decode()


def test_what_only_operators_know_is_on_their_page_alone_and_readings_on_none(written):
    written.configure("[trusted]", "[watch]\nfirst_day = 2016-05-31\n[trusted]")
    written.write_pages()
    report, public = report_of(written), page_of(written).decode()
    for said in ("Charged to the worst window", "31 May 2016", "late", "alarm", "Charged lately"):
        assert said in report, said
    for hidden in ('"s-bad"', "Charged", "alarm", "31 May 2016", "trusted/", str(written.folder), "reserved"):
        assert hidden not in public, hidden
    assert oct(written.settings.report_file.stat().st_mode & 0o777) == "0o600"
    assert oct(written.settings.report_folder.stat().st_mode & 0o777) == "0o700"
    # no reading of the dumps is on either, as a curve would have it; published ones are found
    dumps = pl.read_parquet(written.folder / "dumps/region=84/date=2016-06-01/*.parquet")["load_mw"]

    def figures(values):
        return {f"{value:.6g}" for value in (values.mean(), *values)}

    by_node = rows_of(written.folder / "published").group_by("date", "node")
    published = set().union(*(figures(own["load_mw"]) for _, own in by_node))
    found = {f"{float(number):.6g}" for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", report + public)}
    assert published <= found
    assert not (figures(dumps) - published) & found


def test_a_withdrawn_day_leaves_both_pages(written):
    assert b"1 Jun 2016 to 2 Jun 2016" in page_of(written)
    written.withdraw(TWO)
    assert b"being rebuilt" in page_of(written)
    assert not (written.folder / "published/curves").exists()
    assert any("optstream report" in line for line in written.problems())
    written.write_pages()
    assert b"1 Jun 2016 to 1 Jun 2016" in page_of(written)
    assert b"a wrong meter" not in page_of(written), "why is the ledger's to know"
    assert "a wrong meter" in report_of(written)
    assert written.problems() == []


FORGED = "2199-12-31"


@pytest.mark.parametrize(
    ("old", "new", "problem", "alarm"),
    [
        (None, None, "not JSON", "unlisted"),
        (str(ONE), "9999-12-31", "catalogue.json .*has a period outside the years 1970 to 2199", ""),
        (str(ONE), FORGED, f"catalogue.json lists {FORGED}, which is still to come", ""),
    ],
)
def test_a_wrong_catalogue_stops_the_public_page_and_not_the_operators(written, old, new, problem, alarm):
    file, before = written.folder / "published/catalogue.json", page_of(written)
    file.write_text("{" if old is None else file.read_text().replace(old, new))
    assert re.search(problem, written.write_pages())
    assert page_of(written) == before
    assert alarm in report_of(written)
    if new != FORGED:
        with pytest.raises(PublicationError):
            read_catalogue(written.folder / "published")


def test_what_the_suppliers_rounding_takes_of_alpha_is_not_said_to_be_covered(many_days):
    facts = facts_of(many_days)
    alpha = facts.statement.model.alpha
    rounded = replace(facts, statement=facts.statement.changed(supplier_rounding=alpha / 4))
    assert f"changes of each by at most {float(alpha) * 3 / 4:g}" in public_page(rounded).decode()


HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def test_hostile_names_are_text(many_days):
    """Codes, too, which stand in the code of readers."""
    facts = facts_of(many_days)
    nodes = tuple(Node(HOSTILE + node.name, node.parent and HOSTILE, node.level) for node in facts.nodes)
    named = {node.name: NodeFacts(name="curves/" + "0" * 64 + ".bin") for node in nodes}
    about = About(publisher=HOSTILE, licence=HOSTILE, nodes=named)
    hostile = replace(facts, nodes=nodes, about=about, catalogue=facts.catalogue.changed(stream=HOSTILE))
    page, plain = public_page(hostile).decode(), public_page(facts).decode()
    assert HOSTILE in unescape(page)
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == plain.count("<script") == 2
    data = json.loads(page.partition('application/json">')[2].partition("</script>")[0])
    assert data["nodes"][0] == f"{about.nodes[nodes[0].name].name} ({nodes[0].name})"
    assert re.findall("https?://[^ ]+", page) == ["https://github.com/leeoniya/uPlot"], "whose code it is"
