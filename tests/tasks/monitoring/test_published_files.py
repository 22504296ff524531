"""A published file that was lost or damaged is an alarm, a state of its day, and over once it is back."""

from datetime import date, timedelta
from types import SimpleNamespace

import polars as pl
import pytest

from optstream.catalogue import Catalogue, Entry, find_catalogue, read_catalogue
from optstream.catalogue.index import day_entries
from optstream.stream import Hour
from tasks.monitor import facts as published_files
from tasks.monitor.facts import RESIZED, lost_files

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)


@pytest.fixture
def released(watched):
    watched.released(FIRST, SECOND)
    watched.write_pages()
    return watched


def file_of(installation, day=FIRST):
    return (
        installation.folder / "published" / read_catalogue(installation.folder / "published").entry(day).file
    )


def harm(path, how):
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("how", ["missing", "not as long"])
def test_it_is_an_alarm_and_a_state_until_it_is_back(released, how):
    assert released.states() == {1: "published", 2: "published"}
    assert released.alarms() == []
    harm(file_of(released), how)
    assert released.states() == {1: "lost", 2: "published"}
    assert released.alarms() == [("lost", 1, None)]
    (alarm,) = released.watch().alarms
    assert "optstream publish 2016-06-01" in alarm.words
    for _ in range(2):
        released.write_pages()
        assert released.alarms() == [("lost", 1, None)], "also after a night made the pages anew"
    assert how in alarm.words
    released.publish_again(FIRST)
    assert released.states() == {1: "published", 2: "published"}
    assert released.alarms() == []


def test_no_file_is_opened_to_look(released, monkeypatch):
    """Every hour, also of ten years: names and sizes, no bytes; and not where there is nothing to look at."""
    from optstream.catalogue.backends.local import LocalStorage

    opened, real = [], LocalStorage.read
    monkeypatch.setattr(
        LocalStorage, "read", lambda self, name, most: opened.append(name) or real(self, name, most)
    )
    assert lost_files(released.settings, read_catalogue(released.folder / "published")) == {}
    assert [name for name in opened if name.startswith("data/")] == []
    assert lost_files(released.settings, None) == {}


def test_a_day_that_is_withdrawn_while_the_folder_is_listed_is_not_lost(released):
    """The catalogue was read before, the folder is listed after."""
    before = find_catalogue(released.folder / "published")
    released.withdraw(FIRST)
    assert lost_files(released.settings, before) == {}
    assert released.states() == {1: "withdrawn", 2: "published"}


def test_a_compromised_day_without_its_file_has_both_alarms(released):
    released.compromise(FIRST, "a stolen disk")
    harm(file_of(released), "missing")
    assert {kind for kind, day, _ in released.alarms() if day == 1} >= {"lost", "compromised"}


def test_a_closed_day_of_another_size_is_lost_with_all_its_hours_and_an_open_one_is_not_judged(tmp_path):
    """The pages keep a size for each day: of a closed one that of its file, else of all its hours' files."""
    closed, opened = (
        (Hour(FIRST, number) for number in range(2)),
        (Hour(SECOND, number) for number in range(2)),
    )
    entries = [Entry(one, 0, 0, f"{one.hour}" * 64, "", "", closed_in="c" * 64) for one in closed]
    entries += [Entry(one, 0, 0, f"{one.hour}" * 64, "", "") for one in opened]
    for one in entries:
        path = tmp_path / one.shown_in
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    sizes = {day.file_hash: 5 if day.closed_in else 10 for day in day_entries(entries)}
    rows = {
        "file_hash": [*sizes],
        "node": "FR",
        "mean": 1.0,
        "noise": 1.0,
        "model": 1.0,
        "size": [*sizes.values()],
    }
    pl.DataFrame(rows).write_parquet(tmp_path / "summaries.parquet")
    settings = SimpleNamespace(published_folder=tmp_path, summaries_file=tmp_path / "summaries.parquet")
    catalogue = Catalogue("load", "load_mw", "d" * 64, tuple(entries))
    assert lost_files(settings, catalogue) == {}
    (tmp_path / entries[0].shown_in).write_bytes(b"1234")
    assert published_files._resized(settings, entries) == dict.fromkeys(
        [one.period for one in entries[:2]], RESIZED
    )


def test_a_page_that_is_missing_or_behind_is_an_alarm(released):
    page, released.now = released.folder / "published/index.html", released.now + timedelta(hours=1)
    for data in (None, b"of other days"):
        page.unlink() if data is None else page.write_bytes(data)
        assert released.alarms() == [("lost", None, None)]
        assert "optstream report" in released.watch().alarms[0].words
        released.write_pages()
        assert released.alarms() == []
