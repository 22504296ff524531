"""Budget distribution and absorption: their cost over any periods in any order, and what they remember."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.privacy import CappedSpend, PrivacyModel
from tests.optstream.mechanisms.silent_noise import SilentNoise
from tests.optstream.mechanisms.w_event.both import BOTH, build, cost

ALMOST = 1 - Fraction(1, 2**40)


@BOTH
def test_the_stated_cost_is_epsilon_and_the_plan_repeated_meets_it(kind):
    mechanism = build(kind, 48)
    assert ALMOST < mechanism.epsilon <= 1
    plan = mechanism.plan(48)
    assert cost(mechanism, plan) == mechanism.epsilon
    assert [spend.stage for spend in plan] == ["distance", "publications"]
    assert isinstance(plan[1], CappedSpend)


@pytest.mark.parametrize(("kind", "burst"), [(BudgetDistribution, (40, 56)), (BudgetAbsorption, (47, 94))])
def test_control_restarted_each_period_they_cost_up_to_a_half_more(kind, burst):
    """Quiet, then jumping across midnight. With state 1; without it, as by the paper for one day each."""
    values = np.zeros((1, 96), dtype=int)
    values[0, slice(*burst)] = 10**6 * np.arange(1, burst[1] - burst[0] + 1)
    mechanism = build(kind, 48)
    costs = {}
    for keeps in (True, False):
        first = mechanism.release(values[:, :48], noise=SilentNoise())
        state = first.state if keeps else None
        second = mechanism.release(values[:, 48:], noise=SilentNoise(), first_step=48, state=state)
        costs[keeps] = cost(mechanism, [*first.spends, *second.spends])
    assert costs[True] <= 1
    assert costs[False] > Fraction(13, 10)


@BOTH
def test_the_steps_noise_is_what_its_price_says(kind):
    mechanism = build(kind, 6, "7/3", unit="roaming", leaves_per_step=2)
    noise = SilentNoise()
    values = np.arange(12) ** 3 * 10**4
    release = mechanism.release(np.tile(values, (3, 1)), noise=noise)
    distance, publications = release.spends
    drawn = [Fraction(scale) for scale, size in noise.asked if size == (3,)]
    priced = [charge for charge in publications.charges if charge]
    assert len(drawn) == len(priced) > 3
    for scale, charge in zip(drawn, priced, strict=True):
        assert charge * ALMOST < 2 / scale <= charge
    assert {scale for scale, size in noise.asked if size == (1,)} == {float(distance.scale)}
    assert sum(size == (1,) for _, size in noise.asked) == sum(distance.weights)
    variances = [2 * float(scale) ** 2 for scale in drawn]
    assert np.array_equal(release.measured.point_variances, np.tile(variances, (3, 1)))


def test_distances_are_added_up_beyond_64_bits():
    """A last release may be far outside: 64 series of 2^58 each."""
    mechanism = build(BudgetDistribution)
    state = {"mechanism": "BudgetDistribution", "spent": [], "held": [2**58] * 64, "held_variance": 1.0}
    release = mechanism.release(np.zeros((64, 1), dtype=int), noise=SilentNoise(), state=state)
    assert release.measured.positions == (0,)


@BOTH
def test_noise_that_would_outgrow_the_integers_is_never_drawn(kind):
    """Distances fit, small offers do not: budget absorption waits, budget distribution stops halving."""
    mechanism = kind(PrivacyModel("1", 8, 2**36, "1"), "7/8")
    noise = SilentNoise()
    mechanism.release(np.arange(24)[None] * 2**44, noise=noise)
    scales = [scale for scale, _ in noise.asked]
    assert max(scales) == 2**40
    with pytest.raises(ParameterError, match="outgrow the integers"):
        build(kind, 8, "1/100000000000000")
