"""Publishing by distance: exact comparisons, the order of draws, and refusals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.measurement.sums import is_far, measure_by_distance, measure_in_turn
from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, StepSpend, charged_to_windows
from optstream.stream import PrivatePeriod
from tests.optstream.mechanisms.silent_noise import ListedNoise, SilentNoise


def plans(n_steps, first_step=5):
    return (
        StepSpend(0, "distance", first_step, (1,) * n_steps, Fraction(100), 1),
        CappedSpend(0, "publications", first_step, n_steps, 1, (), Fraction(3), 1),
    )


def period_of(values, first_step=0):
    return PrivatePeriod(np.array(values, dtype=np.int64), resolution=Fraction(1), first_step=first_step)


@pytest.mark.parametrize("n_series", [1, 3])
def test_the_comparison_is_strict_and_exact_where_floats_are_not(n_series):
    """2^57 and one: as floats they are the same."""
    at = 2**57 * n_series
    last = np.zeros(n_series, dtype=np.int64)
    exact = np.full(n_series, 2**57)
    for on_distance, expected in ((-1, False), (0, False), (1, True)):
        assert is_far(exact, last, 2.0**57, 1.0, SilentNoise(on_distance)) == expected
    assert float(at + 1) == float(at)


def test_what_does_not_fit_is_refused_before_anything_is_drawn():
    noise = SilentNoise()
    with pytest.raises(ParameterError, match="a last release of 2 series, and this period has 1"):
        measure_by_distance(period_of([[7, 7]], 5), [0, 0], *plans(2), None, noise)
    for wrong in (plans(3), plans(2, 6)):
        with pytest.raises(ParameterError, match="does not price the steps"):
            measure_by_distance(period_of([[7, 7]], 5), [0], *wrong, None, noise)
    assert noise.asked == []


def plan_of(n_steps, cap, taken=(), first_step=0):
    return CappedSpend(0, "samples", first_step, n_steps, cap, tuple(taken), Fraction(7), 2, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(1, 30),
    st.sets(st.integers(-10, 40)),
    st.integers(0, 2**30),
)
def test_no_window_exceeds_what_was_reserved(window, cap, n_steps, near, wish):
    """Whatever is due, and wherever other periods have their points, as long as these keep the cap."""
    taken = []
    for step in sorted(near - set(range(n_steps))):
        if sum(step - window < other for other in taken) < cap:
            taken.append(step)
    plan, period = plan_of(n_steps, cap, taken), period_of([[3] * n_steps])
    measured = measure_in_turn(
        period, plan, window, lambda step: (wish >> step) & 1, lambda *_: None, simulated_noise(1)
    )
    points = sorted([*taken, *measured.positions])
    assert all(sum(start <= p < start + window for p in points) <= cap for start in range(-20, 50))
    starts = range(-window, n_steps)
    reserved, settled = (charged_to_windows(s, window, starts) for s in ([plan], measured.spends))
    assert all(a >= b for a, b in zip(reserved, settled, strict=True))
    # and a step that was due and had headroom was not passed over
    for step in range(n_steps):
        if (wish >> step) & 1 and step not in measured.positions:
            before = [*taken, *(p for p in measured.positions if p < step), step]
            assert any(
                sum(start <= p < start + window for p in before) > cap
                for start in range(step - window + 1, step + 1)
            )


@pytest.mark.parametrize("raw", [[0, 0, 0, 0], [999, -5, 7, 12345]])
def test_the_chooser_may_depend_on_earlier_noisy_values_alone(raw):
    """The same noisy past gives the same choices, whatever the raw values behind it."""
    period, received = period_of([raw, raw], 100), []
    noise = ListedNoise({7.0: np.repeat(np.subtract([10, 30, 60, 0], raw), 2)})

    def due(step):
        return step >= 100 and (not received or received[-1][1][0] < 50)

    def saw(step, noisy):
        received.append((step, noisy.tolist()))

    measured = measure_in_turn(period, plan_of(4, 4, (), 100), 4, due, saw, noise)
    assert measured.positions == (0, 1, 2)
    assert measured.points.tolist() == [[10, 30, 60]] * 2
    assert received == [(100, [10] * 2), (101, [30] * 2), (102, [60] * 2)]
    assert measured.point_variances.tolist() == [[98.0] * 3] * 2
    (spend,) = measured.spends
    assert (spend.weights, spend.scale, spend.unit_charge) == ((1, 1, 1, 0), 7, Fraction(2, 7))
