"""Who stops a run is told which days it holds, until when, and what to run next."""

from datetime import date, timedelta

from optstream.ledger import ReleaseState
from tasks.plan.backfill import LeftBehind, UnderWay, left_behind
from tests.tasks.two_regions import STEPS

DAY, NEXT = date(2016, 6, 1), date(2016, 6, 2)


def test_a_day_that_is_drawn_is_held_for_its_lease_and_then_free(installation):
    installation.release(DAY, steps=STEPS[:6])
    found = left_behind(installation.settings, installation.ledger, [DAY, NEXT], installation.now)
    until = installation.now + timedelta(minutes=15)
    assert found == LeftBehind(2, (UnderWay(DAY, ReleaseState.DRAWN, until),), (NEXT,))
    later = left_behind(installation.settings, installation.ledger, [DAY, NEXT], until)
    assert later.under_way == (UnderWay(DAY, ReleaseState.DRAWN, None),)
