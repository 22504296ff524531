"""The block plan: no window holds more than its blocks; and draws are as priced."""

import itertools
from fractions import Fraction

import numpy as np

from optstream.measurement.blocks import BLOCKS, DriftingBlocks, measure_blocks
from optstream.noise import simulated_noise
from optstream.privacy import StepSpend
from optstream.stream import Measured, PrivatePeriod
from tests.optstream.mechanisms.silent_noise import SilentNoise


def covered(blocks, lengths, first_step):
    """How often each step is measured over periods of these lengths, by the rule period after period."""
    counts, at = [], first_step
    for length in lengths:
        own = np.zeros(length, dtype=int)
        for part in blocks.parts(at, length):
            own[part.start : part.stop] += 1
        counts.append(own)
        at += length
    return np.concatenate(counts)


def fullest(counts, window):
    return max(int(counts[start : start + window].sum()) for start in range(len(counts)))


def every_small_plan():
    for window, drift in itertools.product(range(1, 11), range(4)):
        drift = min(drift, window)
        for n_blocks in range(1, window + 1):
            for length in range(1, window // n_blocks + 1):
                yield DriftingBlocks(window, n_blocks, length, drift)


def test_no_window_holds_more_than_its_blocks_and_some_window_holds_all_of_them():
    """Brute force over every window of every small plan, with awkward periods and origins."""
    plans = list(every_small_plan())
    assert len(plans) > 350
    for blocks in plans:
        most = blocks.n_blocks * blocks.length
        for first_step in (-7, 0, 5):
            counts = covered(blocks, [3, 1, 7, 2, 11, 5, 1, 1, 13], first_step)
            assert counts.max(initial=0) <= 1
            assert fullest(counts, blocks.window_length) <= most
        if blocks.drift and blocks.cycle // blocks.n_blocks < blocks.length + blocks.drift:
            continue  # the gap between blocks is shorter than the drift: a little is given away
        counts = covered(blocks, [12 * blocks.cycle], 0)
        assert fullest(counts, blocks.window_length) == most


def spend_of(weights, scale=Fraction(2)):
    return StepSpend(0, BLOCKS, 10, weights, scale, 1)


def period_of(values):
    return PrivatePeriod.from_values(np.array(values, dtype=float), resolution=Fraction(1), first_step=10)


def test_each_part_is_a_sum_with_noise_of_the_spends_scale():
    noise, values = SilentNoise(5), np.arange(12.0).reshape(2, 6)
    parts = (range(0, 1), range(2, 5))
    measured = measure_blocks(period_of(values), parts, spend_of((1, 0, 1, 1, 1, 0)), noise)
    assert measured.answers.values[0].tolist() == [[5, 14], [11, 32]]
    assert noise.asked == [(2.0, (2, 2))]
    assert np.all(measured.answers.variances[0] == 2 * 2.0**2)


def test_no_part_measures_nothing_and_survives_its_bytes():
    measured = measure_blocks(period_of(np.ones((2, 6))), (), spend_of((0,) * 6), simulated_noise(1))
    assert measured.answers.values[0].shape == (2, 0)
    again = Measured.from_bytes(measured.to_bytes())
    assert again.answers.values[0].shape == (2, 0)
    assert again.to_bytes() == measured.to_bytes()
