"""What PeGaSus' paper says its guarantee means: section 2.4, and the remark after Definition 2.8."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.mechanisms import PeGaSus
from optstream.privacy import PrivacyModel, worst_window
from tests.optstream.mechanisms.silent_noise import SilentNoise

THRESHOLD = 3
REACH = 40


def a_step(epsilon, alpha="1", resolution="1", **unit):
    """PeGaSus as its paper has it: epsilon for each step."""
    return PeGaSus(PrivacyModel(epsilon, 1, alpha, resolution, **unit))


@pytest.mark.parametrize("length", [1, 2, 12, 200])
def test_a_property_of_k_steps_is_kept_at_k_epsilon(length):
    """The paper's own figures: steps of 5 minutes at 0.1 are 0.2 for 10 minutes and 1.2 for an hour."""
    mechanism = a_step("0.1")
    history = [spend for first in (0, 50) for spend in mechanism.plan(50, first)]
    # never above, and below by what rounding a scale up to the next float takes
    found = worst_window(history, length).epsilon
    assert found <= min(length, 100) * Fraction(1, 10)
    assert float(found) == pytest.approx(0.1 * min(length, 100), rel=1e-12)


def test_a_user_with_few_tuples_in_an_endless_stream_loses_epsilon_for_each_of_them():
    """ℓ tuples, wherever they lie: each spend's charges of those steps add up, whatever the window."""
    spends = a_step("0.1").plan(1000)
    tuples = [0, 17, 18, 400, 999]
    lost = sum(spend.unit_charge * spend.weights[step] for spend in spends for step in tuples)
    assert float(lost) == pytest.approx(0.1 * len(tuples), rel=1e-12)


def laplace(scale):
    values = np.arange(-int(REACH * scale), int(REACH * scale) + 1)
    return values, np.exp(-np.abs(values) / scale) * np.tanh(0.5 / scale)


def joins(deviation, scales):
    """P(the second step joins the first one's group), both noises enumerated."""
    (thresholds, chances), (noise, mass) = laplace(scales[1]), laplace(scales[2])
    below = np.append(0.0, np.cumsum(mass))
    limits = np.clip(THRESHOLD + thresholds - deviation - noise[0], 0, noise.size)
    return float(chances @ below[limits])


def exact_loss(scales, moved, n_states):
    """The most that two steps of `n_states` counts tell of a user who was in all of them at the second step.

    The groups of states are independent, and so is each state's noise: worst cases add up. scales: of the
    perturber, the threshold, the comparisons. moved: by how much a count moves, in units.
    """
    perturbed = moved / scales[0]
    groups = 0.0
    for first, second, change in product((0, 4, 9), (0, 4, 9, 30), (-moved, moved)):
        one, other = (joins(abs(first - value), scales) for value in (second, second + change))
        groups = max(groups, abs(np.log(one / other)), abs(np.log((1 - one) / (1 - other))))
    return n_states * (perturbed + groups)


def scales_of(mechanism):
    """Those at which noise is drawn: of the perturber, the threshold and the comparisons."""
    noise = SilentNoise()
    mechanism.release(np.zeros((3, 4)), noise=noise)
    return noise.scales


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_m_times_the_noise_covers_a_user_in_m_states(n_states):
    mechanism = a_step("1", unit="roaming", leaves_per_step=n_states)
    assert scales_of(mechanism)[0] == pytest.approx(n_states / 0.8)
    assert exact_loss(scales_of(mechanism), 1, n_states) <= 1 + 1e-9
    alone = exact_loss(scales_of(a_step("1", unit="roaming", leaves_per_step=1)), 1, n_states)
    assert alone > 0.8 * n_states  # control: with one state's noise the perturber's part alone is m times 0.8


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_weights_of_one_mth_cover_a_user_in_m_states_too(n_states):
    """Counted in m-ths, each of m counts moves by one unit: as many units of noise, an m-th a user."""
    mechanism = a_step(
        "1", Fraction(1, n_states), Fraction(1, n_states), unit="roaming", leaves_per_step=n_states
    )
    assert mechanism.model.alpha_units == 1
    scale = scales_of(mechanism)[0]
    assert exact_loss(scales_of(mechanism), 1, n_states) <= 1 + 1e-9
    # in users, the noise is that of one state: what weighting gains, and what it counts wrong it does not say
    assert scale / n_states == pytest.approx(1 / 0.8)
