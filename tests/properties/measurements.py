"""Stored measurements, read back from a disk that may have lost or changed them."""

import json
from functools import cache

from hypothesis import strategies as st

from optstream.measurement import EquallySpaced
from optstream.mechanisms import BudgetDistribution, Hierarchical, OptStream, PeGaSus
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from tests.properties.damage import changed, damaged

TREE = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})


@cache
def _documents() -> tuple[bytes, ...]:
    model, shares = PrivacyModel(epsilon="1", window_length=4, alpha=10), ("1/2", "1/2")
    made = (
        OptStream(model, TREE, sampling=EquallySpaced(2), features=[], level_shares=shares),
        Hierarchical(BudgetDistribution(model), TREE, shares),
        Hierarchical(PeGaSus(model), TREE, shares),
    )
    values = [[1.0] * 4, [2.0] * 4]
    return tuple(one.measure(values, noise=simulated_noise(1)).to_bytes() for one in made)


def whole() -> bytes:
    """One that was measured level by level."""
    return _documents()[1]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Documents with other entries, and hurt bytes."""
    data = draw(st.sampled_from(_documents()))
    if draw(st.booleans()):
        return draw(damaged(st.just(data)))
    return json.dumps(changed(draw, json.loads(data))).encode()
