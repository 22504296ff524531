"""HistoryInformed: learning reads noise only, a state can be lost, later days sharpen earlier ones."""

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformedTree
from optstream.noise import simulated_noise
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    SLOTS,
    TREE,
    informed,
    load,
    missed,
    run,
)


@pytest.mark.slow
def test_standard_errors_cover_what_they_should():
    """15 days, 3 series: at 95 % the mean cover of correlated errors is between 85 and 99.9 %."""
    stream = load(24, seed=3)
    released = run(informed(), stream, seed=4)[9:]
    errors = missed(released, stream[:, 9 * SLOTS :])
    bands = 1.96 * np.concatenate([release.standard_errors for release in released], axis=1)
    assert 0.85 < (errors < bands).mean() < 0.999
    assert (errors < bands / 4).mean() < 0.6


def test_what_is_prepared_before_a_draw_changes_nothing_of_it():
    mechanism, stream = HistoryInformedTree(informed(), TREE, ["1/2", "1/2"]), load(9)
    state = run(mechanism, stream[:, : 8 * SLOTS])[-1].state
    ready = mechanism.prepared(state, 8 * SLOTS)
    assert ready["learned"] is not None
    one, other = (
        mechanism.measure(
            stream[:, 8 * SLOTS :], noise=simulated_noise(3), first_step=8 * SLOTS, state=given
        ).to_bytes()
        for given in (state, ready)
    )
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("on_tree", [False, True], ids=["series", "tree"])
def test_later_measurements_sharpen_an_earlier_day_at_no_cost(on_tree):
    mechanism = HistoryInformedTree(informed(), TREE, ["1/2", "1/2"]) if on_tree else informed()
    first, revised = [], []
    for seed in range(3):
        stream = load(17, seed)
        released = run(mechanism, stream, seed)
        for day in range(8, 14):
            later = [release.measured for release in released[day + 1 : day + 4]]
            again = mechanism.revise(released[day].measured, later)
            assert again.spends == released[day].spends
            assert again.measured is released[day].measured
            truth = stream[:, day * SLOTS : (day + 1) * SLOTS]
            first.append(missed([released[day]], truth).mean())
            revised.append(missed([again], truth).mean())
    assert np.mean(revised) < 0.97 * np.mean(first)
