"""Geometric integers have their stated law exactly: chances by other arithmetic, digits by enumeration."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.errors import NoiseError
from optstream.noise.laplace import AT_FIRST, _hits, chances, geometric, leading_bytes, n_low_digits
from optstream.noise.source import LARGEST_SCALE

SCALES = [0.01, 0.125, 0.3, 1.0, 1.5, 7.25, 480.0, 96001.5, LARGEST_SCALE]


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
    """Bytes that were written down, call by call."""

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


def test_a_draw_beyond_the_integers_is_refused():
    with pytest.raises(NoiseError, match="left the 64-bit integers"):
        geometric(LARGEST_SCALE, 4, bytes)


def test_draws_of_one_call_are_independent_of_its_size():
    """Each byte is used once: the bytes asked for are as many as the comparisons made."""
    asked = []

    def counted(count):
        asked.append(count)
        return np.random.default_rng(len(asked)).bytes(count)

    geometric(48.0, 1000, counted)
    assert asked[0] == 1000 * (n_low_digits(48.0) + 1)
    assert 0 < asked[1] < asked[0] / 100
