"""What the papers' own noise scales cost, and that OptStream's mechanisms cost less."""

from fractions import Fraction
from math import sqrt

import pytest

from optstream import Feature, PrivacyModel
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.privacy import worst_window
from optstream.stream import AggregationTree
from studies.evaluation.paper_scales import PaperFourier, PaperOptStream

TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "93": "FR"})


def build(sampling, shares):
    return PaperOptStream(
        PrivacyModel("1", 48, 1),
        TREE,
        sampling=sampling,
        features=Feature.day_parts(48),
        level_shares=shares,
    )


def test_equally_spaced_points_cost_24_and_a_half_times_epsilon():
    mechanism = build(EquallySpaced(10), ["1/2", "1/2"])
    assert float(mechanism.epsilon) == pytest.approx(24.5, rel=1e-12)
    assert float(worst_window(mechanism.plan(48), 48).epsilon) == pytest.approx(24.5, rel=1e-12)


def test_l1_points_cost_16_67_inside_a_day():
    plan = build(L1Sampling(10, "100"), ["0", "1"]).plan(48)
    assert float(worst_window(plan, 48).epsilon) == pytest.approx(50 / 3, rel=1e-12)


def test_fourier_costs_the_root_of_3_8():
    mechanism = PaperFourier(PrivacyModel("1", 48, 10))
    # in units of 1/1000: sqrt(k w) alpha / epsilon
    assert float(mechanism.scale) == pytest.approx(10_000 * sqrt(10 * 48), rel=1e-8)
    days = [spend for at in range(0, 192, 48) for spend in mechanism.plan(48, at)]
    assert mechanism.epsilon == worst_window(days, 48).epsilon > Fraction(19, 10)
    assert float(mechanism.epsilon) == pytest.approx(sqrt(19 / 10 * 2), rel=1e-3)
