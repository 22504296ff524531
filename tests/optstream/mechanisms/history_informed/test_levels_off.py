"""The prior predictive check, and hours that differ: in noisy numbers alone."""

import numpy as np

from optstream.privacy import PrivacyModel
from tests.optstream.mechanisms.history_informed.hourly_streams import SLOTS, informed, load, run

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
