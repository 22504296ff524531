"""A day whose owner died in its draw is drawn again, though later days were released meanwhile."""

import re
from datetime import date

import pytest

from optstream.ledger import ReleaseState
from tasks.ledger.verify import verify
from tasks.release.day import Requested, Status
from tests.tasks.two_regions import STEPS

DAYS = [date(2016, 6, 1), date(2016, 6, 2), date(2016, 6, 3)]
BEFORE_DRAW = STEPS[:5]


@pytest.mark.parametrize("mechanism", ["BudgetAbsorption", "BudgetDistribution", "Fast"])
@pytest.mark.parametrize("deaths", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_the_plan_that_was_charged_is_drawn(house, mechanism, deaths):
    """Their plans look at what was spent around: what came after the death was judged with the plan in it."""
    path = house.folder / "optstream.toml"
    text = path.read_text().replace('name = "OptStream"', f'name = "{mechanism}"')
    path.write_text(re.sub(r"\[sampling\]\n(?:[a-z].*\n)+", "", text))
    house.simulate(*DAYS)
    house.released(DAYS[0])
    for _ in range(deaths):
        run, works = house.run(), [Requested(DAYS[1])]
        for step in BEFORE_DRAW:
            works = step(run, works)
        run.ledger.begin_draw(works[0].reservation, house.now)
        house.later(minutes=1)
        after = house.release(DAYS[1], DAYS[2])
        assert after[DAYS[1]].outcome.status is Status.BUSY
        assert after[DAYS[2]].outcome.status in (Status.PUBLISHED, Status.UNCHANGED)
        house.later(hours=1)
    outcome = house.release(DAYS[1])[DAYS[1]].outcome
    assert outcome.status is Status.PUBLISHED, outcome
    record = house.record(DAYS[1])
    assert (record.state, record.redraws) == (ReleaseState.PUBLISHED, deaths)
    assert house.ledger.worst("people").epsilon <= 1
    assert verify(house.settings, house.ledger).problems == ()
