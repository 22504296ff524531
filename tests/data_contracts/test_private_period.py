from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from data_contracts.judge import judge
from data_contracts.metrics import private_period_metrics
from data_contracts.suites import PRIVATE_PERIOD_CONTRACT as CONTRACT
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar, PrivatePeriod

TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
CALENDAR = Calendar(30, "Europe/Paris")
MODEL = PrivacyModel(epsilon="1", window_length=48, alpha=1)
DAY = date(2025, 3, 30)
FIRST = CALENDAR.first_step(DAY)


def period(n_leaves=2, n_steps=46, resolution=Fraction(1, 1000), first_step=FIRST):
    return PrivatePeriod(np.ones((n_leaves, n_steps), np.int64), resolution=resolution, first_step=first_step)


@pytest.mark.parametrize(
    ("held", "broken"),
    [
        (period(), []),
        (None, ["periods", "leaves", "steps", "first_step", "resolution"]),
        (np.ones((2, 46), np.int64), ["periods", "leaves", "steps", "first_step", "resolution"]),
        (period(n_leaves=1), ["leaves"]),
        (period(n_steps=48), ["steps"]),
        (period(first_step=FIRST + 2), ["first_step"]),
        (period(resolution=Fraction(1)), ["resolution"]),
        (period(n_leaves=3, n_steps=1), ["leaves", "steps"]),
    ],
)
@pytest.mark.slow
def test_a_period_is_judged_by_its_public_facts(held, broken):
    metrics = private_period_metrics([(DAY, held)], lambda _day: TREE, CALENDAR, MODEL)
    assert [(one.column, one.day, one.alarm) for one in judge(CONTRACT, metrics)[1]] == [
        (column, "2025-03-30", False) for column in broken
    ]
