"""Bars of a run's steps, in thousandths of its length."""

from datetime import timedelta

from tasks.ui.runs import FULL, RunStep, StreamRun, bars_of
from tests.tasks.ui.conftest import AT


def run(*steps, took=100):
    begun = [
        RunStep(name, AT + timedelta(seconds=a), b and AT + timedelta(seconds=b)) for name, a, b in steps
    ]
    return StreamRun("r", "Completed", AT, took and AT + timedelta(seconds=took), tuple(begun))


def test_bars_stand_where_and_as_long_as_the_steps_were():
    bars = bars_of(run(("draw", 60, 100), ("ingest", 0, 60)), AT)
    assert [(bar.left, bar.width, bar.words) for bar in bars] == [
        (0, 600, "ingest 1 min"),
        (600, 400, "draw 40 s"),
    ]


def test_a_step_under_way_lasts_until_now():
    (bar,) = bars_of(run(("draw", 50, None), took=None), AT + timedelta(seconds=100))
    assert (bar.left, bar.width) == (500, 500)


def test_no_bar_leaves_the_box_and_none_vanishes():
    """Clocks of two machines differ, and a step may take no time."""
    for bar in bars_of(run(("a", -10, -5), ("b", 200, 300), ("c", 50, 50), ("d", 0, 900)), AT):
        assert 0 <= bar.left <= FULL
        assert bar.width >= 2
        assert bar.left + bar.width <= FULL + 2
    assert bars_of(run(("a", 0, 0), took=0), AT)[0].width == 2
    assert bars_of(run(), AT) == ()
