"""What each kind of spend counts, beside what the accountant says of the same change."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.privacy import CappedSpend, JointSpend, PeriodSpend, StepSpend, worst_window
from studies.leakage import period_charge, step_charges

SPENDS = [
    StepSpend(0, "samples", 3, (1, 0, Fraction(2, 3), 1), Fraction(7, 3), 2, 2),
    PeriodSpend(1, "sampling", -5, (Fraction(0), Fraction(1, 3), Fraction(1, 2))),
    CappedSpend(1, "samples", 0, 9, 3, (-4,), Fraction(7, 2), 3, 2),
    CappedSpend(1, "samples", 0, 2, 3, (), Fraction(7, 2), 3),
    JointSpend(
        0, "blocks", 7, 9, ((range(0, 2), range(3, 6)), (range(6, 7), range(8, 9))), Fraction(7), 2, 1, 3
    ),
]


@pytest.mark.parametrize("spend", SPENDS)
def test_charges_are_the_accountants(spend):
    """A window of one step is one changed step; one as long as the period is all of it."""
    charges = step_charges(spend)
    assert charges.shape == (spend.n_steps,)
    assert charges.max() == pytest.approx(float(worst_window([spend], 1).epsilon), rel=1e-15)
    whole = worst_window([spend], spend.n_steps).epsilon
    assert period_charge(spend, spend.n_steps) == pytest.approx(float(whole), rel=1e-15)


def test_a_period_longer_than_a_window_may_hold_its_cap_several_times():
    """One point in any window of 2, 6 steps: a day of points at 0, 2 and 4 is an outcome of this plan."""
    plan = CappedSpend(0, "samples", 0, 6, 1, (), Fraction(3), 1)
    outcome = StepSpend(0, "samples", 0, (1, 0, 1, 0, 1, 0), Fraction(3), 1)
    assert worst_window([outcome], 2).epsilon == worst_window([plan], 2).epsilon
    assert period_charge(plan, 2) == period_charge(outcome, 2) == pytest.approx(1)
    assert period_charge(plan, 6) == pytest.approx(1 / 3)
    assert period_charge(plan, 4) == pytest.approx(2 / 3), "a window and a part of one"


def test_each_step_has_its_own_charge():
    np.testing.assert_allclose(step_charges(SPENDS[0]), np.array([1, 0, 2 / 3, 1]) * 12 / 7, rtol=1e-15)
    np.testing.assert_allclose(step_charges(SPENDS[1]), [1 / 3, 1 / 3], rtol=1e-15)
    assert not step_charges(CappedSpend(0, "samples", 0, 4, 0, (), Fraction(1), 1)).any()
