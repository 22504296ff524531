"""What budget distribution and absorption know of other periods: late, void, revised, forgotten ones."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.ledger.accounting import covers
from optstream.mechanisms.w_event import BudgetDistribution
from tests.optstream.mechanisms.silent_noise import SilentNoise
from tests.optstream.mechanisms.w_event.both import BOTH, build, cost


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
