"""A look at real streams, its row of the overview and its metrics; trouble is a value."""

from datetime import date, timedelta
from fractions import Fraction
from math import inf
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tasks.monitor.alarms import Kind
from tasks.monitor.days import State
from tasks.pages.metrics import HELP, metrics_text
from tasks.pages.snapshot import Snapshot, take_snapshot
from tasks.pages.stream import Need, overview
from tests.failing import raising
from tests.tasks.conftest import NOW
from tests.tasks.pages.snapshots import AT, alarm

DAYS = (date(2016, 6, 1), date(2016, 6, 2))


def test_a_released_stream_is_seen_and_nothing_is_changed(installation):
    installation.released(*DAYS)
    file, before = installation.folder / "optstream.toml", installation.files("published", "trusted")
    found = take_snapshot(file, installation.now)
    assert (found.stream, found.problem, found.at) == ("two-regions", None, installation.now)
    assert [day.state for day in found.view.days] == [State.PUBLISHED] * 2
    assert set(found.nights) == set(DAYS)
    assert all(night.took is not None for night in found.nights.values())
    after = installation.files("published", "trusted")
    assert {name for name in after if after[name] != before.get(name)} <= {
        name for name in after if name.name.startswith("ledger.sqlite")
    }


def test_trouble_is_a_value_and_the_look_before_stays(small):
    stream = small()
    file, now = stream.settings.file, NOW
    before = take_snapshot(file, now)
    file.write_text("[stream\n")
    after = take_snapshot(file, now + timedelta(minutes=1), before)
    assert (after.view, after.at) == (before.view, now)
    assert "optstream.toml" in (after.problem or "")
    never = take_snapshot(file, now)
    assert (never.stream, never.view) == ("optstream", None)
    assert take_snapshot(file.with_name("absent.toml"), now).problem


@pytest.mark.parametrize("part", ["read_told", "watch", "result_files"])
def test_a_defect_in_what_is_beside_the_view_is_a_value_too(small, monkeypatch, part):
    """What is raised here would end the loop that looks at all streams."""
    monkeypatch.setattr(f"tasks.pages.snapshot.{part}", raising(NotADirectoryError("a place")))
    found = take_snapshot(small().settings.file, NOW)
    assert "NotADirectoryError" in (found.problem or "")


LATER = AT + timedelta(minutes=12)


def test_streams_are_sorted_by_what_needs_a_person(snapshot):
    warning = alarm(Kind.EXPIRING)
    found = overview(
        [
            snapshot("calm"),
            snapshot("b-late", alarms=[alarm()]),
            snapshot("warned", alarms=[warning]),
            snapshot("a-late", alarms=[warning, alarm()]),
            snapshot("gone", problem="the ledger refuses"),
        ],
        LATER,
    )
    assert [row.name for row in found] == ["gone", "a-late", "b-late", "warned", "calm"]
    assert [row.need for row in found] == [Need.BLIND, Need.ALARM, Need.ALARM, Need.WARNING, Need.NOTHING]


def read(*snapshots):
    """Value by name and labels."""
    families = text_string_to_metric_families(metrics_text(snapshots, AT).decode())
    found = {}
    for sample in (one for family in families for one in family.samples):
        others = [value for name, value in sorted(sample.labels.items()) if name != "stream"]
        found[(sample.name, sample.labels["stream"], *others)] = sample.value
    return found


def test_a_stream_that_is_seen(snapshot):
    found = read(
        snapshot(states=[State.PUBLISHED] * 69 + [State.LATE, State.VOID], alarms=[alarm(), alarm(day=None)])
    )
    assert {name for name, *_ in found} == set(HELP) - {"optstream_step_seconds"}
    assert found["optstream_look_success", "two-regions"] == 1
    assert found["optstream_days", "two-regions", "published"] == 69
    assert found["optstream_days", "two-regions", "late"] == 1
    assert found["optstream_days", "two-regions", "void"] == 1
    assert found["optstream_days", "two-regions", "failed"] == 0
    assert found["optstream_alarms", "two-regions", "late", "alarm"] == 2
    assert found["optstream_alarms", "two-regions", "late", "warning"] == 0
    assert found["optstream_window_epsilon_headroom", "two-regions"] == 0.5
    assert found["optstream_run_seconds", "two-regions"] == 300
    # the 69th day, 8 August, ended at 22:00 UTC
    assert found["optstream_newest_day_age_seconds", "two-regions"] == (23 * 24 + 8) * 3600


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.depends_on_readings])
def test_what_depends_on_readings_is_not_told(snapshot, kind):
    """Control: an alarm of any other kind is."""
    assert metrics_text([snapshot(alarms=[alarm(kind)])], AT) == metrics_text([snapshot()], AT)
    assert metrics_text([snapshot(alarms=[alarm()])], AT) != metrics_text([snapshot()], AT)


def test_a_stream_that_cannot_be_seen_has_one_line(snapshot):
    found = read(Snapshot(Path("new.toml"), "new", AT, problem="no"), snapshot("other", problem="no"))
    assert {name: value for (name, stream, *_), value in found.items() if stream == "new"} == {
        "optstream_look_success": 0
    }
    assert found["optstream_look_success", "other"] == 0
    assert found["optstream_days", "other", "published"] == 70


def test_compromised_noise_and_hostile_names(snapshot):
    name = 'a"} 1\nb\\'
    found = read(snapshot(name, spent=inf))
    assert found["optstream_window_epsilon_charged", name] == inf
    assert found["optstream_window_epsilon_headroom", name] == -inf
    assert read(snapshot(spent=Fraction(0)))["optstream_window_epsilon_headroom", "two-regions"] == 1
