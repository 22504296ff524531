"""Features of a day, parts by the clock and their sums; the Fourier basis and its integers."""

from datetime import date, time

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.stream import Calendar, Feature
from optstream.stream.features import BASIS_BITS, fourier_basis, integer_basis, integer_bits


def test_day_parts_are_those_of_the_paper():
    parts, day = Feature.day_parts(48)
    assert parts.parts == (range(0, 14), range(14, 24), range(24, 36), range(36, 48))
    assert day.parts == (range(0, 48),)
    for bad in (46, 50, 12, 0, 48.0):
        with pytest.raises(ParameterError, match="7, 12 and 18 h"):
            Feature.day_parts(bad)


@pytest.mark.parametrize("day", [date(2016, 3, 27), date(2016, 10, 30), date(2016, 2, 1)])
def test_clock_features_follow_the_wall_clock_on_every_day(day):
    times = Calendar(30, "Europe/Paris").local_times(day)
    feature = Feature.from_clock(["07:00", time(12), "18:00"], times)
    assert feature.n_steps == len(times)
    assert [times[part.start].time() for part in feature.parts] == [time(0), time(7), time(12), time(18)]


@pytest.mark.parametrize("times", [["12:00", "07:00"], ["07:00", "07:00"], ["7 h"], [7]])
def test_bad_clock_times_are_named(times):
    with pytest.raises(ParameterError, match="times of feature 'f'"):
        Feature.from_clock(times, Calendar(30, "UTC").local_times(date(2016, 1, 1)), "f")


@pytest.mark.parametrize(
    "parts", [(), (range(0, 2), range(1, 3)), (range(0, 2), range(3, 4)), (range(1, 2),)]
)
def test_parts_that_overlap_or_leave_a_gap_are_refused(parts):
    with pytest.raises(ParameterError, match="part"):
        Feature(parts)


def test_sums_of_the_papers_example_3():
    feature = Feature((range(0, 4), range(4, 9), range(9, 12)), "morning, afternoon, evening")
    connections = np.array([[10, 15, 20, 23, 41, 72, 55, 50, 88, 72, 40, 18]])
    assert feature.sums(connections).tolist() == [[68, 306, 130]]


LENGTHS = [1, 2, 3, 4, 5, 8, 46, 47, 48, 50, 337]


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
