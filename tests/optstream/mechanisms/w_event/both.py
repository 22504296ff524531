"""What the tests of budget distribution and absorption together share."""

import pytest

from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.privacy import PrivacyModel, worst_window

BOTH = pytest.mark.parametrize("kind", [BudgetDistribution, BudgetAbsorption])


def build(kind, window=6, epsilon="1", share="1/2", **model):
    return kind(PrivacyModel(epsilon, window, 1, "1", **model), share)


def cost(mechanism, spends):
    return worst_window(spends, mechanism.model.window_length).epsilon
