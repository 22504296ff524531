"""Fourier: integers of its basis, exact coordinates within Lemma 8, what it costs and publishes."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from optstream.measurement.fourier import (
    COORDINATES,
    CoordinatesChange,
    exact_coordinates,
    measure_coordinates,
)
from optstream.mechanisms.fourier import Fourier
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import PrivatePeriod
from optstream.stream.features import BASIS_BITS, fourier_basis, integer_basis, integer_bits
from optstream.stream.private_period import LARGEST_UNITS, LONGEST_IN_INT64
from tests.optstream.mechanisms.silent_noise import SilentNoise

LENGTHS = [1, 2, 3, 4, 5, 8, 46, 47, 48, 50, 337]
ONE_DEVICE = PrivacyModel("1", 48, 1, unit="roaming")


def from_numpy(series):
    transform = np.fft.rfft(series, norm="ortho")
    found = [transform[0].real]
    for coefficient in transform[1:]:
        found += [np.sqrt(2) * coefficient.real, np.sqrt(2) * coefficient.imag]
    if len(series) % 2 == 0:
        found = [*found[:-2], transform[-1].real]
    return np.array(found)


@pytest.mark.parametrize("n_steps", LENGTHS)
def test_coordinates_are_those_of_numpys_orthonormal_transform(n_steps):
    series = np.random.default_rng(n_steps).normal(size=n_steps)
    for n_coefficients in (1, 2, 10, 24, 25, 30):
        basis = fourier_basis(n_steps, 2 * n_coefficients - 1)
        assert basis.shape == (min(2 * n_coefficients - 1, n_steps), n_steps)
        np.testing.assert_allclose(basis @ series, from_numpy(series)[: len(basis)], atol=1e-12)


@pytest.mark.parametrize("n_steps", [*LENGTHS, 1000])
def test_the_integers_differ_from_the_basis_by_less_than_they_say(n_steps):
    exact = np.ldexp(fourier_basis(n_steps, n_steps), integer_bits(n_steps))
    error = np.ldexp(integer_basis(n_steps, n_steps) - exact, -integer_bits(n_steps))
    assert np.linalg.norm(error) < 2.0**-BASIS_BITS
    assert np.abs(error).max() < 2.0 ** -integer_bits(n_steps)


def moved(one, other, n_coordinates):
    gap = exact_coordinates(other, n_coordinates) - exact_coordinates(one, n_coordinates)
    return int(np.abs(gap).sum())


@pytest.mark.parametrize("n_steps", [1, 2, 5, 47, 48])
@pytest.mark.parametrize("largest", [3, 10**6, 2**49])
def test_coordinates_are_the_rounded_integer_map_whatever_their_size(n_steps, largest):
    values = np.random.default_rng(n_steps).integers(-largest, largest, (3, n_steps), endpoint=True)
    values[0] = largest
    basis, bits = integer_basis(n_steps, 19), integer_bits(n_steps)
    found = exact_coordinates(values, 19)
    for series, row in product(range(3), range(len(basis))):
        total = sum(int(x) * int(b) for x, b in zip(values[series], basis[row], strict=True))
        assert found[series, row] == (2 * total + 2**bits) // 2 ** (bits + 1)
    expected = values @ fourier_basis(n_steps, 19).T
    np.testing.assert_allclose(found, expected, atol=1 + largest * 2.0**-26 * n_steps)


@pytest.mark.parametrize("n_steps", [1440, LONGEST_IN_INT64, LONGEST_IN_INT64 + 1])
def test_coordinates_of_the_largest_readings_and_the_longest_periods_are_exact(n_steps):
    basis, bits = integer_basis(n_steps, 3), integer_bits(n_steps)
    values = np.where(basis < 0, -LARGEST_UNITS, LARGEST_UNITS)
    sums = values.astype(object) @ basis.T.astype(object)
    assert exact_coordinates(values, 3).tolist() == ((sums + 2 ** (bits - 1)) >> bits).tolist()


@pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("n_coordinates", [1, 3, 5, 7])
@pytest.mark.parametrize("alpha", [1, pytest.param(7, marks=pytest.mark.nightly), 1000])
def test_no_change_of_one_series_moves_them_further_than_the_bound(n_steps, n_coordinates, alpha):
    generator = np.random.default_rng(n_steps * alpha)
    change, far = CoordinatesChange(n_coordinates, alpha, 1, 1, 48, n_steps), [0] * (n_steps + 1)
    for one in generator.integers(-5000, 5000, (3, 1, n_steps)):
        for signs in product((-1, 0, 1), repeat=n_steps):
            n_changed = int(np.count_nonzero(signs))
            found = moved(one, one + alpha * np.array([signs]), n_coordinates)
            far[n_changed] = max(far[n_changed], found)
    assert all(found <= change.within(n_steps, n) for n, found in enumerate(far))
    if alpha == 1000:
        # and the bound is no idle one: a mean alone attains it, all coordinates come within a third
        assert far[n_steps] / change.within(n_steps, n_steps) > (0.98 if n_coordinates == 1 else 0.66)


@pytest.mark.parametrize(("per_step", "per_period"), [(1, 1), (1, 2), (1, None), (2, 2), (2, 3), (2, None)])
@pytest.mark.parametrize("n_steps", [4, pytest.param(47, marks=pytest.mark.nightly), 48])
def test_no_customer_who_moves_moves_them_further_than_the_bound(n_steps, per_step, per_period):
    """Random signs and places, and what makes the most of the coordinates: each place its own steps."""
    alpha, generator = 1000, np.random.default_rng(n_steps)
    n_series = per_period or per_step * n_steps
    change = CoordinatesChange(19, alpha, per_step, per_period, n_steps, n_steps)
    one, furthest = generator.integers(-5000, 5000, (n_series, n_steps)), 0.0
    for run in range(200):
        steps = generator.permutation(n_steps)[: generator.integers(1, n_steps, endpoint=True)]
        other = one.copy()
        for at, step in enumerate(sorted(steps)):
            places = (at * per_step + np.arange(per_step)) % n_series
            if run % 2:
                places = generator.permutation(n_series)[:per_step]
            other[places, step] += alpha * generator.choice((-1, 1), per_step)
        found, most = moved(one, other, 19), change.within(n_steps, len(steps))
        assert found <= most
        furthest = max(furthest, found / most)
    assert furthest > 0.6


@pytest.mark.parametrize("window", [3, 48])
def test_the_spend_charges_what_n_steps_move_over_the_scale_of_the_noise_on_every_coordinate(window):
    period = PrivatePeriod.from_values(np.ones((2, 6)), resolution=Fraction(1), first_step=17)
    change, noise = CoordinatesChange(3, 10, 1, 1, window, 6), SilentNoise(7)
    measured = measure_coordinates(period, change, Fraction(25), noise)
    (spend,) = measured.spends
    assert (spend.stage, spend.first_step, spend.n_steps, spend.level) == (COORDINATES, 17, 6, 0)
    assert spend.charges == tuple(Fraction(change.within(6, n), 25) for n in range(7))
    assert measured.simulated
    assert measured.points.shape == (2, 0)
    assert noise.asked == [(25.0, (2, 3))]
    assert np.array_equal(measured.answers.values[0], exact_coordinates(np.ones((2, 6), np.int64), 3) + 7)
    assert np.all(measured.answers.variances[0] == 2 * 25.0**2)


def tilings(n_steps, shortest):
    """Every sequence of whole periods with at most this many steps in all."""
    yield ()
    for first in range(shortest, n_steps + 1):
        for rest in tilings(n_steps - first, shortest):
            yield (first, *rest)


def cost_of(change, lengths):
    spends, at = [], 0
    for length in lengths:
        spends.append(change.spend("coordinates", length, at, Fraction(1)))
        at += length
    return worst_window(spends, change.window_length).epsilon


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("shortest", [1, 2, 3, 7])
def test_the_worst_window_is_that_of_the_worst_of_all_rows_of_periods(window, shortest):
    """Coordinates, alpha, leaves that change in a step and in a period: of all kinds."""
    for moved in ((1, 1, 1, 1), (3, 1000, 1, 1), (5, 10, 2, 2), (5, 1000, 2, None), (3, 1000, 1, 2)):
        change = CoordinatesChange(*moved, window, shortest)
        ends = range(shortest, max(shortest, moved[0], window) + 3)
        found = max(
            cost_of(change, (first, *inner, last))
            for first, last in product(ends, repeat=2)
            for inner in tilings(window - 1, shortest)
        )
        assert found == change.worst(), moved


@pytest.mark.parametrize(
    "shortest",
    [1, pytest.param(3, marks=pytest.mark.nightly), 19, pytest.param(46, marks=pytest.mark.nightly), 48, 96],
)
def test_the_bound_for_any_length_holds_for_each(shortest):
    for per_period in (1, 2, None):
        change = CoordinatesChange(19, 1000, 1, per_period, 48, shortest)
        for n_changed in range(1, 49):
            every = [change.within(p, n_changed) for p in range(max(shortest, n_changed), 200)]
            assert max(every) == change.partly(n_changed)


def test_what_n_steps_move_grows_like_their_root_and_never_falls():
    change = CoordinatesChange(19, 10**6, 1, 1, 48, 48)
    moves = [change.within(48, n) for n in range(49)]
    assert moves == sorted(moves)
    for n in range(4, 49):
        assert moves[n] / 10**6 == pytest.approx(sqrt(19 * n), rel=1e-4)
    # one or two steps are in few places of a long row: 19 / sqrt(48) each
    assert moves[1] / 10**6 == pytest.approx(19 / sqrt(48), rel=1e-4)
    assert moves[2] / 10**6 == pytest.approx(2 * 19 / sqrt(48), rel=1e-4)


def test_integers_beyond_64_bits_are_still_exact():
    small, huge = (CoordinatesChange(19, alpha, 1, 1, 48, 48) for alpha in (10**12, 10**30))
    assert huge.worst() / 10**30 == pytest.approx(small.worst() / 10**12, rel=1e-9)
    assert huge.worst() == 2 * huge.within(48, 24)


def test_a_whole_period_that_is_longer_than_a_window_is_charged_for_all_of_its_steps():
    """Temporal leakage by periods reads what all steps cost; the accountant never looks beyond a window."""
    change = CoordinatesChange(3, 1000, 1, 1, 4, 4)
    spend = change.spend("coordinates", 9, 0, Fraction(1))
    assert spend.charges == tuple(change.within(9, n) for n in range(10))
    assert spend.charges[9] > spend.charges[4]
    assert worst_window([spend], 4).epsilon == spend.charges[4]


def lost_by_a_roaming_device(scale, n_coefficients):
    """What a device in another leaf at each step loses: the L1 change of the coordinates over the scale."""
    flat = PrivatePeriod.from_values(np.zeros((48, 48)), resolution=ONE_DEVICE.resolution, first_step=0)
    moved = PrivatePeriod.from_values(np.eye(48), resolution=ONE_DEVICE.resolution, first_step=0)
    mechanism = Fourier(ONE_DEVICE, n_coefficients)
    one, other = (mechanism.measure(side, noise=SilentNoise()).answers.values[0] for side in (flat, moved))
    return np.abs(one - other).sum() / scale


@pytest.mark.parametrize(("n_coefficients", "in_one_leaf"), [(1, 1.0), (10, 2.75), (24, 4.27)])
def test_a_device_in_another_leaf_at_each_step_loses_no_more_than_epsilon(n_coefficients, in_one_leaf):
    """Control: noise for a device in one leaf a period, which nothing in the guarantee holds it to."""
    mechanism = Fourier(ONE_DEVICE, n_coefficients)
    assert 0.5 < lost_by_a_roaming_device(mechanism.scale, n_coefficients) <= 1
    staying = replace(mechanism.change, leaves_per_period=1).worst()
    assert lost_by_a_roaming_device(staying, n_coefficients) == pytest.approx(in_one_leaf, abs=0.02)


@pytest.mark.parametrize("n_steps", [1, 2, 5, 8, 47, 48, 50])
@pytest.mark.parametrize("n_coefficients", [1, 3, 24, 25, 60])
def test_without_noise_it_publishes_the_low_frequencies_of_numpys_transform(n_steps, n_coefficients):
    generator, hours = np.random.default_rng(0), np.linspace(0, 2 * np.pi, n_steps, endpoint=False)
    values = 100 + 300 * np.sin(hours + generator.random((3, 1))) + generator.random((3, n_steps))
    mechanism = Fourier(PrivacyModel("1", 48, 10), n_coefficients, shortest_period=1)
    released = mechanism.release(values, noise=SilentNoise()).values
    transform = np.fft.rfft(values)
    if 2 * n_coefficients - 1 < n_steps:
        transform[:, n_coefficients:] = 0
    # a coordinate is rounded to 0.001, a reading too
    np.testing.assert_allclose(released, np.fft.irfft(transform, n_steps), atol=0.001 * (1 + sqrt(n_steps)))
