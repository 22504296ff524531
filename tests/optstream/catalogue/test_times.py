"""No time of a run reaches the published folder: modification times are functions of what is published."""

import os
from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.catalogue import read_catalogue
from optstream.catalogue.times import catalogue_time

DAY = date(2016, 2, 1)
MIDNIGHT = datetime(2016, 2, 2, tzinfo=UTC)


def times(folder):
    """The modification time of everything that readers list."""
    return {
        path.relative_to(folder).as_posix(): datetime.fromtimestamp(path.stat().st_mtime, UTC)
        for path in [folder, *folder.rglob("*")]
        if not path.relative_to(folder).as_posix().startswith((".lock", ".incoming"))
    }


def test_times_say_what_was_published_not_when(tmp_path, put):
    entry = put(tmp_path, DAY, revision=0, vintage=0).entry
    listed = MIDNIGHT + timedelta(seconds=1)
    assert times(tmp_path) == {
        entry.file: MIDNIGHT,
        entry.manifest: MIDNIGHT,
        **dict.fromkeys((".", "catalogue.json", "data", f"data/date={DAY}", "manifests"), listed),
    }


def test_the_catalogue_s_time_rises_with_every_change_for_caches(tmp_path, put):
    seen = [datetime.min.replace(tzinfo=UTC)]
    for period, revision, vintage in [
        (DAY, 0, 0),
        (DAY, 0, 1),
        (DAY - timedelta(days=30), 0, 0),
        (DAY, 1, 1),
        (DAY + timedelta(days=1), 0, 0),
    ]:
        put(tmp_path, period, revision=revision, vintage=vintage)
        seen.append(times(tmp_path)["catalogue.json"])
        assert seen[-1] == catalogue_time(read_catalogue(tmp_path))
    assert seen == sorted(set(seen))


def test_publishing_again_after_a_crash_settles_the_times(tmp_path, put):
    put(tmp_path, DAY)
    before = times(tmp_path)
    for path in tmp_path.rglob("*"):
        os.utime(path)
    assert times(tmp_path) != before
    put(tmp_path, DAY)
    assert times(tmp_path) == before


@pytest.mark.parametrize("name", ["catalogue.json", "."])
def test_what_another_owner_made_keeps_its_time_and_stops_nothing(tmp_path, put, monkeypatch, name):
    real = os.utime

    def refuse(path, times=None, **rest):
        if path == tmp_path / name:
            raise PermissionError(1, "Operation not permitted")
        real(path, times, **rest)

    monkeypatch.setattr("os.utime", refuse)
    entry = put(tmp_path, DAY).entry
    assert times(tmp_path)[entry.file] == MIDNIGHT
