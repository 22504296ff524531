"""HistoryInformed beside a margin: one posterior over cells, regions and sectors, which add up both ways."""

import numpy as np
import pytest

from optstream.mechanisms import HistoryInformedTree
from tests.optstream.estimation.lattices import product
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    SLOTS,
    informed,
    load,
    run,
)

QUARTERS = ["1/4"] * 4


def cells_load(lattice, n_days, seed=0):
    """Cells that are parts of three series, each with a little of its own."""
    rng = np.random.default_rng(seed)
    stream = load(n_days, seed)
    of_cells = stream[np.arange(len(lattice.leaves)) % 3]
    own = 1 + np.cumsum(rng.normal(0, 0.003, of_cells.shape), axis=1)
    return of_cells * own * rng.uniform(0.6, 1.4, (len(of_cells), 1))


def beside(lattice, shares=QUARTERS, **given):
    return HistoryInformedTree(informed(**given), lattice, shares)


def test_a_sum_over_cells_has_the_error_of_the_node_that_it_is():
    lattice = product(3, 2)
    release = run(beside(lattice), cells_load(lattice, 3))[-1]
    node, cells = "s1", [f"{region}-s1" for region in range(3)]
    day = 2 * SLOTS
    for first in (day, day + 7):
        one, many = (release.sum(nodes, range(first, first + 5)) for nodes in ([node], cells))
        assert one.value == pytest.approx(many.value)
        assert one.standard_error == pytest.approx(many.standard_error, rel=1e-6)
    step = release.sum([node], range(day + 3, day + 4))
    assert step.standard_error == pytest.approx(release.standard_errors[-1, 3], rel=1e-6)
