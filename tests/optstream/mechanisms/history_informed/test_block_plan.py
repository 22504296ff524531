"""What is measured: a plan that changes waits for headroom, parameters are chosen and checked."""

from dataclasses import replace

import pytest

from optstream.errors import ParameterError
from optstream.privacy import worst_window
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    MODEL,
    SLOTS,
    informed,
    load,
    run,
    spends_of,
)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [((1, 4), (8, 1)), ((8, 1), (1, 4)), ((3, 2), (7, 3))])
def test_another_plan_waits_for_headroom(before, after):
    """Changed after any of five days; without the memory of what was spent some change breaks it."""
    stream, costs = load(8), []
    then = informed(n_blocks=after[0], block_length=after[1], relearn_days=0)
    for days in range(1, 6):
        cut = days * SLOTS
        first = run(replace(then, n_blocks=before[0], block_length=before[1]), stream[:, :cut])
        state = then.recall(spends_of(first), first[-1].state)
        second = run(then, stream[:, cut : cut + 3 * SLOTS], state=state, first_day=days)
        assert worst_window(spends_of(first + second), SLOTS).epsilon <= MODEL.epsilon
        assert sum(second[1].spends[0].weights) >= 3
        forgetful = run(then, stream[:, cut : cut + 3 * SLOTS], first_day=days)
        costs.append(worst_window(spends_of(first + forgetful), SLOTS).epsilon)
    assert max(costs) > MODEL.epsilon


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_blocks": 25}, r"n_blocks of HistoryInformed must be an integer in \[1, 24\]; got 25"),
        ({"n_blocks": 0}, r"n_blocks of HistoryInformed must be an integer in \[1, 24\]; got 0"),
        ({"n_blocks": 0, "block_length": None}, "n_blocks of HistoryInformed must be an integer"),
        ({"block_length": 5}, r"block_length of HistoryInformed must be an integer in \[1, 4\]; got 5"),
        ({"history_days": 0}, "history_days of HistoryInformed must be an integer of at least 1; got 0"),
        ({"relearn_days": -1}, "relearn_days of HistoryInformed must be an integer of at least 0; got -1"),
        ({"days": 24}, r"days of HistoryInformed must be optstream.PublicDays, such as .*; got 24"),
        ({"scale": "3"}, "scale of HistoryInformed must be a finite number greater than 0; got '3'"),
        ({"scale": 0.0}, "scale of HistoryInformed must be a finite number greater than 0; got 0.0"),
    ],
)
def test_bad_parameters_are_named(given, message):
    with pytest.raises(ParameterError, match=message):
        informed(**given)
