"""FAST: its decisions; its filter and its controller by hand; steps chosen in turn."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optstream.errors import ParameterError
from optstream.measurement.sums import measure_in_turn
from optstream.mechanisms.fast import ConstantState, Fast, SamplingController, StraightLine
from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, PrivacyModel, StepSpend, charged_to_windows
from optstream.stream import PrivatePeriod
from tests.optstream.mechanisms.planned_days import in_turn, released
from tests.optstream.mechanisms.silent_noise import ListedNoise, Undrawn

MODEL = PrivacyModel("1", 48, 2, "0.5")
WALK = np.round(500 + np.cumsum(np.random.default_rng(5).normal(0, 20, (2, 96)), axis=1))
LONG = PrivacyModel("1", 100, "2", resolution=1)
ADAPTIVE = Fast(LONG, proportional=0.7, integral=0.2, derivative=0.1, integration_time=2)


def build(model=MODEL, **changes):
    return Fast(model, **({"n_samples": 10} | changes))


def test_values_and_variances_are_the_filters():
    mechanism = build(process_deviation=6.0)
    (release,) = released(mechanism, WALK, [])
    estimate, measured = mechanism.fitted(release.measured), release.measured
    noise_variance, mean, variance = 2 * (0.5 * 40.0) ** 2, None, None
    for step in range(96):
        variance = None if variance is None else variance + 36.0
        if step in measured.positions:
            noisy = measured.point_values[:, measured.positions.index(step)]
            if mean is None:
                mean, variance = noisy, noise_variance
            else:
                gain = variance / (variance + noise_variance)
                mean, variance = mean + gain * (noisy - mean), (1 - gain) * variance
        assert np.allclose(estimate.values[:, step], mean)
        assert np.allclose(estimate.variances[:, step], variance)
    assert np.array_equal(release.values, estimate.values)


def test_a_series_that_jumps_is_sampled_sooner_than_one_that_stays():
    """Noise far below the values: the feedback is that of the series."""
    mechanism = Fast(PrivacyModel("1", 200, "0.001", "0.001"), n_samples=40, integration_time=2)
    still = np.full((1, 200), 1000.0)
    moving = np.cumsum(np.full((1, 200), 400.0), axis=1) * np.tile([1, -1], 100)
    counts = {
        name: len(mechanism.measure(values, noise=simulated_noise(1)).positions)
        for name, values in (("still", still), ("moving", moving))
    }
    assert counts["moving"] == 40
    assert counts["still"] < 15


def test_a_step_that_was_measured_twice_counts_twice():
    mechanism = build(n_samples=2)
    assert mechanism.recall(mechanism.plan(3, 40))["points"] == [40, 41, 42], "of a period not drawn yet"
    once = StepSpend(0, "samples", 40, (1,), Fraction(8), 4)
    for spends, first in (([once], 0), ([once, once], 40)):
        state = mechanism.recall(spends)
        for lengths in ([60], [8, 52]):
            periods = [np.ones((1, length)) for length in lengths]
            measured = in_turn(mechanism.measure, periods, lambda step: simulated_noise(1), 48, state)
            assert next(one.first_step + at for one in measured for at in one.positions) == 48 + first


def test_a_state_of_other_series_is_refused_before_anything_is_drawn():
    (first,) = released(build(), WALK[:, :48], [])
    with pytest.raises(ParameterError, match="state of Fast is of 2 series; the period has 3"):
        build().measure(np.ones((3, 4)), noise=Undrawn(), first_step=48, state=first.state)


def test_another_mechanisms_memory_and_that_of_a_later_period_are_not_used():
    mechanism = build()
    first, second = released(mechanism, WALK, [48])
    assert mechanism.recall(first.spends, {"mechanism": "Sample", "held": [1]}).keys() == {
        "mechanism",
        "points",
    }
    late = mechanism.recall(second.spends, second.state)
    measured = mechanism.measure(WALK[:, :48], noise=simulated_noise(1), first_step=0, state=late)
    assert measured.positions
    assert np.isfinite(mechanism.estimate(measured).values).all()


# Its filter and its controller.


def test_a_line_through_the_last_two_and_its_noise():
    line = StraightLine(2.0, {})
    assert line.prior(0) is None
    line.correct(0, np.array([10.0]))
    assert (line.prior(7).mean[0], line.prior(7).variance) == (10.0, 2.0)
    line.correct(4, np.array([18.0]))
    line.correct(6, np.array([17.0]))
    for step, beyond in ((7, 0.5), (8, 1.0), (9, 1.0), (100, 1.0)):
        prior = line.prior(step)
        assert prior.mean[0] == pytest.approx(17.0 + beyond * (17.0 - 18.0))
        assert prior.variance == pytest.approx(2.0 * (beyond**2 + (1 + beyond) ** 2))


def test_feedback_by_hand():
    errors = [(0, 0.9), (10, 0.4), (14, 0.2)]
    expected = 0.7 * 0.2 + 0.2 * (0.4 + 0.2) / 2 + 0.1 * (0.2 - 0.4) / 4
    assert ADAPTIVE.feedback(errors) == pytest.approx(expected)
    assert ADAPTIVE.next_interval(12.0, errors) == pytest.approx(
        12.0 + 5 * (1 - math.exp((expected - 0.1) / 0.1))
    )


def test_the_next_sample_is_k_plus_the_interval_not_a_multiple_of_it():
    steered = SamplingController(Fast(LONG, n_samples=20, sampling="fixed"), ConstantState(1.0, 3.0, {}), {})
    assert steered.due(7)
    for measured, expected in ((7, 12), (13, 18)):
        steered.saw(measured, np.array([4]))
        assert next(step for step in range(measured + 1, 30) if steered.due(step)) == expected


def test_the_error_is_the_mean_over_series_of_the_relative_correction():
    """Signed errors would cancel here: one series is corrected up, the other down by as much."""
    steered = SamplingController(ADAPTIVE, ConstantState(1.0, 3.0, {}), {})
    steered.saw(0, np.array([100, 100]))
    steered.saw(1, np.array([170, 30]))
    moved = 4 / 7 * 70
    expected = (moved / (100 + moved) + moved / (100 - moved)) / 2
    assert steered.memory()["errors"] == [[1, pytest.approx(expected)]]


@pytest.mark.parametrize("known", [{"interval": "x"}, {"errors": [["q", 1]]}])
def test_a_state_that_cannot_be_read_is_refused_before_a_draw(known):
    state = {"mechanism": "Fast", "points": [], "n_series": None, **known}
    with pytest.raises(ValueError, match=r"could not convert|invalid literal"):
        build().measure(WALK[:, :48], noise=Undrawn(), first_step=48, state=state)


def period_of(values, first_step=0):
    return PrivatePeriod(np.array(values, dtype=np.int64), resolution=Fraction(1), first_step=first_step)


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
