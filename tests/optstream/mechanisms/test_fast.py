"""FAST: its cost over any periods, its decisions and its filter."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.mechanisms.fast import Fast
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, StepSpend, worst_window
from tests.optstream.mechanisms.planned_days import released
from tests.optstream.mechanisms.silent_noise import SilentNoise

ALMOST = 1 - Fraction(1, 2**40)
MODEL = PrivacyModel("1", 48, 2, "0.5")
WALK = np.round(500 + np.cumsum(np.random.default_rng(5).normal(0, 20, (2, 96)), axis=1))


def build(model=MODEL, **changes):
    return Fast(model, **({"n_samples": 10} | changes))


@pytest.mark.parametrize("sampling", ["adaptive", "fixed"])
@pytest.mark.parametrize("samples", [1, 7, 48])
def test_it_states_epsilon_and_its_noise_is_that_of_m_samples(sampling, samples):
    mechanism = build(n_samples=samples, sampling=sampling)
    assert ALMOST < mechanism.epsilon <= 1
    (plan,) = mechanism.plan(48)
    assert (plan.cap, float(plan.scale)) == (samples, 4.0 * samples)
    assert ALMOST < worst_window([plan], 48).epsilon <= 1


def test_values_and_variances_are_the_filters():
    """By the recursion written out step by step, in the unit of the readings."""
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


def test_fixed_rate_is_every_ceil_of_w_over_m_steps():
    (release,) = released(build(n_samples=10, sampling="fixed"), WALK, [])
    assert release.measured.positions == tuple(range(0, 96, 5))


def test_a_series_that_jumps_is_sampled_sooner_than_one_that_stays():
    """Noise far below the values: the feedback is that of the series."""
    model = PrivacyModel("1", 200, "0.001", "0.001")
    mechanism = Fast(model, n_samples=40, integration_time=2)
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
    once = StepSpend(0, "samples", 40, (1,), Fraction(8), 4)
    for spends, first in (([once], 0), ([once, once], 40)):
        state = mechanism.recall(spends)
        for lengths in ([60], [8, 52]):
            at, measured = 48, []
            for length in lengths:
                release = mechanism.release(
                    np.ones((1, length)), noise=simulated_noise(1), first_step=at, state=state
                )
                measured += [at + position for position in release.measured.positions]
                state, at = release.state, at + length
            assert measured[0] == 48 + first
            state = mechanism.recall(spends)


def test_a_state_of_other_series_is_refused_before_anything_is_drawn():
    (first,), noise = released(build(), WALK[:, :48], []), SilentNoise()
    with pytest.raises(ParameterError, match="state of Fast is of 2 series; the period has 3"):
        build().measure(np.ones((3, 4)), noise=noise, first_step=48, state=first.state)
    assert noise.asked == []


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
