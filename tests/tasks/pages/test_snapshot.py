"""A look at real streams: what is read is what `optstream status` reads, and trouble is a value."""

from datetime import date, timedelta

import pytest

from tasks.monitor.days import State
from tasks.pages.snapshot import take_snapshot
from tests.failing import raising
from tests.tasks.conftest import NOW

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


@pytest.mark.parametrize("part", ["read_told", "kept_figures", "result_files"])
def test_a_defect_in_what_is_beside_the_view_is_a_value_too(small, monkeypatch, part):
    """What is raised here would end the loop that looks at all streams."""
    monkeypatch.setattr(f"tasks.pages.snapshot.{part}", raising(NotADirectoryError("a place")))
    found = take_snapshot(small().settings.file, NOW)
    assert "NotADirectoryError" in (found.problem or "")
