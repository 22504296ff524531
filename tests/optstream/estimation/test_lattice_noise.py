"""What noise leaves in the estimate of a lattice: the dense covariance, whatever it was weighed by."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.estimation.lattice import noise_of_columns, noise_through_lattice
from tests.optstream.estimation.lattices import product, random_program

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_they_are_known_where_weights_are_others_than_the_noise_has(seed):
    """Noise of any covariance over steps, through any precisions: G N G', G the dense estimate."""
    problem, lattice = random_program(seed, features=True)
    rng, n_steps = np.random.default_rng(seed), problem.rows.shape[1]
    precision = np.einsum("qs,nq,qt->nst", problem.rows, problem.weights, problem.rows)
    roots = rng.normal(size=precision.shape) * (problem.weights[:, :1, None] > 0)
    noise = roots @ np.swapaxes(roots, 1, 2)
    sums = np.kron(lattice.add_up(np.eye(len(lattice.leaves))), np.eye(n_steps))
    n_nodes = len(precision)
    places = np.arange(n_nodes)
    whole, entering = np.zeros((2, n_nodes, n_steps, n_nodes, n_steps))
    whole[places, :, places], entering[places, :, places] = precision, noise
    whole, entering = (one.reshape(n_nodes * n_steps, -1) for one in (whole, entering))
    gain = sums @ np.linalg.solve(sums.T @ whole @ sums, sums.T)
    expected = np.diagonal(gain @ entering @ gain.T).reshape(n_nodes, n_steps)
    found = noise_through_lattice(precision[:, None], noise[:, None], lattice)[:, 0]
    assert np.allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("ratio", [1e4, 1e8, 2.0**36])
@pytest.mark.parametrize("derived", [(), (1,)], ids=["all measured", "regions derived"])
def test_errors_hold_where_cells_are_hardly_known(ratio, derived):
    """Against fractions: with a difference of squares they were a quarter off at 10^10, and 0 beyond."""
    lattice = product(3, 2)
    own = np.ones(len(lattice.nodes))
    own[lattice.leaf_indices] = ratio
    weights = 1.0 / own
    for level in derived:
        weights[list(lattice.levels[level])] = 0.0
    found = noise_of_columns(weights[:, None], own[:, None], lattice)[:, 0]
    exact = [[Fraction(int(one)) for one in row] for row in lattice.add_up(np.eye(len(lattice.leaves)))]
    normal = [
        [sum(Fraction(w) * row[i] * row[j] for w, row in zip(weights, exact, strict=True)) for j in range(6)]
        for i in range(6)
    ]
    inverse = inverted(normal)
    wanted = [
        float(sum(row[i] * inverse[i][j] * row[j] for i in range(6) for j in range(6))) for row in exact
    ]
    assert found == pytest.approx(wanted, rel=1e-4)


def inverted(matrix):
    """The inverse, by elimination."""
    n = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for i in range(n):
        rows[i] = [one / rows[i][i] for one in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]
