"""A run that would change nothing is seen before anything is loaded; one that would is never passed over."""

from datetime import date

import pytest

from tasks.plan.backfill import over_already
from tasks.release.due import due
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


@pytest.fixture
def published(installation):
    installation.released(DAY)
    installation.write_pages()
    return installation


def test_a_published_day_is_over_and_nothing_changes(published):
    before = published.files("published", "trusted/report")
    (ended,) = over_already(published.run(), [DAY])
    assert ended.outcome.status is Status.UNCHANGED
    assert published.files("published", "trusted/report") == before


def test_a_day_that_is_missing_under_way_or_asked_for_again_is_not(published):
    assert over_already(published.run(), [DAY, NEXT]) is None
    assert over_already(published.run(restate=True), [DAY]) is None
    published.release(NEXT, steps=STEPS[:6])  # drawn
    assert over_already(published.run(), [NEXT]) is None


def test_a_page_that_a_run_left_behind_is_still_to_be_made(published):
    (published.folder / "published/index.html").write_text("of another day")
    assert over_already(published.run(), [DAY]) is None
    published.write_pages()
    assert over_already(published.run(), [DAY]) is not None
    published.settings.report_file.unlink()
    assert over_already(published.run(), [DAY]) is None


def test_an_estimate_that_is_due_is_still_to_be_made(learning):
    days = [date(2016, 6, 1), date(2016, 6, 2)]
    learning.released(*days)
    learning.write_pages()
    assert over_already(learning.run(), days) is None


def test_a_day_that_another_mechanism_measured_stays_due_and_is_no_work(installation):
    """But where its measurements are gone, which a run tells."""
    days = [DAY, NEXT]
    installation.simulate(*days)
    installation.released(DAY)
    installation.change_mechanism("HistoryInformed")
    installation.released(NEXT)
    installation.write_pages()
    assert [one.day for one in due(installation.run())] == [DAY]
    assert len(over_already(installation.run(), days)) == 2
    for path in installation.settings.measurements_of(DAY, 0).iterdir():
        path.unlink()
    assert over_already(installation.run(), days) is None
