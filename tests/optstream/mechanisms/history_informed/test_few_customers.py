"""Bands of leaves of a few households, whose steps jump by what single customers switch on."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from optstream import simulated_noise
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

SLOTS, N_DAYS, ALPHA = 48, 28, 6
TREE = AggregationTree.from_parents({"city": None} | {f"feeder {number}": "city" for number in range(10)})
PATTERN = HistoryInformed(
    PrivacyModel(4, SLOTS, ALPHA, resolution="0.001"),
    scale=4.0,
    days=PublicDays.from_date(date(2024, 1, 1), SLOTS),
    variation=ALPHA / 8,
)


def households(seed):
    """Return five households on each feeder: evening peaks, idle nights, appliances, (10, n_steps)."""
    random, hour = np.random.default_rng(seed), np.arange(SLOTS) / 2
    size, evening = np.exp(random.normal(0, 0.5, (50, 1, 1))), random.normal(19, 1.2, (50, 1, 1))
    morning = random.uniform(0, 0.6, (50, 1, 1)) * np.exp(-(((hour - 7.5) / 1.2) ** 2))
    shape = 0.15 + morning + 1.3 * np.exp(-(((hour - evening) / 2) ** 2))
    days = np.exp(random.normal(0, 0.25, (50, N_DAYS, 1)))
    shapes = np.where(random.random((50, N_DAYS, 1)) < 0.1, 0.15, shape) * days * size
    used = shapes * random.gamma(2.0, 0.5, (50, N_DAYS, SLOTS))
    switched_on = random.random(used.shape) < 0.04 * (shape / shape.max() + 0.1)
    used = np.minimum(used + switched_on * random.uniform(1, 3, used.shape), ALPHA)
    return used.reshape(10, 5, -1).sum(axis=1)


def released_after_two_weeks(pattern, seeds):
    """Yield the releases of the second half of the days, whether bands hold, and the measurements."""
    for seed in range(seeds):
        mechanism, state = HistoryInformedTree(pattern, TREE, ["1/2", "1/2"]), None
        stream = households(seed)
        for day in range(N_DAYS):
            at, noise = slice(day * SLOTS, (day + 1) * SLOTS), simulated_noise([seed, day])
            drawn = mechanism.measure(stream[:, at], noise=noise, first_step=at.start, state=state)
            state = drawn.state
            if day >= N_DAYS // 2:
                release = mechanism.estimate(drawn)
                missed = np.abs(release.values - TREE.add_up(stream[:, at]))
                yield release, missed <= 1.96 * release.standard_errors, drawn


@pytest.mark.slow
def test_bands_hold_after_two_weeks():
    releases, held, measured = zip(*released_after_two_weeks(PATTERN, 2), strict=True)
    release, held, drawn = releases[-1], np.array(held), measured[-1]
    assert 0.93 < held[:, 1:].mean() < 0.97
    assert held[:, 0].mean() > 0.93
    bare = replace(PATTERN, variation=None, components=PATTERN.prior_components)
    bare = HistoryInformedTree(bare, TREE, ["1/2", "1/2"]).estimate(drawn)
    assert np.array_equal(release.values, bare.values), "it widens bands alone"
    squares = (release.replicates(200)[1] - release.estimate).var(axis=0)[1:].mean()
    assert squares == pytest.approx((release.standard_errors[1:] ** 2).mean(), rel=0.2)


@pytest.mark.slow
def test_the_evening_is_expected_to_be_high_before_it_can_be_seen():
    pattern = replace(PATTERN, model=PrivacyModel(1, SLOTS, ALPHA, resolution="0.001"))
    releases, held, _ = zip(*released_after_two_weeks(pattern, 3), strict=True)
    assert np.array(held)[:, 0, -12:].mean() > 0.8, "0.70 with the prior of loads"
    squares = releases[-1].standard_errors[0] ** 2
    night, evening = squares[:12].mean(), squares[-12:].mean()
    assert evening > 3.5 * night, "2.6 where widths follow the size of hours as those of loads do"
    drawn = (releases[-1].replicates(400)[1] - releases[-1].estimate)[:, 0].var(axis=0)
    assert drawn.reshape(4, 12).mean(axis=1) == pytest.approx(squares.reshape(4, 12).mean(axis=1), rel=0.3)
