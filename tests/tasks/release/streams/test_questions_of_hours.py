"""Questions to a stream by the hour: windows go over hours and midnight, and end where an hour is missing."""

from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest

from optstream import ask, read_answers, read_published
from optstream.catalogue import check_files
from optstream.catalogue.questions.question import Question
from optstream.stream import Hour
from tasks.release.records.close_days import close_over
from tests.tasks.release.streams.conftest import hours

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
SUM = Question("five", "sum", 5, None, (), 1)
DROP = Question("falls", "drop", 4, 100, ("FR",), None)


def by_hand(rows, node, window):
    """The sums of windows of consecutive half-hours, by the instant at which their last one begins."""
    own = dict(rows.filter(pl.col("node") == node).select("timestamp", "load_mw").iter_rows())
    found = {}
    for end in own:
        inside = [end - number * STEP for number in range(window)]
        if all(one in own for one in inside):
            found[end] = sum(own[one] for one in inside)
    return found


STEP = datetime(2016, 1, 1, 0, 30) - datetime(2016, 1, 1)


def check_answers(installation):
    folder = str(installation.settings.published_folder)
    rows, found = read_published(folder), ask(folder, [SUM, DROP])
    for node in ("84", "11"):
        own = found.filter(question="five", node=node)
        wanted = by_hand(rows, node, 5)
        assert own["timestamp"].to_list() == sorted(wanted)
        assert np.allclose(own["answer"], [wanted[one] for one in own["timestamp"]])
        assert own["timestamp"].n_unique() == own.height
    return found


def test_windows_go_over_hours_and_midnight_and_end_at_a_gap(day_of_hours):
    found = check_answers(day_of_hours)
    assert found.filter(question="five", node="84").height == 50 - 4
    assert found.filter(question="falls").height == 50 - 3
    assert found.filter(question="five", date=NEXT, node="84")["step"].to_list() == [0, 1]
    gone = Hour(DAY, 10)
    day_of_hours.withdraw(gone)
    found = check_answers(day_of_hours)
    assert found.filter(question="five", node="84").height == 20 - 4 + 28 - 4


def test_answers_lie_beside_the_hours_a_file_a_day(day_of_hours):
    path = day_of_hours.folder / "optstream.toml"
    path.write_text(path.read_text() + '[questions.five]\nask = "sum"\nwindow = "150min"\nlevel = 1\n')
    folder = str(day_of_hours.settings.published_folder)
    day_of_hours.write_pages()
    before = read_answers(folder)
    assert before.equals(ask(folder, [SUM]))
    assert len(day_of_hours.files("published/questions")) == 2
    assert close_over(day_of_hours.run()) == (DAY,)
    assert read_answers(folder).equals(before)
    day_of_hours.write_pages()
    assert check_files(folder) == []
    gone = Hour(DAY, 23)
    day_of_hours.withdraw(gone)
    assert read_answers(folder).is_empty(), "both days' windows reach the hour that was withdrawn"
    day_of_hours.write_pages()
    assert read_answers(folder).equals(ask(folder, [SUM]))
    assert check_files(folder) == []


@pytest.mark.parametrize(
    ("day", "n_hours"), [(date(2015, 10, 25), 25), (date(2016, 3, 27), 23)], ids=["autumn", "spring"]
)
def test_windows_go_over_a_midnight_after_a_changed_clock(by_the_hour, day, n_hours):
    after = date.fromordinal(day.toordinal() + 1)
    installation = by_the_hour("Laplace", day, after)
    calendar = installation.settings.calendar
    asked = [*calendar.periods_of(day)[-2:], *calendar.periods_of(after)[:1]]
    assert len(calendar.periods_of(day)) == n_hours
    installation.now = datetime(2016, 6, 2, 8, tzinfo=UTC)
    installation.released(*asked)
    found = check_answers(installation)
    assert found.filter(question="five", node="84").height == 2
    assert hours(day)[-1] in asked
