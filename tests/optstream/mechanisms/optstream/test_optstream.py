"""The mechanism: its plan costs what it says, its releases add up, its parameters are checked."""

from fractions import Fraction

import pytest

from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree, Feature

MODEL = PrivacyModel(epsilon="1", window_length=48, alpha=1)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


def build(model=MODEL, tree=TREE, n_steps=48, **changes):
    arguments = {
        "sampling": EquallySpaced(n_samples=10),
        "features": _features(n_steps),
        "level_shares": ["1/2", "1/2"],
    }
    return OptStream(model, tree, **(arguments | changes))


def _features(n_steps):
    return [Feature((range(0, 14), range(14, n_steps)), "parts"), Feature((range(n_steps),), "day")]


def test_strict_costs_epsilon_and_no_more_in_any_window_of_a_year_with_clock_changes():
    """Sliding windows over days of 46, 48 and 50 steps: the filter never has cause to refuse."""
    lengths = [48] * 86 + [46] + [48] * 216 + [50] + [48] * 62
    spends, at = [], 0
    for length in lengths:
        spends += build(n_steps=length).plan(length, at)
        at += length
    cost = worst_window(spends, 48).epsilon
    assert cost <= 1
    assert cost > 1 - Fraction(1, 2**48)
    assert build().epsilon == cost


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_roaming_devices_cost_no_more_than_epsilon_either(leaves):
    model = PrivacyModel("0.5", 48, 2, unit="roaming", leaves_per_step=leaves)
    mechanism = build(model)
    assert Fraction("0.5") * (1 - Fraction(1, 2**48)) < mechanism.epsilon <= Fraction("0.5")
    scales = {(spend.level, spend.stage): spend.scale for spend in mechanism.plan(48)}
    alone = {(spend.level, spend.stage): spend.scale for spend in build(PrivacyModel("0.5", 48, 2)).plan(48)}
    # However few leaves there are: a merged one may have several of a device's readings.
    assert {float(scales[key] / alone[key]) for key in scales} == {leaves}
