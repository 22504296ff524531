"""`python -m studies leakage` from its words to its exit code, on a ledger of three days."""

from datetime import UTC, date, datetime, timedelta

import pytest

from optstream.ledger import open_ledger
from tasks.config import load_settings
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Run, enrol
from tests.studies.command import invoke

NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def here(here):
    """A folder with a configuration, two chains and a ledger without a day."""
    (here / "M.csv").write_text("low,high\n0.9,0.1\n0.3,0.7\n")
    (here / "stay.csv").write_text("0.8,0.2\n0,1\n")
    return here


@pytest.fixture
def released(here):
    """The same with three days that are charged."""
    settings = load_settings(here / "optstream.toml")
    ledger = open_ledger(settings.ledger_url)
    enrol(Run(settings, ledger, None, "test", lambda: NOW))
    for number in range(3):
        day = date(2016, 6, 1) + timedelta(days=number)
        spends = mechanism_for(settings, day).plan(48, settings.calendar.first_step(day))
        held = ledger.reserve("french-load", day.isoformat(), 0, spends, "test", NOW, timedelta(hours=1))
        ledger.begin_draw(held, NOW)
        ledger.record_drawn(held, "0" * 64, spends, NOW)
    ledger.close()
    return here


@pytest.mark.slow
def test_a_person_sees_the_history_the_bounds_and_the_caveat(released):
    result = invoke("leakage", "--transition", "M.csv")
    assert result.exit_code == 0, result.exception
    shown = " ".join(result.output.split())
    assert "3 releases, 144 steps of 30 minutes, 2016-06-01 to 2016-06-03" in shown
    assert "chain of 2 states: M.csv; backward: derived by Bayes" in shown
    assert "to keep the total at 1 or below" in shown
    assert "a step, permanently (Algorithm 7)" in shown
    assert "for 144 steps (Algorithm 8)" in shown
    assert "alpha = 10 of each other" in shown
    assert "the privacy guarantee does not cover such knowledge" in shown
