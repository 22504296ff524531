"""Bands of counts hold what they say and respect 0; means under a bound are those of the truncated normal."""

import numpy as np
import pytest
from scipy import stats

from optstream.estimation.counts.bands import LEAST_DOUBTFUL, count_bands, truncated_means


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
    more = np.clip(more, 1e-3 * mean**2 + 1e-12, mean**2 / LEAST_DOUBTFUL)
    low, high = count_bands(mean, more, 1.0)
    size = mean**2 / more
    exact = [stats.nbinom.ppf(tail, size, size / (size + mean)) for tail in (0.5 - 0.95 / 2, 0.5 + 0.95 / 2)]
    assert np.array_equal(low, exact[0])
    assert np.array_equal(high, exact[1])


def test_truncated_means_are_those_of_the_truncated_normal():
    means, variances = np.array([-30.0, -2.0, 0.0, 0.5, 10.0]), np.array([1.0, 4.0, 1.0, 0.1, 1.0])
    found, spread = truncated_means(means, variances, 0.0)
    exact = stats.truncnorm(-means / np.sqrt(variances), np.inf, means, np.sqrt(variances))
    assert found[1:] == pytest.approx(exact.mean()[1:], rel=1e-6)
    assert spread[1:] == pytest.approx(exact.var()[1:], rel=1e-4)
    assert 0 < found[0] < 0.05


@pytest.mark.parametrize("mean", [0.5, 5.0, 100.0])
def test_what_is_less_known_has_no_narrower_band(mean):
    variances = mean**2 * np.geomspace(1e-3, 1e6, 60)
    low, high = count_bands(np.full(60, mean), variances, 1.0)
    assert (np.diff(high) >= 0).all()
    assert (np.diff(low) <= 0).all()
    assert (low <= mean).all()
    assert (high >= mean).all()
