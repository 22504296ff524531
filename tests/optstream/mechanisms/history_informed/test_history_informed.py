"""HistoryInformed: later days sharpen earlier ones, series off the prior are named, hours differ."""

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    SLOTS,
    TREE,
    informed,
    load,
    missed,
    run,
)


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
    for seed in range(2):
        stream = load(15, seed)
        released = run(mechanism, stream, seed)
        for day in range(8, 12):
            later = [release.measured for release in released[day + 1 : day + 4]]
            again = mechanism.revise(released[day].measured, later)
            assert again.spends == released[day].spends
            assert again.measured is released[day].measured
            truth = stream[:, day * SLOTS : (day + 1) * SLOTS]
            first.append(missed([released[day]], truth).mean())
            revised.append(missed([again], truth).mean())
    assert np.mean(revised) < 0.97 * np.mean(first)


PRECISE = PrivacyModel("1000", SLOTS, 1)


def test_series_that_jump_as_no_prior_expects_are_named_and_have_wider_bands():
    """After two weeks of habits every step jumps by up to 3 %: not enough for a day unlike all others."""
    stream = load(22, seed=5)
    stream[:, 15 * SLOTS :] *= np.random.default_rng(5).uniform(0.97, 1.03, (3, 7 * SLOTS))
    mechanism = informed(model=PRECISE)
    released = run(mechanism, stream)
    off = [mechanism.self_check(one.measured).levels_off for one in released]
    assert not any(off[:15])
    assert off[-3:] == [(1,)] * 3
    assert released[-1].standard_errors.mean() > 1.5 * released[14].standard_errors.mean()


def test_nights_are_narrow_and_noons_wide_once_blocks_show_it():
    """The same mean at all hours; every day moves the second half of its hours by a tenth, the first not."""
    random, noon = np.random.default_rng(6), np.arange(SLOTS) >= SLOTS // 2
    moved = np.exp(random.normal(0, 0.1, (3, 30, 1)) * noon)
    released = run(informed(model=PRECISE), (1000.0 * moved).reshape(3, -1))
    errors = released[-1].standard_errors.mean(axis=0)
    assert released[6].measured.before.get("hours") is None
    assert errors[noon][1:-1].min() > 2 * errors[~noon][1:-1].max()
