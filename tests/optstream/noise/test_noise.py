"""Both sources draw the law and the scale that they claim: chi-square, false alarm 1e-8 each."""

import math
import os
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy import stats

from optstream.errors import NoiseError
from optstream.measurement.grouping import ON_DEVIATION
from optstream.mechanisms import base
from optstream.noise import Order, discrete_gaussian, order_noise, secure_noise, simulated_noise
from optstream.noise.source import LARGEST_SCALE, SecureNoise

FALSE_ALARM = 1e-8
SOURCES = [secure_noise(), simulated_noise(20160201)]


LAWS = {
    "laplace": (lambda source, scale, size: source.discrete_laplace(scale, size), np.abs),
    "gaussian": (discrete_gaussian, lambda k: k**2 / 2),
}
"""How each is drawn, and minus the logarithm of its weight at k scales."""


def rejects(law, draws, scale):
    """Whether the draws are refused as integers of this law and scale."""
    k = np.arange(-math.ceil(25 * scale), math.ceil(25 * scale) + 1)
    edges = np.unique(np.round(np.linspace(-2.5 * scale, 2.5 * scale, 40)).astype(int))
    weights = np.exp(-LAWS[law][1](k / scale))
    expected = np.bincount(np.searchsorted(edges, k), weights=weights, minlength=edges.size + 1)
    found = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    return stats.chisquare(found, draws.size * expected / expected.sum()).pvalue < FALSE_ALARM


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
@pytest.mark.parametrize(
    ("law", "scale"),
    [
        *(("laplace", scale) for scale in (2.5, 480.0, 96000.0)),
        *(("gaussian", scale) for scale in (0.7, 2.5, 31.4, 28_800.125)),
    ],
)
def test_draws_follow_the_claimed_scale_and_no_other(source, law, scale):
    draws = LAWS[law][0](source, scale, (40_000,))
    assert draws.dtype == np.int64
    assert not rejects(law, draws, scale)
    for wrong in (0.8, 1.2):
        assert rejects(law, draws, wrong * scale)


def test_the_seed_repeats_and_the_secure_source_does_not():
    again = [simulated_noise(7).discrete_laplace(1e9, (3, 2)).tolist() for _ in range(2)]
    assert again[0] == again[1]
    # 2^-180 that six draws of this scale coincide
    fresh = [secure_noise().discrete_laplace(1e9, (3, 2)).tolist() for _ in range(2)]
    assert fresh[0] != fresh[1]
    assert simulated_noise(7).simulated
    assert not secure_noise().simulated


HIDES_NOTHING = "positive finite float"
TOO_LARGE = r"at most 2\^56.* larger epsilon or a coarser resolution"


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        *((scale, HIDES_NOTHING) for scale in (0.0, -1.0, math.inf, math.nan)),
        *((scale, TOO_LARGE) for scale in (math.nextafter(LARGEST_SCALE, math.inf), 2.0**62, 1e300)),
    ],
)
@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
def test_a_scale_that_hides_nothing_or_leaves_the_integers_is_refused(source, scale, said):
    with pytest.raises(NoiseError, match=said):
        source.discrete_laplace(scale, (2,))


def log2_of_leaving_int64(scale):
    """Of P(|k| >= 2^63) = 2 q^(2^63) / (1 + q), q = exp(-1 / scale): exact but for the last digits."""
    getcontext().prec = 50
    q = (-1 / Decimal(scale)).exp()
    return float(((2 / (1 + q)).ln() - Decimal(2**63) / Decimal(scale)) / Decimal(2).ln())


def test_the_largest_scale_leaves_the_integers_with_a_stated_probability():
    assert log2_of_leaving_int64(LARGEST_SCALE) < -184 < -64
    assert 2 ** log2_of_leaving_int64(2.0**62) == pytest.approx(0.1353, abs=1e-3)


def test_the_largest_scale_is_drawn():
    """False alarm: 100 draws of which all are below 2^48, (2^-8)^100."""
    for source in SOURCES:
        assert np.abs(source.discrete_laplace(LARGEST_SCALE, (100,))).max() > 2**48


def test_what_mechanisms_may_plan_can_be_drawn():
    """PeGaSus draws on a comparison at 8 times the scale that it plans with, the most of all."""
    assert ON_DEVIATION * base.LARGEST_SCALE <= LARGEST_SCALE


def opendps(kind, scale, size):
    """Draws of OpenDP's exact sampler: an independent piece of software."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    distance = dp.l1_distance(T="i64") if kind == "laplace" else dp.l2_distance(T="float")
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance
    return np.array(getattr(dp.m, f"make_{kind}")(*space, scale=scale)([0] * size))


@pytest.mark.parametrize(
    ("kind", "scale"), [("laplace", 0.3), ("laplace", 1.0), ("laplace", 96000.0), ("gaussian", 31.4)]
)
def test_opendp_draws_the_same_law(kind, scale):
    """Two samples in 20 cells: false alarm 1e-8. The control, 1.2 times the scale, is refused."""
    n, source = 20_000, secure_noise()
    for factor, is_right in ((1.0, True), (1.2, False)):
        ours = LAWS[kind][0](source, factor * scale, (n,))
        edges = np.unique(np.round(np.linspace(-3 * scale, 3 * scale, 19)))
        places = [np.searchsorted(edges, some) for some in (ours, opendps(kind, scale, n))]
        first, second = (np.bincount(some, minlength=edges.size + 1) for some in places)
        statistic = np.sum((first - second) ** 2 / np.maximum(first + second, 1))
        assert bool(statistic < stats.chi2.isf(FALSE_ALARM, edges.size)) is is_right


def test_a_forked_process_draws_other_noise():
    """The kernel is asked at each draw, so nothing is copied. False alarm: 2^-180, as above."""
    source = secure_noise()
    source.discrete_laplace(1e9, (1,))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.discrete_laplace(1e9, (6,)).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 48) != source.discrete_laplace(1e9, (6,)).tobytes()


@pytest.mark.parametrize(
    "draw",
    [
        lambda source: source.discrete_laplace(10.0, (1,)),
        lambda source: source.uniform_below(np.array([7])),
        lambda source: order_noise(source, 1, [Order(10.0, 2)])[0],
    ],
    ids=["laplace", "uniform", "order"],
)
def test_a_forked_process_may_not_draw_by_the_same_seed(draw):
    source = simulated_noise(20160201)
    child = os.fork()
    if child == 0:
        try:
            draw(source)
        except NoiseError:
            os._exit(42)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42


def test_uniform_integers_take_the_bits_that_they_need_and_again_until_they_are_below():
    words = iter([[0, 4, 5, 7, 8 + 3, 6, 2], [6, 1, 3], [2]])
    given = []

    def random_bytes(count):
        given.append(np.array(next(words), dtype=np.uint64).tobytes())
        assert len(given[-1]) == count
        return given[-1]

    source = SecureNoise(random_bytes)
    # 5 has three bits: words are taken modulo 8, and 5, 6 and 7 are drawn again
    assert source.uniform_below(np.full(7, 5)).tolist() == [0, 4, 2, 1, 3, 3, 2]
    assert len(given) == 3


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
def test_uniform_integers_are_uniform_up_to_the_largest_bound(source):
    """False alarm 1e-8 each; the control, bounds one larger, is refused."""
    drawn = np.bincount(source.uniform_below(np.full(60_000, 6)), minlength=7)
    for n_values, is_right in ((6, True), (7, False)):
        expected = 60_000 / n_values
        statistic = float(np.sum((drawn[:n_values] - expected) ** 2 / expected))
        assert bool(statistic < stats.chi2.isf(FALSE_ALARM, n_values - 1)) is is_right
    large = source.uniform_below(np.full(200, 2**63 - 1))
    assert large.min() >= 0
    assert large.max() > 2**60
    assert source.uniform_below(np.ones((2, 3), dtype=np.int64)).tolist() == [[0] * 3] * 2
    mixed = np.array([source.uniform_below(np.array([1, 2, 3, 2**40, 2**62])) for _ in range(300)])
    assert [set(column) for column in mixed.T[:3]] == [{0}, {0, 1}, {0, 1, 2}]  # false alarm below 1e-52
    assert (mixed < [1, 2, 3, 2**40, 2**62]).all()
    # false alarm: 300 draws that are all in one half, 2^-299
    assert mixed[:, 4].max() >= 2**61


@pytest.mark.parametrize("bound", [0, -3])
def test_a_bound_that_nothing_is_below_is_refused(bound):
    with pytest.raises(NoiseError, match="at least 1"):
        secure_noise().uniform_below(np.array([5, bound]))
