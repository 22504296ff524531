"""Half-hourly days by HistoryInformed with joint noise, for its tests."""

from datetime import date

import numpy as np

from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

HALF_HOURS = (46, 48, 50)
MODEL = PrivacyModel("1", 48, 1)
DAYS = PublicDays.from_date(date(2025, 1, 6), 48)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
HALVES = ["1/2", "1/2"]


def informed(blocks=(16, 1), model=MODEL, lengths=HALF_HOURS, **given):
    """Joint noise on one series, unless told otherwise; blocks: how many a window has, and their steps."""
    given = {
        "noise": "joint",
        "period_lengths": lengths,
        "n_nodes": 1,
        "days": DAYS,
        "relearn_days": 0,
    } | given
    return HistoryInformed(model, *blocks, **given)


def on_tree(blocks=(16, 1), shares=HALVES, noise=None, declared_leaves=1, **given):
    pattern = informed(blocks, noise=noise, n_nodes=None, declared_leaves=declared_leaves, **given)
    return HistoryInformedTree(pattern, TREE, shares)


def draw(mechanism, lengths, state=None, first_step=0, n_series=1):
    drawn, at = [], first_step
    for length in lengths:
        values = np.full((n_series, length), 100.0)
        drawn.append(mechanism.measure(values, noise=simulated_noise([1, at]), first_step=at, state=state))
        state, at = drawn[-1].state, at + length
    return drawn


def spends_of(drawn):
    return [spend for one in drawn for spend in one.spends]
