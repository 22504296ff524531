"""Hourly streams of three series, and runs of them by a mechanism, for the tests of HistoryInformed."""

from datetime import date

import numpy as np

from optstream.mechanisms import HistoryInformed
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

SLOTS = 24
DAYS = PublicDays.from_date(date(2025, 1, 6), SLOTS)
MODEL = PrivacyModel("1/10", SLOTS, 1)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "C": "all"})


def load(n_days, seed=0):
    """Three series with a shape of the day, weekends, a drift and a little of their own, (3, n_days * 24)."""
    generator = np.random.default_rng(seed)
    hours = np.arange(n_days * SLOTS)
    shape = 1 + 0.2 * np.sin((hours - 9) * np.pi / 12) + 0.05 * np.sin(hours * np.pi / 6)
    weekend = np.where(hours // SLOTS % 7 > 4, 0.9, 1.0)
    drift = np.exp(np.cumsum(generator.normal(0, 0.004, hours.size)))
    own = 1 + np.cumsum(generator.normal(0, 0.002, (3, hours.size)), axis=1)
    return np.round(np.array([[1500.0], [800.0], [2400.0]]) * shape * weekend * drift * own, 3)


def informed(model=MODEL, **given):
    return HistoryInformed(model, **{"n_blocks": 6, "block_length": 2, "days": DAYS, "scale": 1500.0} | given)


def run(mechanism, stream, seed=1, state=None, first_day=0):
    released = []
    for day in range(stream.shape[1] // SLOTS):
        values = stream[:, day * SLOTS : (day + 1) * SLOTS]
        at = (first_day + day) * SLOTS
        noise = simulated_noise([seed, first_day + day])
        released.append(mechanism.release(values, noise=noise, first_step=at, state=state))
        state = released[-1].state
    return released


def missed(released, stream):
    values = np.concatenate([release.values for release in released], axis=1)
    return np.abs(values[-len(stream) :] - stream)
