"""Who stops a run is told which days it holds, until when, and what to run next."""

from datetime import UTC, date, datetime, timedelta

from optstream.ledger import ReleaseState
from tasks.plan.backfill import LeftBehind, UnderWay, left_behind, words_of
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)
AGAIN = "optstream run --date 2016-06-01"


def test_a_day_that_is_drawn_is_held_for_its_lease_and_then_free(installation):
    installation.release(DAY, steps=STEPS[:6])
    found = left_behind(installation.settings, installation.ledger, [DAY, NEXT], installation.now)
    until = installation.now + timedelta(minutes=15)
    assert found == LeftBehind(2, (UnderWay(DAY, ReleaseState.DRAWN, until),), (NEXT,))
    later = left_behind(installation.settings, installation.ledger, [DAY, NEXT], until)
    assert later.under_way == (UnderWay(DAY, ReleaseState.DRAWN, None),)


def test_the_words_say_what_is_left_until_when_and_what_to_run():
    until = datetime(2016, 7, 1, 0, 15, tzinfo=UTC)
    told = "\n".join(words_of(LeftBehind(2, (UnderWay(DAY, ReleaseState.DRAWN, until),), (NEXT,)), AGAIN))
    assert "of 2 days 1 are under way and 1 were not begun" in told
    assert "2016-06-01 DRAWN: held by the stopped run until 2016-07-01 00:15:00 UTC" in told
    assert f"go on after 00:15:00 UTC with `{AGAIN}`" in told
    assert "`optstream ledger release-lease 2016-06-01 --why …`" in told
    free = "\n".join(words_of(LeftBehind(2, (UnderWay(DAY, ReleaseState.DRAWN, None),), ()), AGAIN))
    assert f"go on at any time with `{AGAIN}`" in free
    assert "nothing is left" in words_of(LeftBehind(2, (), ()), AGAIN)[0]
