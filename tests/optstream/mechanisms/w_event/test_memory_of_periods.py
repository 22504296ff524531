"""Budget distribution and absorption: their cost over any periods, and what they know of others."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.ledger.accounting import covers
from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.privacy import PrivacyModel, worst_window
from tests.optstream.mechanisms.silent_noise import SilentNoise

BOTH = pytest.mark.parametrize("kind", [BudgetDistribution, BudgetAbsorption])


def build(kind, window=6, epsilon="1", share="1/2", **model):
    return kind(PrivacyModel(epsilon, window, 1, "1", **model), share)


def cost(mechanism, spends):
    return worst_window(spends, mechanism.model.window_length).epsilon


@BOTH
def test_a_void_day_is_charged_whole_and_the_days_beside_it_are_not_refused(kind):
    mechanism = build(kind, 6)
    void = mechanism.plan(4, 4, mechanism.recall([]))
    for first, n_steps in ((8, 4), (0, 4)):
        state = mechanism.recall(void)
        plan = mechanism.plan(n_steps, first, state)
        assert cost(mechanism, [*void, *plan]) <= 1
        release = mechanism.release([[10**6] * n_steps], noise=SilentNoise(), first_step=first, state=state)
        assert covers(plan, release.spends, 6)
        assert cost(mechanism, [*void, *release.spends]) <= 1
    far = mechanism.release([[10**6] * 4], noise=SilentNoise(), first_step=13, state=mechanism.recall(void))
    assert far.measured.positions


@BOTH
def test_a_revision_of_a_day_pays_beside_the_first(kind):
    mechanism = build(kind, 6)
    values = np.arange(1, 7)[None] * 10**6
    first = mechanism.release(values, noise=SilentNoise())
    again = mechanism.release(values, noise=SilentNoise(), state=mechanism.recall(first.spends))
    publications = [first.spends[1], again.spends[1]]
    assert cost(mechanism, publications) <= Fraction(1, 2)
    recalled = dict(map(tuple, mechanism.recall(publications)["spent"]))
    assert dict(map(tuple, again.state["spent"])) == {
        step: part for step, part in recalled.items() if step > 0
    }


@BOTH
def test_what_another_configuration_spent_is_rounded_up(kind):
    mechanism, other = build(kind), build(BudgetDistribution, epsilon="3/2")
    spends = other.release(np.arange(12)[None] * 10**6, noise=SilentNoise()).spends
    grains = dict(map(tuple, mechanism.recall(spends)["spent"]))
    for step, charge in enumerate(spends[1].charges):
        paid = Fraction(grains.get(step, 0), mechanism._n_grains) / 2
        assert min(charge, Fraction(1, 2)) <= paid
        assert paid - charge < Fraction(1, 2 * mechanism._n_grains)
    assert build(kind).recall([replace(spends[0], stage="publication")])["spent"] == []


@BOTH
def test_a_lost_memory_is_sound_and_begins_again_from_zero(kind):
    mechanism = build(kind)
    before = mechanism.release(np.arange(12)[None] * 10**6, noise=SilentNoise())
    state = mechanism.recall(before.spends)
    assert state["spent"]
    after = mechanism.release([[11 * 10**6] * 8], noise=SilentNoise(), first_step=12, state=state)
    assert cost(mechanism, [*before.spends, *after.spends]) <= 1
    assert after.measured.positions
    kept = mechanism.release([[11 * 10**6] * 8], noise=SilentNoise(), first_step=12, state=before.state)
    assert kept.measured.positions == ()
    assert (kept.values == 11 * 10**6).all()


@BOTH
def test_a_state_that_is_not_one_is_refused(kind):
    mechanism = build(kind)
    for state in ({}, {"mechanism": "Sample", "points": []}, {"mechanism": kind.__name__}):
        with pytest.raises(ParameterError, match=f"state of {kind.__name__}"):
            mechanism.plan(4, 4, state)
    left = mechanism.release([[5, 5]], noise=SilentNoise()).state
    noise = SilentNoise()
    with pytest.raises(ParameterError, match="last release of 1 series, and this period has 2"):
        mechanism.release([[5], [5]], noise=noise, first_step=2, state=left)
    assert noise.asked == []


ALMOST = 1 - Fraction(1, 2**40)


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
