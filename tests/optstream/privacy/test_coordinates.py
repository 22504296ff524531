"""What a window pays for Fourier coordinates at worst: against the accountant over every row of periods."""

from fractions import Fraction
from itertools import product
from math import sqrt

import pytest

from optstream.measurement.fourier import CoordinatesChange
from optstream.privacy import worst_window

ONE = Fraction(1)


def tilings(n_steps, shortest):
    """Every row of whole periods that together have at most so many steps."""
    yield ()
    for first in range(shortest, n_steps + 1):
        for rest in tilings(n_steps - first, shortest):
            yield (first, *rest)


def cost_of(change, lengths):
    spends, at = [], 0
    for length in lengths:
        spends.append(change.spend("coordinates", length, at, ONE))
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
    spend = change.spend("coordinates", 9, 0, ONE)
    assert spend.charges == tuple(change.within(9, n) for n in range(10))
    assert spend.charges[9] > spend.charges[4]
    assert worst_window([spend], 4).epsilon == spend.charges[4]
