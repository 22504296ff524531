"""HistoryInformed beside a margin: one posterior over cells, regions and sectors, which add up both ways."""

import numpy as np
import pytest

from optstream.catalogue.measurements import describe, mechanism_from
from optstream.mechanisms import HistoryInformedTree
from optstream.privacy import worst_window
from optstream.stream import Measured
from tests.optstream.estimation.lattices import incomplete, product
from tests.optstream.mechanisms.history_informed.hourly_streams import (
    MODEL,
    SLOTS,
    informed,
    load,
    run,
    spends_of,
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


@pytest.mark.parametrize("lattice", [product(3, 2), incomplete(2)], ids=["complete", "incomplete"])
def test_days_add_up_both_ways_within_epsilon_and_again_from_their_bytes(lattice):
    mechanism = beside(lattice)
    released = run(mechanism, cells_load(lattice, 3))
    for release in released:
        assert np.allclose(release.values, lattice.add_up(release.values[lattice.leaf_indices]))
        assert np.all(release.standard_errors > 0)
        assert len({str(part.choices) for part in release.measured.parts}) == 1
    assert {spend.level for spend in released[0].spends} == {0, 1, 2, 3}
    assert worst_window(spends_of(released), SLOTS).epsilon <= MODEL.epsilon
    again = mechanism_from(describe(mechanism))
    measured = Measured.from_bytes(released[2].measured.to_bytes())
    assert np.array_equal(again.estimate(measured).values, released[2].values)


def test_a_sum_over_cells_has_the_error_of_the_node_that_it_is():
    lattice = product(3, 2)
    release = run(beside(lattice), cells_load(lattice, 3))[-1]
    node, cells = "s1", [f"{region}-s1" for region in range(3)]
    day = 2 * SLOTS
    for first in (day, day + 7):
        one, many = (release.sum(nodes, range(first, first + 5)) for nodes in ([node], cells))
        assert one.value == pytest.approx(many.value)
        assert one.standard_error == pytest.approx(many.standard_error, rel=1e-6)
    of, replicates = release.replicates(2000)  # standard deviations to 1.6 %: six and a half of that
    assert of == "whole"
    assert replicates[:, -1].std(axis=0) == pytest.approx(release.standard_errors[-1], rel=0.11)
