"""Devices in several leaves at a step, beside a hierarchy whose leaves are merged or split."""

from fractions import Fraction

import pytest

from optstream.mechanisms import Hierarchical, Laplace
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from tasks.config.example import EXAMPLE

ROAMING = 'unit = "roaming"\nleaves_per_step = {}\n'
BEFORE_BUDGET = "\n[budget]\n"


def changing(operation):
    return BEFORE_BUDGET, f"\n[[hierarchy.changes]]\nvalid_from = 2016-07-01\n{operation}\n[budget]\n"


@pytest.fixture
def unit_line():
    (line,) = (line for line in EXAMPLE.splitlines() if line.startswith("unit = "))
    return line


def test_control_a_device_in_both_merged_leaves_would_lose_twice_what_is_charged():
    """It moves the nation by 2 alpha on every day; with one leaf left the noise is for alpha alone."""
    model = PrivacyModel("1", 1, 1, unit="roaming", leaves_per_step=2, resolution=1)
    shares = (Fraction(1, 2), Fraction(1, 2))
    trees = (
        AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"}),
        AggregationTree.from_parents({"FR": None, "ALL": "FR"}),
    )
    lost = []
    for tree in trees:
        plan = Hierarchical(Laplace(model), tree, shares).plan(1)
        # two readings of 1 more, wherever they are counted: each level moves by 2 in all
        lost.append(sum(Fraction(2) * spend.weights[0] / spend.scale for spend in plan))
    assert lost[0] <= 1 < lost[1] == 2


def test_merged_leaves_are_as_many_as_a_device_may_be_in(load, refusal, unit_line):
    leaves = [line.split(" = ")[0] for line in EXAMPLE.splitlines() if line.endswith('= "FR"')]
    assert len(leaves) == 12
    merged = changing(f"merged = {{ ALL = {leaves[:11]} }}".replace("'", '"'))
    roaming = [(unit_line, ROAMING.format(number)) for number in (2, 3)]
    assert load(merged, roaming[0]).model.leaves_per_step == 2
    told = refusal(merged, roaming[1])
    assert "stream.leaves_per_step must be at most 2, the leaves of the smallest hierarchy" in told
    # a unit that ends takes its readings with it
    gone = ", ".join(f'"{leaf}"' for leaf in leaves[:11])
    assert load(changing(f"removed = [{gone}]"), roaming[1]).model.leaves_per_step == 3
    assert load(merged).model.leaves_per_step == 1
