"""What Gaussian noise is charged: by the definition over every window, and by all that one may change."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.privacy import (
    GaussianSpend,
    PrivacyModel,
    StepSpend,
    charged_to_windows,
    worst_of_repeated,
    worst_window,
)
from optstream.privacy.amendment import repriced
from optstream.privacy.spends import check_currency
from optstream.stream import AggregationTree

STEP = StepSpend(0, "samples", 0, (1, 1), Fraction(3), 1)


@pytest.mark.parametrize("leaves_per_step", [1, 2])
def test_the_charge_is_the_most_that_one_customer_can_do_in_whatever_leaves(leaves_per_step):
    """All leaves, sums and signs at every step: the largest squared L2 move of a level's answers."""
    tree = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "b": "B", "c": "B"})
    parts, scale = (range(0, 2), range(2, 3)), Fraction(5)
    moves = [
        [(leaf, sign) for leaf, sign in zip(leaves, signs, strict=True)]
        for n in range(leaves_per_step + 1)
        for leaves in combinations(range(len(tree.leaves)), n)
        for signs in product((-1, 1), repeat=n)
    ]
    most = {}
    for changes in product(moves, repeat=3):
        leaves = np.zeros((len(tree.leaves), 3), dtype=np.int64)
        for step, own in enumerate(changes):
            for leaf, sign in own:
                leaves[leaf, step] += sign
        nodes = tree.add_up(leaves)
        for level, rows in enumerate(tree.levels):
            moved = nodes[rows.start : rows.stop]
            squared = sum(int((moved[:, part.start : part.stop].sum(axis=1) ** 2).sum()) for part in parts)
            most[level] = max(most.get(level, 0), squared)
    spend = GaussianSpend(0, "blocks", 0, 3, parts, scale, 1, leaves_per_step)
    charged = worst_window([spend], 3).epsilon
    assert all(Fraction(squared) / (2 * scale**2) <= charged for squared in most.values())
    assert Fraction(most[0]) / (2 * scale**2) == charged, "and the root attains it"
    # steps of a part do not add up: charged one by one they would cost 2 + 1 in place of 4 + 1
    assert charged == 5 * spend.unit_charge == Fraction(5 * leaves_per_step**2, 50)


def test_currencies_are_never_added_up():
    gaussian = GaussianSpend(0, "samples", 0, 2, (range(0, 1),), Fraction(3), 1)
    for mixed in ([STEP, gaussian], [gaussian, STEP]):
        with pytest.raises(ParameterError, match="never added up"):
            worst_window(mixed, 2)
        with pytest.raises(ParameterError, match="never added up"):
            charged_to_windows(mixed, 2, range(3))
        with pytest.raises(ParameterError, match="never added up"):
            worst_of_repeated([(spend, [0]) for spend in mixed], 2)
    # also where no window sees both
    with pytest.raises(ParameterError, match="never added up"):
        worst_window([STEP, replace(gaussian, first_step=1000)], 2)
    with pytest.raises(ParameterError, match="never added up"):
        check_currency([STEP], "rho")
    check_currency([gaussian], "rho")
    check_currency([], "rho")


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({"alpha": 3}, 9),
        ({"alpha": "5/2"}, 9),
        ({"alpha": "1/2"}, 1),
        ({"window_length": 96}, 1),
        ({"window_length": 2}, 1),
        ({"unit": "roaming", "leaves_per_step": 3}, 9),
        ({"unit": "roaming", "leaves_per_step": 2, "alpha": 2}, 16),
    ],
)
def test_k_neighbours_in_a_row_cost_k_squared(changed, factor):
    planned = PrivacyModel("1", 48, 1, delta="1e-6")
    given = {"epsilon": "1", "window_length": 48, "alpha": 1, "delta": "1e-6"}
    spend = GaussianSpend(0, "blocks", 7, 6, (range(0, 2), range(4, 5)), Fraction(7), 1000)
    priced = repriced(spend, planned, PrivacyModel(**(given | changed)))
    assert (priced.first_step, priced.parts) == (7, spend.parts)
    assert priced.unit_charge == factor * spend.unit_charge
