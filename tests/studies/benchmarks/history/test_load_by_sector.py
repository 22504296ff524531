"""The made-up sectors, and what the benchmark compares on them, seeded."""

import numpy as np

from optstream import PrivacyModel
from studies.benchmarks.history.load_by_sector import by_peers, by_us, lattice_of
from studies.benchmarks.inputs.sectors import SECTORS, by_sector

LOAD = 5000.0 + 1000.0 * np.sin(np.linspace(0.0, 4.0 * np.pi, 2 * 3 * 48)).reshape(2, 3, 48)


def test_sectors_add_up_to_the_load_and_have_shapes_of_their_own():
    cells = by_sector(LOAD).reshape(2, 3, 3, 48)
    assert np.allclose(cells.sum(axis=2), LOAD)
    assert cells.min() > 0
    shares = (cells / LOAD[:, :, None, :])[0, 0]
    peaks = dict(zip(SECTORS, shares.argmax(axis=1) / 2, strict=True))
    assert 19 < peaks["households"] < 22
    assert 10 < peaks["services"] < 15


def test_a_margin_knows_sectors_better_than_their_cells_do():
    lattice, cells = lattice_of(["a", "b", "c"]), by_sector(LOAD)[0]
    model = PrivacyModel("1", 48, 1, delta="1e-6")
    truth = lattice.add_up(cells)
    sectors = slice(lattice.margin_nodes.start, None)
    ways = dict([*by_peers(cells, lattice, model, 1), *by_us(cells, lattice, model, 1, 0)])
    found = {way: np.sqrt(((nodes - truth)[sectors] ** 2).mean()) for way, nodes in ways.items()}
    assert found["with the margin"] < 0.8 * found["regions and cells"]
    # what is made to agree adds up both ways, what is drawn apart does not
    for way, agrees in (("with the margin", True), ("a table a level, none agree (peer)", False)):
        assert np.allclose(ways[way][0], ways[way][sectors].sum(axis=0)) is agrees
