"""Purging: files past their retention go, whatever is still needed stays, and once more changes nothing."""

import os
import threading
from datetime import date
from types import SimpleNamespace

from optstream.ledger import Key
from tasks.operate.purge import purge
from tasks.release.lineage import emit_lineage
from tasks.trusted.files import exclusive_in
from tests.failing import Death, at_each, dying_at
from tests.tasks.two_regions import RESERVED, STAGED

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
KINDS = ("staged files", "validation results", "hashes of inputs", "raw states", "lineage events")
NOTHING = dict.fromkeys(KINDS, 0)


def removed(installation, **options):
    return dict(purge(installation.settings, installation.ledger, installation.now, **options).n_removed)


def test_each_kind_goes_after_its_own_retention_and_the_rest_stays(released):
    kept = released.files("trusted/measurements", "published")
    released.later(days=90)
    assert removed(released) == NOTHING
    released.later(seconds=1)
    # of one chunk's raw readings and releases each a result and its page
    kept_short = {**NOTHING, "staged files": 4, "validation results": 2 * 2}
    assert removed(released, dry_run=True) == kept_short
    assert removed(released) == kept_short
    assert not list((released.folder / "trusted/staging/two-regions").iterdir())
    released.later(days=3560)
    assert removed(released) == {**NOTHING, "lineage events": 2, "hashes of inputs": 2}
    assert not list((released.folder / "trusted/inputs/two-regions").iterdir())
    assert (released.folder / "trusted/input.key").exists()
    assert removed(released) == NOTHING
    assert (released.folder / "trusted/lineage/events.jsonl").read_bytes() == b""
    assert released.files("trusted/measurements", "published") == kept
    assert [released.record(day).state.value for day in DAYS] == ["PUBLISHED"] * 2
    assert released.ledger.verify() == []


def test_what_is_under_way_is_left(installation):
    installation.release(DAYS[0], steps=RESERVED)
    installation.release(DAYS[1], steps=STAGED)
    kept = installation.files("trusted/staging", "trusted/validation", "trusted/measurements")
    assert kept
    installation.later(days=10_000)
    assert removed(installation, raw_state=True) == NOTHING
    assert installation.files("trusted/staging", "trusted/validation", "trusted/measurements") == kept
    installation.release(DAYS[1])
    assert installation.record(DAYS[1]).state.value == "PUBLISHED"


def test_staged_bytes_are_kept_while_the_published_folder_lacks_them(released):
    (path,) = (released.folder / "published/data/date=2016-06-01").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    released.later(days=91)
    done = purge(released.settings, released.ledger, released.now)
    assert done.n_removed["staged files"] == 2
    (note,) = done.notes
    assert "2016-06-01-r0 is kept: the published folder does not hold its release" in note
    path.write_bytes(data)
    assert removed(released)["staged files"] == 2


def raw_of(installation, day):
    """Raw state as PeGaSus leaves it, next to the measurements and under their name."""
    (measured,) = installation.settings.measurements_of(day, 0).iterdir()
    path = measured.with_name(measured.name + ".raw")
    path.write_bytes(b"raw")
    return path


def test_raw_state_goes_once_no_later_day_takes_it_or_when_it_is_asked_for(released):
    first, last = (raw_of(released, day) for day in DAYS)
    assert removed(released) == {**NOTHING, "raw states": 1}
    assert (first.exists(), last.exists()) == (False, True)
    released.later(days=7)
    assert removed(released)["raw states"] == 0
    assert removed(released, raw_state=True, dry_run=True)["raw states"] == 1
    assert last.exists()
    assert (removed(released, raw_state=True)["raw states"], last.exists()) == (1, False)
    last = raw_of(released, DAYS[1])
    released.later(seconds=1)
    assert (removed(released)["raw states"], last.exists()) == (1, False)


def test_raw_state_before_a_gap_waits_for_the_day_that_may_come(installation):
    installation.simulate(date(2016, 6, 3))
    installation.release(DAYS[0], date(2016, 6, 3))
    path = raw_of(installation, DAYS[0])
    assert removed(installation)["raw states"] == 0
    installation.release(DAYS[1])
    assert not path.exists()  # taken, and destroyed by taking
    path = raw_of(installation, DAYS[0])
    assert (removed(installation)["raw states"], path.exists()) == (1, False)


def test_raw_state_before_a_day_that_was_given_up(installation):
    """A void day is never drawn: the day after it goes on from the one before, while it is still to come."""
    void_day, later = DAYS[1], date(2016, 6, 3)
    installation.simulate(later)
    installation.release(DAYS[0])
    installation.release(void_day, steps=STAGED)
    installation.ledger.void(Key("two-regions", void_day.isoformat()), "a person said so", installation.now)
    path, void = raw_of(installation, DAYS[0]), raw_of(installation, void_day)
    assert (removed(installation)["raw states"], path.exists(), void.exists()) == (1, True, False)
    installation.release(later)
    path = raw_of(installation, DAYS[0])
    assert (removed(installation)["raw states"], path.exists()) == (1, False)


def test_only_this_streams_readable_old_events_leave_the_lineage(released):
    path = released.folder / "trusted/lineage/events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    other = b'{"job": {"name": "other.release"}, "eventTime": "2001-01-01T00:00:00+00:00"}\n'
    other += b'not JSON\n{"job": 1}\n'
    path.write_bytes(lines[0] + other + lines[1])
    path.with_name(".events.jsonl.1-1").touch()
    released.later(days=3651)
    assert removed(released)["lineage events"] == 2
    assert not path.with_name(".events.jsonl.1-1").exists()
    assert path.read_bytes() == other
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_event_that_is_reported_meanwhile_is_not_lost(released, monkeypatch):
    """The purge holds the lock that `emit_lineage` takes: the new event waits, and lands in the new file."""
    released.release(*DAYS)
    path = released.folder / "trusted/lineage/events.jsonl"
    monkeypatch.setattr("tasks.release.lineage.lineage_event", lambda *_: "made up")
    emitted = []
    monkeypatch.setattr("tasks.release.lineage.Serde.to_json", lambda _: "made up")
    monkeypatch.setattr("tasks.release.lineage.append_lines", lambda *_: emitted.append(path.read_bytes()))
    published = SimpleNamespace(day=DAYS[0], revision=0, statement=None)
    with exclusive_in(path.parent):
        thread = threading.Thread(target=emit_lineage, args=(released.run(), published, "file"))
        thread.start()
        thread.join(0.2)
        assert emitted == []
        path.write_bytes(b"purged\n")
    thread.join()
    assert emitted == [b"purged\n"]


def test_death_at_any_step_leaves_the_rest_to_the_next_call(released):
    raw_of(released, DAYS[0])
    kept = released.files("trusted/measurements", "published")
    kept = {path: data for path, data in kept.items() if path.suffix != ".raw"}
    released.later(days=4000)
    assert sum(removed(released, dry_run=True).values()) == 13
    for n in range(100):
        try:
            with at_each([(os, ("unlink", "replace", "fsync", "rmdir"))], dying_at(n, [])):
                purge(released.settings, released.ledger, released.now)
            break
        except Death:
            pass
        assert released.files("trusted/measurements", "published").items() >= kept.items()
    assert 5 < n < 99
    assert removed(released) == NOTHING
    assert released.files("trusted/measurements", "published") == kept
    assert (released.folder / "trusted/lineage/events.jsonl").read_bytes() == b""
    left = [path for path in (released.folder / "trusted/lineage").iterdir() if "events" in path.name]
    assert [path.name for path in left] == ["events.jsonl"]
