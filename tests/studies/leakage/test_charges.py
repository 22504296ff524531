"""What each kind of spend counts, beside what the accountant says of the same change."""

from fractions import Fraction

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
