"""Readings that were clamped, absent or doubled: shown by region to operators, and alarmed."""

import json
from datetime import date, timedelta

import polars as pl
import pytest

from flows.cli.console import Terminal
from flows.cli.show.stream_view import show_view
from tasks.monitoring import facts as facts_module
from tasks.monitoring.alarms.conditions import DEPENDS
from tasks.monitoring.document import status_document
from tasks.monitoring.suspect_readings import Suspect
from tasks.reports import write_pages

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)
QUIET = Suspect(0.0, 0.0, 0.0)


@pytest.fixture
def told(watched, monkeypatch):
    """`told({day: {region: Suspect}})`: what the validation results say, of two published days."""
    known = {}

    def readings(_settings, days):
        return {day: known[day] for day in days & known.keys()}

    monkeypatch.setattr(facts_module, "suspect_readings", readings)
    watched.release(FIRST, SECOND)

    def tell(found):
        known.update(found)
        return watched

    return tell


def test_what_is_usual_is_no_alarm_and_more_is(told):
    installation = told({SECOND: {"84": Suspect(0.04, 0.05, 0.0), "11": QUIET}})
    assert installation.alarms() == []
    installation = told({SECOND: {"84": Suspect(1.0, 0.0, 0.0), "11": Suspect(0.0, 0.06, 0.5)}})
    assert set(installation.alarms()) == {("suspect-readings", 2, "84"), ("suspect-readings", 2, "11")}
    words = {alarm.node: alarm.words for alarm in installation.watch().alarms}
    assert "100 % clamped" in words["84"]
    assert "6 % absent, 50 % doubled" in words["11"]
    assert all(DEPENDS in text for text in words.values())
    installation.configure("max_runtime", 'suspect_share = "1/2"\nmax_runtime')
    assert installation.alarms() == [("suspect-readings", 2, "84")]


def test_a_day_that_is_accepted_or_withdrawn_alarms_no_more(told):
    from tasks.operations.withdraw import withdraw
    from tasks.release.day import Requested

    installation = told({FIRST: {"84": Suspect(1.0, 0.0, 0.0)}, SECOND: {"84": Suspect(1.0, 0.0, 0.0)}})
    assert [day for _, day, _ in installation.alarms()] == [1, 2]
    withdraw(installation.run(), Requested(FIRST), reason="a wrong unit")
    installation.configure("max_runtime", "accepted_gaps = [2016-06-02]\nmax_runtime")
    assert installation.alarms() == []


def test_operators_see_the_shares_and_readers_do_not(told, capsys):
    installation = told(
        {FIRST: {"84": Suspect(0.25, 0.0, 0.0)}, SECOND: {"84": QUIET, "11": Suspect(0.0, 0.031, 0.0)}}
    )
    ledger = installation.ledger
    write_pages(installation.settings, ledger, installation.now)
    ledger.close()
    report = installation.settings.report_file.read_text()
    for said in ("Replaced readings", "3.1 %", "25.0 %, 1 Jun 2016", DEPENDS):
        assert said in report, said
    page = (installation.folder / "published/index.html").read_text()
    for hidden in ("eplaced", "clamped on", "3.1 %", "25.0 %", DEPENDS, "suspect"):
        assert hidden not in page, hidden
    show_view(installation.settings, installation.watch(), Terminal())
    shown = " ".join(capsys.readouterr().out.split())
    assert "11: 0.0% clamped, 3.1% absent, 0.0% doubled; most 3.1% on 2016-06-02" in shown
    assert "84: 0.0% clamped, 0.0% absent, 0.0% doubled; most 25.0% on 2016-06-01" in shown
    assert DEPENDS in shown
    document = json.loads(json.dumps(status_document(installation.settings, installation.watch())))[
        "replaced_readings"
    ]
    assert (document["day"], document["note"]) == ("2016-06-02", DEPENDS)
    assert [one["region"] for one in document["regions"]] == ["11", "84"]


def test_without_results_nothing_is_said(told, capsys):
    installation = told({})
    show_view(installation.settings, installation.watch(), Terminal())
    assert "readings replaced" not in capsys.readouterr().out
    assert status_document(installation.settings, installation.watch())["replaced_readings"]["regions"] == []


SPAN = [FIRST + timedelta(days=number) for number in range(11)]


@pytest.mark.parametrize(("factor", "words"), [(1 / 1000, " of the median of the days before"), (1.0, None)])
def test_a_region_in_another_unit_is_seen_in_its_published_figures(watched, factor, words):
    """A thousandth stays within the bounds, so nothing is clamped; the control is an ordinary day."""
    installation = watched
    installation.configure('epsilon = "1"', 'epsilon = "50"')
    installation.simulate(*SPAN)
    for path in (installation.folder / f"dumps/region=84/date={SPAN[-1]}").glob("*.parquet"):
        pl.read_parquet(path).with_columns(pl.col("load_mw") * factor).write_parquet(path)
    installation.at("2016-06-12 12:00")
    installation.released(*SPAN[:-1])
    ledger = installation.ledger
    write_pages(installation.settings, ledger, installation.now)
    assert [kind for kind, _, _ in installation.alarms()] == ["missing"]
    installation.release(SPAN[-1])
    write_pages(installation.settings, ledger, installation.now)
    ledger.close()
    alarms = installation.watch(live=False).alarms
    if words is None:
        assert alarms == ()
        return
    (alarm,) = alarms
    assert (alarm.kind, alarm.node, alarm.day, alarm.severity) == (
        "far-from-history",
        "84",
        SPAN[-1],
        "warning",
    )
    assert words in alarm.words
