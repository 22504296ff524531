"""Clopper-Pearson limits, and what they make of an event's counts."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from studies.audit.statistics import clopper_pearson, epsilon_bound


@pytest.mark.parametrize("error", [0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("hits", [0, 1, 40, 99, 100])
def test_limits_are_the_quantiles_of_the_beta_distribution(hits, error):
    low, high = clopper_pearson(hits, 100, error)
    assert float(low) == pytest.approx(beta.ppf(error, hits, 101 - hits) if hits else 0.0, rel=1e-6)
    assert float(high) == pytest.approx(
        beta.isf(error, hits + 1, 100 - hits) if hits < 100 else 1.0, rel=1e-6
    )


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.5, 0.97])
def test_each_limit_is_wrong_no_more_often_than_it_says(probability):
    """Exactly: the probability, over all counts, that the limit lies on the wrong side."""
    counts, error = np.arange(201), 0.01
    low, high = clopper_pearson(counts, 200, error)
    mass = binom.pmf(counts, 200, probability)
    assert mass[low > probability].sum() <= error
    assert mass[high < probability].sum() <= error


def test_an_event_seen_on_one_side_only_shows_what_the_runs_bear_out():
    bound = float(epsilon_bound(1000, 0, 1000, 1e-9))
    assert bound == pytest.approx(np.log(1000 / np.log(2e9)), abs=0.05)
    assert float(epsilon_bound(0, 1000, 1000, 1e-9)) == -np.inf
    assert float(epsilon_bound(500, 500, 1000, 1e-9)) < 0
