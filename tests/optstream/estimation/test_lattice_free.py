"""The estimate of a lattice without bound: the least squares of a dense solver."""

import numpy as np
import pytest

from optstream.estimation.least_squares import project
from tests.optstream.estimation.lattices import random_program

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
