"""Both noise sources follow the discrete Laplace distribution of the scale that they claim.

Chi-squared over 41 cells, 40,000 draws: the test rejects a right sampler with probability 1e-8 (the
quantile below), and must reject the same draws against 0.7 and 1.3 times the scale.
"""

import os
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from optstream.errors import NoiseError
from optstream.noise import secure_noise, simulated_noise

FALSE_ALARM = 1e-8
SOURCES = [secure_noise(), simulated_noise(20160201)]


def chi_squared_rejects(draws, scale):
    """Whether the draws are refused as discrete Laplace of this scale."""
    edges = np.unique(np.round(np.linspace(-3 * scale, 3 * scale, 40)).astype(int))
    stop = -np.expm1(-1 / scale)

    def cumulative(k):
        k = np.asarray(k, dtype=float)
        tail = np.exp(-np.abs(k + (k >= 0)) / scale) / (2 - stop)
        return np.where(k >= 0, 1 - tail, np.exp(-np.abs(k) / scale) / (2 - stop))

    probabilities = np.diff(np.concatenate([[0.0], cumulative(edges), [1.0]]))
    cells = np.searchsorted(edges, draws, side="left")
    counts = np.bincount(cells, minlength=len(probabilities))
    statistic = np.sum((counts - draws.size * probabilities) ** 2 / (draws.size * probabilities))
    return statistic > stats.chi2.isf(FALSE_ALARM, len(probabilities) - 1)


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
@pytest.mark.parametrize("scale", [2.5, 480.0, 96000.0])
def test_draws_follow_the_claimed_scale_and_no_other(source, scale):
    draws = source.discrete_laplace(scale, (40_000,))
    assert draws.dtype == np.int64
    assert not chi_squared_rejects(draws, scale)
    assert chi_squared_rejects(draws, 0.7 * scale)
    assert chi_squared_rejects(draws, 1.3 * scale)


def test_the_seed_repeats_and_the_secure_source_does_not():
    again = [simulated_noise(7).discrete_laplace(1e9, (3, 2)).tolist() for _ in range(2)]
    assert again[0] == again[1]
    # 2^-180 that six draws of this scale coincide
    fresh = [secure_noise().discrete_laplace(1e9, (3, 2)).tolist() for _ in range(2)]
    assert fresh[0] != fresh[1]
    assert simulated_noise(7).simulated
    assert not secure_noise().simulated


def test_the_privacy_map_confirms_the_loss_of_each_scale():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    for epsilon in ("1/3", "1/48", "0.01"):
        scale = float(10_000 / Fraction(epsilon))
        mechanism = dp.m.make_laplace(
            dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=scale
        )
        assert abs(mechanism.map(10_000) - float(Fraction(epsilon))) < 1e-15


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
def test_a_scale_that_hides_nothing_is_refused(source, scale):
    with pytest.raises(NoiseError, match="positive finite float"):
        source.discrete_laplace(scale, (2,))


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
def test_a_forked_process_may_not_draw(source):
    child = os.fork()
    if child == 0:
        try:
            source.discrete_laplace(10.0, (1,))
        except NoiseError:
            os._exit(42)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
