"""Readings that were clamped, absent or doubled: shares by region, shown to operators and alarmed."""

from datetime import date, timedelta

import polars as pl
import pytest

from flows.cli.output import Terminal
from flows.cli.read import show_view
from tasks.config import load_settings
from tasks.ingest.arrivals import EVERY
from tasks.ingest.validate import validate
from tasks.monitor.alarms import Kind, Severity
from tasks.monitor.facts import Suspect, loudest, read_verdicts
from tests.tasks.conftest import DAY, NOW
from tests.tasks.two_regions import in_another_unit

NOTHING = Suspect(0.0, 0.0, 0.0)


def shares(stream, day):
    return read_verdicts(stream.settings, {day}).suspect.get(day, {})


def judged(stream, now=NOW):
    (verdict,) = validate(stream.settings, stream.ingest(), now=now)
    return verdict


@pytest.mark.slow
def test_the_newest_verdict_of_the_day_counts_and_others_do_not(small):
    stream = small()
    assert shares(stream, DAY) == {}
    for later, load in ((1, 1e9), (2, 40.0)):
        stream.fill(load)
        judged(stream, NOW + timedelta(minutes=later))
    assert shares(stream, DAY) == {"84": NOTHING, "11": NOTHING}
    assert shares(stream, DAY + timedelta(days=1)) == {}


def test_a_run_says_loudly_what_is_most_of_a_region(small):
    """A thousandfold delivery is clamped whole, and appears: the operator hears of it at once."""
    stream = small()
    stream.write("84", stream.rows(100_000.0))
    stream.write("11", stream.rows(1.0))
    assert judged(stream).error is None
    (line,) = loudest(stream.settings, {DAY})
    assert line.startswith(f"{DAY}: readings were clamped in 84 (100%): ")
    assert "restatement_share is 0" in line


@pytest.mark.slow
def test_of_many_leaves_without_rows_a_run_verdict_and_watch_say_few_lines(small):
    """Of sparse meters half of the leaves may lack most steps every day."""
    leaves = [f"L{number}" for number in range(40)]
    stream = small(schema="metered", marker='region = "zone"')
    text = stream.settings.file.read_text()
    stream.settings.file.write_text(
        text.replace('84 = "FR"\n11 = "FR"', "\n".join(f'{leaf} = "FR"' for leaf in leaves))
    )
    stream.settings = load_settings(stream.settings.file)
    row = stream.metered("one", 1.0).with_columns(zone=pl.lit("L0"))
    stream.write(EVERY, row[:1])
    verdict = judged(stream)
    assert verdict.error is None
    (alarm,) = verdict.alarms
    assert "'L1'" in alarm
    assert "more)" in alarm
    (line,) = loudest(stream.settings, {DAY})
    assert line.startswith(f"{DAY}: readings were unusable in L1 (100%), L2 (100%)")
    assert "and 27 more" in line


FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)


SPAN = [FIRST + timedelta(days=number) for number in range(11)]


def shown(installation, *days):
    """Days that are released, and pages of them."""
    installation.release(*days)
    installation.write_pages()


FAR, SUSPECT = ("far-from-history", 11, "84"), ("suspect-readings", 11, "84")


@pytest.mark.parametrize(
    ("factor", "seen"), [(1000, [SUSPECT]), (-1, [FAR, SUSPECT]), (1 / 1000, [FAR]), (1, [])]
)
def test_a_region_in_another_unit_or_sign_is_published_green_and_seen(watched, capsys, factor, seen):
    """From dumps to alarms. Clamped to the bounds, a thousandfold load is at the upper one, 20,000 and not
    ten times as much as usual, and a negated one at zero, far below; a thousandth stays within them, so
    nothing of it is clamped and only published history shows it. The control is an ordinary day.
    """
    watched.configure('epsilon = "1"', 'epsilon = "50"')
    watched.simulate(*SPAN)
    watched.at("2016-06-12 12:00")
    watched.once(shown, *SPAN[:-1])
    in_another_unit(watched, "84", SPAN[-1], factor)
    assert [kind for kind, _, _ in watched.alarms()] == ["missing"]
    (day,) = watched.release(SPAN[-1]).values()
    assert day.outcome.status == "published"
    watched.write_pages()
    assert sorted(watched.alarms()) == seen
    view = watched.watch(live=False)
    words = {str(alarm.kind): alarm.words for alarm in view.alarms}
    assert all(alarm.node == "84" and alarm.day == SPAN[-1] for alarm in view.alarms)
    if FAR in seen:
        assert " of the median of the days before" in words["far-from-history"]
        assert {one.severity for one in view.alarms if one.kind is Kind.FAR} == {Severity.WARNING}
    show_view(watched.settings, view, Terminal())
    printed = " ".join(capsys.readouterr().out.split())
    report = watched.settings.report_file.read_text()
    assert ("84: 100.0% clamped" in printed) is (SUSPECT in seen)
    assert ("Replaced readings" in report) is (SUSPECT in seen)
    public = (watched.folder / "published/index.html").read_text()
    assert "clamped on" not in public
    assert "suspect" not in public
