"""What noise leaves in the estimate of a lattice: the dense covariance, whatever it was weighed by."""

import numpy as np
import pytest

from optstream.estimation.hierarchy.error_propagation import reconciled_variances
from optstream.estimation.lattice.noise import noise_through_lattice
from tests.optstream.estimation.hierarchy.cases import standard_errors
from tests.optstream.estimation.lattice.lattice_cases import random_program

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_standard_errors_are_those_of_the_inverse_normal_matrix(seed):
    problem, lattice = random_program(seed)
    with np.errstate(divide="ignore"):
        own = 1.0 / problem.weights
    found = np.sqrt(reconciled_variances(problem.weights, own, lattice))
    assert np.allclose(found, standard_errors(problem, lattice), rtol=1e-9)


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


def test_what_is_not_known_of_a_step_is_not_known_of_that_step_alone():
    problem, lattice = random_program(1)
    own = 1.0 / np.where(problem.weights > 0, problem.weights, 1.0)
    own = np.repeat(own[:, :1], 3, axis=1)
    weights = np.repeat(problem.weights[:, :1], 3, axis=1)
    own[:, 1] = np.nan
    found = reconciled_variances(weights, own, lattice)
    assert np.isnan(found[:, 1]).all()
    assert np.isfinite(found[:, [0, 2]]).all()
