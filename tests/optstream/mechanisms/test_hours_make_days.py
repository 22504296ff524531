"""Hours in turn are the day that they make: state, spends and values of online mechanisms, hour by hour."""

import json
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from optstream import mechanisms
from optstream.mechanisms import on_tree
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, PublicDays
from optstream.stream.state import public_part, raw_bytes, with_raw
from tests.optstream.mechanisms.silent_noise import SilentNoise

pytestmark = pytest.mark.slow

MODEL = PrivacyModel("1", 48, 10)
TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
ONLINE = ("Laplace", "Uniform", "Sample", "Fast", "BudgetDistribution", "BudgetAbsorption", "PeGaSus")
HALVES = (Fraction(1, 2), Fraction(1, 2))
N_DAYS = 2


def build(name):
    kind = getattr(mechanisms, name)
    given = {"days": PublicDays(48)} if name == "HistoryInformed" else {}
    return on_tree(kind(MODEL, **given), TREE, HALVES)


def load():
    steps = np.arange(48 * N_DAYS)
    shape = np.round(8000 + 3000 * np.sin(steps / 48 * 2 * np.pi) + 900 * (steps % 17 == 0))
    return np.stack([shape, np.round(shape / 3) + steps])


@lru_cache(maxsize=32)
def released(mechanism, length):
    """As the flow does: public state through JSON, spends as the ledger recalls them, the raw state apart."""
    values, state, found = load(), None, []
    for at in range(0, values.shape[1], length):
        period = values[:, at : at + length]
        release = mechanism.release(period, noise=SilentNoise(), first_step=at, state=state)
        found.append(release)
        public = mechanism.recall(
            [spend for one in found for spend in one.spends],
            json.loads(json.dumps(public_part(release.state))) if release.state is not None else None,
        )
        raw = None if release.state is None else raw_bytes(release.state)
        state = public if raw is None else with_raw(public, raw)
    return found


@pytest.mark.parametrize("name", ONLINE)
def test_the_same_noise_gives_hours_the_values_of_their_day(name):
    mechanism = build(name)
    days, hours = released(mechanism, 48), released(mechanism, 2)
    whole = np.concatenate([one.values for one in days], axis=1)
    assert np.allclose(np.concatenate([one.values for one in hours], axis=1), whole, atol=1e-6)
    assert np.ptp(whole) > 1000
