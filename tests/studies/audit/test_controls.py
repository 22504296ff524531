"""Broken mechanisms, and what they cost exactly; error 1e-9 an audit."""

import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import control_cases
from studies.audit.controls import SparseVector, fourier

CASES = control_cases()


@pytest.mark.slow
def test_the_papers_feature_scale_measures_well_above_epsilon():
    case = CASES[0]
    result = case.run(n_runs=1000, noise=simulated_noise(9))
    assert 2.5 < result.lower_bound < case.accountant
    assert case.accountant == pytest.approx(24.5, rel=1e-12)


def test_the_honest_sparse_vector_meets_its_epsilon_exactly_and_half_the_noise_costs_half_as_much_again():
    assert SparseVector("right").enumerate().lower_bound == pytest.approx(1.0, abs=1e-6)
    assert SparseVector("half", query_factor=2.0).enumerate().lower_bound == pytest.approx(1.5, abs=1e-3)


def test_the_fourier_twin_would_be_accused_of_the_largest_claim_it_breaks():
    """The control fails for its scale alone: the two differ in nothing else."""
    broken, honest = fourier(normalised=False), fourier(normalised=True)
    assert (broken.claimed, broken.one.sum(), broken.other.sum()) == (
        honest.claimed, honest.one.sum(), honest.other.sum(),
    )  # fmt: skip
