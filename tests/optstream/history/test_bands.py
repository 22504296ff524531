"""Bands of counts hold what they say and respect 0."""

import numpy as np
import pytest
from scipy import stats

from optstream.history.counts import LEAST_GAMMA_SHAPE, count_bands


@pytest.mark.parametrize("mean", [0.02, 0.3, 2.0, 40.0])
def test_bands_hold_at_least_what_they_say_and_respect_0(mean):
    """100,000 counts, false alarm 3e-7; the control leaves out what counts vary around their expectation."""
    rng = np.random.default_rng(5)
    expected = rng.gamma(4.0, mean / 4.0, 100_000)
    counts = rng.poisson(expected)
    low, high = count_bands(np.array(mean), np.array(mean**2 / 4), 1.0)
    held = np.mean((counts >= low) & (counts <= high))
    assert low >= 0
    assert low == np.rint(low)
    assert held > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 1e5)
    if mean >= 40:
        assert held < 0.97
    if mean < 40:  # there most of the doubt is the expectation's
        naive = np.abs(counts - mean) <= 1.96 * mean / 2
        assert naive.mean() < 0.9


def test_ends_of_bands_are_the_quantiles_of_the_negative_binomial():
    rng = np.random.default_rng(6)
    mean, more = 10 ** rng.uniform(-6, 6, 5_000), 10 ** rng.uniform(-9, 9, 5_000)
    more = np.clip(more, 1.01e-3 * mean**2 + 1e-12, mean**2 / LEAST_GAMMA_SHAPE)
    low, high = count_bands(mean, more, 1.0)
    size = mean**2 / more
    exact = [stats.nbinom.ppf(tail, size, size / (size + mean)) for tail in (0.5 - 0.95 / 2, 0.5 + 0.95 / 2)]
    assert np.array_equal(low, exact[0])
    assert np.array_equal(high, exact[1])


@pytest.mark.parametrize(("mean", "doubt", "counted"), [(9e4, 0.0, 1.0), (9e4, 400.0, 0.1), (3.0, 0.0, 0.04)])
def test_a_large_count_and_one_that_was_measured_have_normal_bands(mean, doubt, counted):
    """100,000 counts, false alarm 6e-7; the control is the band of a count of which nothing was measured."""
    random = np.random.default_rng(7)
    deviation = np.sqrt(doubt + counted * mean)
    found = random.normal(mean, deviation, 100_000)
    truth = np.rint(found + random.normal(0.0, deviation, found.size))
    low, high = count_bands(found, np.array(doubt), counted)
    assert (low <= np.rint(found)).all()
    assert (high - low <= 4.0 * deviation + 1.0).all()
    assert (np.rint(found) <= high).all()
    held = ((low <= truth) & (truth <= high)).mean()
    assert held > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 1e5)
    if mean > 1000:
        assert held < 0.955
    if counted < 1.0:
        low, high = count_bands(found, np.array(doubt), 1.0)
        assert ((low <= truth) & (truth <= high)).mean() > 0.999
