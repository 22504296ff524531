"""Rounding that adds up both ways: every node up or down, the root to the nearest, the same every time."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.estimation.rounding import rounded_units
from tests.optstream.estimation.lattices import incomplete, product


def rounded(values, lattice, **more):
    found = rounded_units(values, lattice, Fraction(1), **more)
    assert np.array_equal(found, lattice.add_up(found[lattice.leaf_indices])), "both margins are exact"
    return found


@pytest.mark.parametrize("rule", ["nearest", "unbiased"])
@pytest.mark.parametrize("seed", range(12))
def test_every_node_is_rounded_up_or_down_and_the_root_to_the_nearest(seed, rule):
    """The root where it is asked to be."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.choice([0, 1])))
    lattice = incomplete(seed) if seed % 4 == 0 else product(*shape)
    cells = rng.normal(0, 5, (len(lattice.leaves), 5))
    cells[rng.uniform(size=cells.shape) < 0.4] //= 1  # whole ones stay
    values = lattice.add_up(cells)
    found = rounded(values, lattice, rule=rule)
    close = 1e-5  # rests count to 2^-20
    assert (found >= np.floor(values + close) - (values % 1 > 1 - close)).all()
    assert (np.abs(found - values) < 1 + close).all()
    assert rule == "unbiased" or (np.abs(found[0] - values[0]) <= 0.5 + close).all()
    assert np.array_equal(found, rounded(values, lattice, rule=rule))


def test_it_costs_no_more_than_any_other_rounding():
    """Of all roundings of 2 times 3 cells, by trying them."""
    lattice, rng = product(2, 3), np.random.default_rng(5)
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


@pytest.mark.parametrize("lattice", [product(3, 2, 2), incomplete(3)], ids=["zones", "incomplete"])
def test_unbiased_every_node_keeps_its_mean_over_steps(lattice):
    """250 steps of one value: a mean's standard error is at most 0.032, and six of it are allowed. A rule
    that goes to the nearest would miss by up to a half.
    """
    cells = np.random.default_rng(7).uniform(0, 3, (len(lattice.leaves), 1)) * np.ones(250)
    values = lattice.add_up(cells)
    found = rounded(values, lattice, rule="unbiased", first_step=123)
    assert np.abs(found - values).mean(axis=1).max() > 0.1, "something is rounded"
    assert np.abs((found - values).mean(axis=1)).max() < 6 * 0.032
    assert np.abs((rounded(values, lattice) - values).mean(axis=1)).max() > 0.2
