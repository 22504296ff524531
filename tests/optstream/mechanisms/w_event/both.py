"""What the tests of budget distribution and absorption together share."""

import pytest

from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.privacy import PrivacyModel, worst_window

BOTH = pytest.mark.parametrize("kind", [BudgetDistribution, BudgetAbsorption])


def build(kind, window=6, epsilon="1", share="1/2", **model):
    return kind(PrivacyModel(epsilon, window, 1, "1", **model), share)


def jumping(generator, n_series, n_steps):
    """Quiet stretches and jumps large enough to be published."""
    jumps = generator.integers(-3000, 3000, (n_series, n_steps)) * (generator.random(n_steps) < 0.4)
    return jumps.cumsum(axis=1)


def cost(mechanism, spends):
    return worst_window(spends, mechanism.model.window_length).epsilon
