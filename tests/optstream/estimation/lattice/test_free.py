"""The estimate of a lattice without bound: the least squares of a dense solver."""

import numpy as np
import pytest

from optstream.estimation.least_squares import project
from optstream.estimation.problem import LeastSquares
from tests.optstream.estimation.lattice.lattice_cases import product, random_program

SEEDS = range(12)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_the_least_squares_of_the_normal_equations(seed, features):
    problem, lattice = random_program(seed, features=features)
    sums, found = lattice.add_up(np.eye(len(lattice.leaves))), project(problem, lattice)
    seen = np.kron(sums, problem.rows)
    weighted = seen.T * problem.weights.ravel()
    leaves = np.linalg.solve(weighted @ seen, weighted @ problem.targets.ravel())
    assert np.allclose(found, sums @ leaves.reshape(len(lattice.leaves), -1), rtol=1e-9, atol=1e-9)


def test_several_periods_are_what_each_is():
    problem, lattice = random_program(4, features=True)
    others = np.stack([problem.targets, 2 * problem.targets, problem.targets - 1.0])
    together = project(LeastSquares(problem.rows, others, problem.weights), lattice)
    for targets, found in zip(others, together, strict=True):
        alone = project(LeastSquares(problem.rows, targets, problem.weights), lattice)
        assert np.allclose(found, alone, rtol=1e-12, atol=1e-12)


def test_complete_products_have_the_means_of_the_analysis_of_variance():
    """Cells alone measured, and region, sector and root beside them: main effects and the rest, each shrunk
    by its own precisions.
    """
    n_regions, n_sectors = 4, 3
    lattice, rng = product(n_regions, n_sectors), np.random.default_rng(3)
    root, region, cell, sector = (0.25, 1.0, 2.0, 4.0)
    weights = np.array([root, region, cell, sector])[lattice.depths]
    own = rng.normal(size=(len(weights), 1)) * 5
    found = project(LeastSquares(np.eye(1), own, weights[:, None]), lattice)[:, 0]
    cells = own[5:17, 0].reshape(n_regions, n_sectors)
    regions, sectors = own[1:5, 0], own[17:, 0]

    def joined(*pairs):
        return sum(value * precision for value, precision in pairs) / sum(one for _, one in pairs)

    mean = joined(
        (cells.mean(), cell), (regions.mean() / n_sectors, region * n_sectors),
        (sectors.mean() / n_regions, sector * n_regions),
        (own[0, 0] / cells.size, root * cells.size),
    )  # fmt: skip
    of_region = joined(
        (cells.mean(axis=1) - cells.mean(), cell),
        ((regions - regions.mean()) / n_sectors, region * n_sectors),
    )
    of_sector = joined(
        (cells.mean(axis=0) - cells.mean(), cell),
        ((sectors - sectors.mean()) / n_regions, sector * n_regions),
    )
    rest = cells - cells.mean(axis=1, keepdims=True) - cells.mean(axis=0) + cells.mean()
    assert np.allclose(found[5:17].reshape(cells.shape), mean + of_region[:, None] + of_sector + rest)


def test_cells_that_nothing_is_known_of_share_evenly_what_is_known_above():
    lattice = product(2, 2)
    weights = np.array([1.0, 1.0, 2.0**-100, 1.0])[lattice.depths][:, None]
    truth = lattice.add_up(np.array([[1.0], [3.0], [5.0], [7.0]]))
    found = project(LeastSquares(np.eye(1), truth * (weights > 1e-9), weights), lattice)
    assert np.allclose(found[:, 0], truth[:, 0], atol=1e-5), "margins tell all that is additive"
