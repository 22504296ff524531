"""A published file that was lost or damaged is an alarm, a state of its day, and over once it is back."""

from datetime import date, timedelta

import pytest

from optstream.catalogue import find_catalogue, read_catalogue
from tasks.monitor.facts import lost_files

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


def test_a_day_that_is_withdrawn_while_the_folder_is_listed_is_not_lost(released):
    """The catalogue was read before, the folder is listed after."""
    before = find_catalogue(released.folder / "published")
    released.withdraw(FIRST)
    assert lost_files(released.settings, before) == {}
    assert released.states() == {1: "withdrawn", 2: "published"}


def test_a_page_that_is_missing_or_behind_is_an_alarm(released):
    page, released.now = released.folder / "published/index.html", released.now + timedelta(hours=1)
    for data in (None, b"of other days"):
        page.unlink() if data is None else page.write_bytes(data)
        assert released.alarms() == [("lost", None, None)]
        assert "optstream report" in released.watch().alarms[0].words
        released.write_pages()
        assert released.alarms() == []
