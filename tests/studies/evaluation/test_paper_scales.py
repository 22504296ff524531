"""The papers' scales are theirs, and what they really cost is stated."""

from itertools import accumulate
from math import sqrt

import pytest

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, worst_window
from optstream.stream import AggregationTree, Feature
from studies.evaluation.paper_scales import PaperFourier, PaperOptStream
from tests.optstream.mechanisms.silent_noise import SilentNoise

DAY = PrivacyModel("1", 48, 10)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


def optstream(sampling, shares, features=None):
    return PaperOptStream(
        DAY, TREE, sampling=sampling, level_shares=shares,
        features=Feature.day_parts(48) if features is None else features,
    )  # fmt: skip


def cost_of(mechanism, lengths):
    """The worst window of periods of these lengths in a row."""
    starts = accumulate(lengths[:-1], initial=0)
    return worst_window(
        [spend for at, n in zip(starts, lengths, strict=True) for spend in mechanism.plan(n, at)], 48
    ).epsilon


def test_equally_spaced_points_cost_24_and_a_half_times_epsilon():
    mechanism = optstream(EquallySpaced(10), ["1/2", "1/2"])
    assert float(mechanism.epsilon) == pytest.approx(24.5, rel=1e-12)
    assert mechanism.epsilon == cost_of(mechanism, [48]) == cost_of(mechanism, [48] * 3)


def test_l1_points_cost_16_67_inside_a_day():
    mechanism = optstream(L1Sampling(10, "50"), ["0", "1"])
    assert float(cost_of(mechanism, [48])) == pytest.approx(50 / 3, rel=1e-12)
    assert cost_of(mechanism, [48] * 4) == mechanism.epsilon > cost_of(mechanism, [48]) * 1.01


def test_the_last_steps_are_taken_unasked():
    """A level series has no score: nothing is chosen, and the last steps are left for all but one point."""
    mechanism = optstream(L1Sampling(10, "50"), ["0", "1"], features=[])
    measured = mechanism.measure([[700.0] * 48] * 2, noise=SilentNoise())
    (points,) = (spend.weights for spend in measured.spends if spend.stage == "samples")
    assert [step for step, weight in enumerate(points) if weight] == [0, *range(39, 48)]
    # days know nothing of each other: the next has all its points again
    later = mechanism.release(
        [[700.0] * 48] * 2, noise=simulated_noise(1), first_step=48, state=measured.state
    )
    assert sum(spend.weights.count(1) for spend in later.spends if spend.stage == "samples") == 10


def test_fourier_costs_the_root_of_3_8():
    for shortest, steps in ((None, 48), (24, 24), (100, 48)):
        mechanism = PaperFourier(DAY, shortest_period=shortest)
        # in units of 1/1000: sqrt(k min(w, p)) alpha / epsilon
        assert float(mechanism.scale) == pytest.approx(10_000 * sqrt(10 * steps), rel=1e-8)
        assert mechanism.epsilon == cost_of(mechanism, [mechanism.change.shortest_period] * 4)
    assert float(PaperFourier(DAY).epsilon) == pytest.approx(sqrt(19 / 10 * 2), rel=1e-3)
