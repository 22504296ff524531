"""Controlled rounding: exact sums, every node up or down, least distance or no bias, by brute force."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.rounding import rounded_units
from optstream.stream import AggregationTree, Lattice
from tests.optstream.estimation.programs import incomplete, random_tree, wide_tree
from tests.optstream.estimation.programs import product as cells_of

RULES = pytest.mark.parametrize("rule", ["nearest", "unbiased"])


@RULES
@pytest.mark.parametrize("resolution", ["1", "0.001", "3"])
def test_sums_are_exact_and_every_node_is_rounded_up_or_down(rule, resolution):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng)
        if seed % 4 == 0:
            sizes = (int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.choice([0, 1])))
            tree = incomplete(seed) if seed % 8 else cells_of(*sizes)
        close = 1e-5 if isinstance(tree, Lattice) else 0.0  # rests count to 2^-20
        shape = (len(tree.leaves), 6)
        leaves = rng.gamma(0.3, 2.0, shape) * rng.integers(0, 2, shape) - rng.integers(0, 2)
        leaves[:, 0] = rng.integers(-4, 4, len(tree.leaves)) * float(resolution)
        values = tree.add_up(leaves)
        found = rounded_units(values, tree, Fraction(resolution), rule)
        assert np.array_equal(found, tree.add_up(found[tree.leaf_indices]))
        assert np.abs(found - values / float(resolution)).max() < 1 + close
        assert np.array_equal(found[:, 0], np.rint(values[:, 0] / float(resolution)))  # whole values stay
        if rule == "nearest":
            assert np.abs(found[0] - values[0] / float(resolution)).max() <= 0.5 + 1e-5
        assert np.array_equal(found, rounded_units(values, tree, Fraction(resolution), rule))


@RULES
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e19])
def test_what_cannot_be_counted_is_refused_and_not_shown(rule, value):
    """A cast of such a float gives some integer, which would be published."""
    tree = AggregationTree.from_parents({"all": None, "a": "all", "b": "all"})
    values = np.array([[0.0], [value], [0.0]])
    with pytest.raises(ParameterError, match=r"must be finite, and together less than 4.6e\+18") as said:
        rounded_units(values, tree, Fraction(1), rule)
    assert str(value) not in str(said.value)


@RULES
def test_leaves_are_raised_to_the_bound_and_sums_with_them(rule):
    tree = wide_tree(12, 4)
    leaves = np.random.default_rng(1).uniform(-3, 3, (12, 20))
    found = rounded_units(tree.add_up(leaves), tree, Fraction(1), rule, least=-1)
    assert found[tree.leaf_indices].min() == -1
    assert np.array_equal(found, tree.add_up(found[tree.leaf_indices]))
    assert np.abs(found - tree.add_up(np.maximum(leaves, -1.0))).max() < 1
    assert rounded_units(tree.add_up(leaves), tree, Fraction(1), rule).min() < -1  # the control


def test_of_equal_remainders_the_first_are_rounded_up_whatever_their_last_bits():
    """Leaves that were not measured share their parent evenly; another processor's last bits differ."""
    tree = AggregationTree.from_parents({"all": None} | {f"leaf {number}": "all" for number in range(8)})
    rng = np.random.default_rng(1)
    for _ in range(20):
        leaves = np.full((8, 1), 3 / 8) * (1 + rng.normal(0, 1e-15, (8, 1)))
        assert rounded_units(tree.add_up(leaves), tree, Fraction(1))[:, 0].tolist() == [3, 1, 1, 1, *[0] * 5]


def rounded(values, lattice, **more):
    found = rounded_units(values, lattice, Fraction(1), **more)
    assert np.array_equal(found, lattice.add_up(found[lattice.leaf_indices])), "both margins are exact"
    return found


def test_it_costs_no_more_than_any_other_rounding():
    lattice, rng = cells_of(2, 3), np.random.default_rng(5)
    values = lattice.add_up(rng.uniform(0, 4, (6, 8)))
    found = rounded(values, lattice)
    weight = np.where(lattice.heights == 0, 1.0, 4.0)[1:]
    for step in range(8):
        own = values[:, step]
        ways = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1)
        every = lattice.add_up(np.floor(own[lattice.leaf_indices])[:, None] + ways)
        fits = (np.abs(every - own[:, None]) < 1).all(axis=0) & (every[0] == np.rint(own[0]))
        best = (np.abs(every - own[:, None])[1:, fits] * weight[:, None]).sum(axis=0).min()
        assert (np.abs(found[1:, step] - own[1:]) * weight).sum() <= best + 0.01


@pytest.mark.parametrize(
    "lattice", [wide_tree(40, 10), cells_of(3, 2, 2), incomplete(3)], ids=["tree", "zones", "incomplete"]
)
def test_unbiased_every_node_keeps_its_mean_over_steps(lattice):
    """250 steps of one value: six standard errors of a mean are 0.19, below the control's misses."""
    cells = np.random.default_rng(7).uniform(0, 3, (len(lattice.leaves), 1)) * np.ones(250)
    values = lattice.add_up(cells)
    found = rounded(values, lattice, rule="unbiased", first_step=123)
    assert np.abs(found - values).mean(axis=1).max() > 0.1, "something is rounded"
    assert np.abs((found - values).mean(axis=1)).max() < 6 * 0.032
    assert np.abs((rounded(values, lattice) - values).mean(axis=1)).max() > 0.2
