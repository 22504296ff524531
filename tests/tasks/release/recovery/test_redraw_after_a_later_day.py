"""A day whose owner died in its draw is drawn again, though later days were released meanwhile."""

from datetime import date

import pytest

from optstream.ledger import ReleaseState
from tasks.release.stages import Status
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)]
BEFORE_DRAW = STEPS[:5]


@pytest.mark.parametrize("mechanism", ["BudgetAbsorption", "BudgetDistribution", "Fast"])
@pytest.mark.parametrize("deaths", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_the_plan_that_was_charged_is_drawn(installation, mechanism, deaths):
    """Their plans look at what was spent around: what came after the death was judged with the plan in it."""
    installation.change_mechanism(mechanism)
    installation.simulate(*DAYS)
    installation.released(DAYS[0])
    for _ in range(deaths):
        run, works = installation.through(BEFORE_DRAW, DAYS[1])
        run.ledger.begin_draw(works[0].reservation, installation.now)
        installation.later(minutes=1)
        after = installation.release(DAYS[1], DAYS[2])
        assert after[DAYS[1]].outcome.status is Status.BUSY
        assert after[DAYS[2]].outcome.status in (Status.PUBLISHED, Status.UNCHANGED)
        installation.later(hours=1)
    outcome = installation.release(DAYS[1])[DAYS[1]].outcome
    assert outcome.status is Status.PUBLISHED, outcome
    record = installation.record(DAYS[1])
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, deaths)
    assert installation.ledger.worst("people").epsilon <= 1
    assert installation.problems() == []
