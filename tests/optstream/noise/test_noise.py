"""Both sources draw the laws and scales that they claim, exactly; chi-square, false alarm 1e-8 each."""

import math
import os
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import product
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import stats

from optstream.errors import NoiseError
from optstream.measurement.grouping import ON_DEVIATION
from optstream.mechanisms import base
from optstream.noise import Order, discrete_gaussian, gaussian, order_noise, secure_noise, simulated_noise
from optstream.noise.gaussian import exponent_of
from optstream.noise.laplace import AT_FIRST, _hits, chances, geometric, leading_bytes, n_low_digits
from optstream.noise.source import LARGEST_SCALE, SecureNoise

FALSE_ALARM = 1e-8
SOURCES = [secure_noise(), simulated_noise(20160201)]
LAWS = {
    "laplace": (lambda source, scale, size: source.discrete_laplace(scale, size), np.abs),
    "gaussian": (discrete_gaussian, lambda k: k**2 / 2),
}
"""How each is drawn, and minus the logarithm of its weight at k scales."""
NO_SCALE = "positive finite float"
TOO_LARGE = r"at most 2\^56.* larger epsilon or a coarser resolution"
SCALES = [0.01, 0.125, 0.3, 1.0, 1.5, 7.25, 480.0, 96001.5, LARGEST_SCALE]
SIGMAS = [0.3, 1.0, 2.5, 31.4, 28_800.125]


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


@pytest.mark.parametrize(
    ("law", "scale", "said"),
    [
        *((law, scale, NO_SCALE) for law in LAWS for scale in (0.0, -1.0, math.inf, math.nan, 1)),
        *(("laplace", scale, TOO_LARGE) for scale in (math.nextafter(2.0**56, math.inf), 2.0**62, 1e300)),
        *(("gaussian", sigma, r"in \[2\^-10, 2\^44\]") for sigma in (2.0**-11, 2.0**45)),
    ],
)
@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
def test_a_scale_that_hides_nothing_or_leaves_the_integers_is_refused(source, law, scale, said):
    with pytest.raises(NoiseError, match=said):
        LAWS[law][0](source, scale, (2,))


def log2_of_leaving_int64(scale):
    """Of P(|k| >= 2^63) = 2 q^(2^63) / (1 + q), q = exp(-1 / scale): exact but for the last digits."""
    getcontext().prec = 50
    q = (-1 / Decimal(scale)).exp()
    return float(((2 / (1 + q)).ln() - Decimal(2**63) / Decimal(scale)) / Decimal(2).ln())


def test_the_largest_scale_is_drawn_for_all_that_mechanisms_plan_and_hardly_leaves_the_integers():
    """False alarm: 100 draws of which all are below 2^48, (2^-8)^100."""
    assert log2_of_leaving_int64(LARGEST_SCALE) < -184 < -64
    assert 2 ** log2_of_leaving_int64(2.0**62) == pytest.approx(0.1353, abs=1e-3)
    for source in SOURCES:
        assert np.abs(source.discrete_laplace(LARGEST_SCALE, (100,))).max() > 2**48
    with pytest.raises(NoiseError, match="left the 64-bit integers"):
        geometric(LARGEST_SCALE, 4, bytes)
    # PeGaSus draws on a comparison at 8 times the scale that it plans with, the most of all
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

    # 5 has three bits: words are taken modulo 8, and 5, 6 and 7 are drawn again
    assert SecureNoise(random_bytes).uniform_below(np.full(7, 5)).tolist() == [0, 4, 2, 1, 3, 3, 2]
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


def exponential(exponent, bits):
    """Bounds of e^exponent by its series, in fractions alone; their distance is below 2^-bits, relatively."""
    halvings = max(0, math.ceil(exponent).bit_length())
    small = exponent / 2**halvings
    total, term, number = Fraction(1), Fraction(1), 0
    while term > Fraction(1, 2 ** (bits + halvings + 8)):
        number += 1
        term *= small / number
        total += term
    least, most = total, total + 2 * term
    for _ in range(halvings):
        least, most = least**2, most**2
    return least, most


def chance(scale, row, bits=200):
    """A digit's chance, or that of one more 2^n in the last row, between two fractions."""
    last = n_low_digits(scale)
    least, most = exponential(Fraction(2**row) / Fraction(scale), bits)
    plus = int(row < last)
    return 1 / (plus + most), 1 / (plus + least)


@pytest.mark.parametrize("scale", SCALES)
def test_the_bytes_of_each_chance_are_those_of_its_series(scale):
    assert (chances(scale, 40)[:, :8] == chances(scale, 8)).all()
    for row, digits in enumerate(chances(scale, 12)):
        found = Fraction(int.from_bytes(bytes(digits)), 256**12)
        least, most = chance(scale, row)
        assert found <= most
        assert least < found + Fraction(1, 256**12)


def test_a_chance_below_all_bytes_is_zeros_and_more_bytes_show_it():
    exponent = Fraction(100)
    assert leading_bytes(exponent, 0, 12) == bytes(12)
    least, most = exponential(exponent, 300)
    assert (
        leading_bytes(exponent, 0, 24)
        == int(256**24 / most).to_bytes(24)
        == int(256**24 / least).to_bytes(24)
    )


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.5, 7.25])
def test_the_product_of_the_digits_is_the_geometric_law(scale):
    """P(G = k) = (1 - q) q^k to within 256^-30, for k over three times 2^n."""
    n_digits = n_low_digits(scale)
    rows = [Fraction(int.from_bytes(bytes(row)), 256**32) for row in chances(scale, 32)]
    q = chance(scale, n_digits)[0] if n_digits == 0 else 1 / exponential(1 / Fraction(scale), 300)[0]
    for k in range(3 * 2**n_digits):
        high, low = divmod(k, 2**n_digits)
        found = rows[n_digits] ** high * (1 - rows[n_digits])
        for digit in range(n_digits):
            found *= rows[digit] if low >> digit & 1 else 1 - rows[digit]
        assert abs(found - (1 - q) * q**k) < Fraction(1, 256**30)


class Stream:
    def __init__(self, *calls):
        self.calls = list(calls)

    def __call__(self, count):
        given = self.calls.pop(0)
        assert len(given) == count
        return bytes(list(given))


@pytest.mark.parametrize("row", [0, 3, 6])
def test_of_all_beginnings_as_many_are_hits_as_the_chance_says(row):
    """Every two bytes once: those below the chance's first two are hits, the tie goes to the third."""
    scale, n = 7.25, 2**16
    first, second, third = (int(digit) for digit in chances(scale, AT_FIRST)[row, :3])
    beginnings = np.arange(n)
    stream = Stream(beginnings >> 8, range(256), [third + 1])
    assert _hits(scale, np.full(n, row), stream).sum() == 256 * first + second
    if third:
        stream = Stream(beginnings >> 8, range(256), [third - 1])
        assert _hits(scale, np.full(n, row), stream).sum() == 256 * first + second + 1


@pytest.mark.parametrize("place", [1, AT_FIRST - 1, AT_FIRST, 3 * AT_FIRST])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_tie_is_decided_by_the_first_byte_that_differs(place, step):
    scale, row = 480.0, 2
    digits = [int(digit) for digit in chances(scale, 4 * AT_FIRST)[row]]
    assert 0 < digits[place] < 255
    stream = Stream(*[[digit] for digit in digits[:place]], [digits[place] + step])
    assert _hits(scale, np.array([row]), stream).tolist() == [step < 0]
    assert not stream.calls


def test_digits_and_further_powers_come_from_their_own_bytes():
    """Scale 1: three digits, then 8 for each further hit. Byte 0 is a hit in each row here, 255 none."""
    scale = 1.0
    assert n_low_digits(scale) == 3
    assert (chances(scale, AT_FIRST)[:3, 0] > 0).all()
    for digits in product([0, 255], repeat=3):
        stream = Stream([*digits, 255])
        expected = sum(2**place for place, digit in enumerate(digits) if digit == 0)
        assert geometric(scale, 1, stream).tolist() == [expected]
    first, second = (int(digit) for digit in chances(scale, AT_FIRST)[3, :2])
    assert (first, second) == (0, 21)
    stream = Stream([255, 255, 255, 0], [20], [0], [20], [255])
    assert geometric(scale, 1, stream).tolist() == [16]


def test_draws_of_one_call_are_independent_of_its_size():
    """Each byte is used once: the bytes asked for are as many as the comparisons made."""
    asked = []

    def counted(count):
        asked.append(count)
        return np.random.default_rng(len(asked)).bytes(count)

    geometric(48.0, 1000, counted)
    assert asked[0] == 1000 * (n_low_digits(48.0) + 1)
    assert 0 < asked[1] < asked[0] / 100


@pytest.mark.parametrize("sigma", SIGMAS)
def test_what_is_kept_of_the_proposals_has_the_weights_of_the_law_exactly(sigma):
    """Logarithms of both weights, in fractions, differ by a constant."""
    variance, scale = Fraction(sigma) ** 2, math.floor(sigma) + 1
    constants = {
        -Fraction(k, scale) - exponent_of(sigma, k) + k**2 / (2 * variance) for k in (0, 1, 2, 7, 10**6)
    }
    assert len(constants) == 1


@pytest.mark.parametrize("sigma", SIGMAS)
def test_floats_are_as_near_to_the_chances_as_the_lemma_says(sigma):
    getcontext().prec = 50
    reach = int(12 * sigma) + 3
    distances = np.unique(np.linspace(0, reach, 400).astype(np.int64))
    found = gaussian._chance(sigma, distances)
    for distance, chance in zip(distances.tolist(), found.tolist(), strict=True):
        exponent = exponent_of(sigma, distance)
        exact = (-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        assert abs(exact - Decimal(chance)) < Decimal(2) ** -38
    assert gaussian.UNSURE > 2.0**-36


@pytest.mark.parametrize(("sigma", "distance"), [(2.5, 4), (31.4, 50)])
def test_near_a_tie_floats_do_not_decide_and_in_one_the_digits_that_follow_do(sigma, distance):
    """One of 2^56 off the chance floats cannot decide; where they can, no further digits are drawn."""
    exact = leading_bytes(exponent_of(sigma, distance), 0, 14)
    first, second = (int.from_bytes(part, "big") for part in (exact[:7], exact[7:]))
    for digits, kept in (
        ([first, second - 1], True), ([first, second + 1], False), ([first - 1], True), ([first + 1], False),
        ([0], True), ([2**56 - 1], False),
    ):  # fmt: skip
        draw = Mock(side_effect=[np.array([digit]) for digit in digits])
        assert gaussian._kept(Mock(uniform_below=draw), sigma, np.array([distance])).tolist() == [kept]
        assert [call.args[0].tolist() for call in draw.call_args_list] == [[256**7]] * len(digits)
