"""Estimates of a total and its parts that are brought to agree: least squares, by hand and by matrices."""

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.estimation.known_sum import agreeing, known_sum_weights, variances_of_agreeing


def by_matrices(values, variances):
    """Generalised least squares: the total is the sum of the free parts; one cell."""
    design = np.vstack([np.ones(len(values) - 1), np.eye(len(values) - 1)])
    weight = np.diag(1.0 / variances)
    covariance = np.linalg.inv(design.T @ weight @ design)
    return design @ covariance @ design.T @ weight @ values, np.diag(design @ covariance @ design.T)


@pytest.mark.parametrize("n_parts", [2, 3, 5])
def test_it_is_least_squares_where_the_errors_have_one_ratio(n_parts):
    generator = np.random.default_rng(n_parts)
    values = generator.normal(size=(n_parts + 1, 4, 6))
    ratio, scale = generator.uniform(0.2, 3.0, n_parts + 1), generator.uniform(1.0, 5.0, (4, 6))
    variances = ratio[:, None, None] * scale
    weights = known_sum_weights(variances)
    found, errors = agreeing(values, weights), variances_of_agreeing(variances, weights)
    for cell in np.ndindex(4, 6):
        expected, variance = by_matrices(values[:, *cell], variances[:, *cell])
        assert found[:, *cell] == pytest.approx(expected)
        assert errors[:, *cell] == pytest.approx(variance)
    assert np.allclose(found[0], found[1:].sum(axis=0))
    # each errs less than alone
    assert (errors < variances).all()


def test_what_adds_up_before_adds_up_after_whatever_the_errors():
    """Over nodes and over steps, though the ratio of errors differs from cell to cell."""
    generator = np.random.default_rng(1)
    leaves = generator.normal(size=(3, 5, 8))
    values = np.concatenate([leaves.sum(axis=1, keepdims=True), leaves], axis=1)
    weights = known_sum_weights(generator.uniform(0.1, 4.0, values.shape))
    found = agreeing(values, weights)
    assert np.allclose(found[:, 0], found[:, 1:].sum(axis=1))
    assert np.allclose(found[0], found[1:].sum(axis=0))
    assert weights.sum() == pytest.approx(1.0)


def test_errors_are_as_large_as_is_said():
    """200,000 draws: 3 % are 9 standard deviations of a variance that is estimated from them."""
    generator, truth = np.random.default_rng(27), np.array([5.0, 2.0, 3.0])
    deviations = np.array([3.0, 1.0, 2.0])
    drawn = truth[:, None] + deviations[:, None] * generator.normal(size=(3, 200_000))
    variances = np.broadcast_to(deviations[:, None] ** 2, drawn.shape)
    weights = known_sum_weights(variances)
    missed = agreeing(drawn, weights) - truth[:, None]
    assert (missed**2).mean(axis=1) == pytest.approx(
        variances_of_agreeing(variances, weights)[:, 0], rel=0.03
    )
    # the control: a wrong claim is seen
    assert (missed**2).mean(axis=1) != pytest.approx(0.8 * deviations**2, rel=0.03)


@pytest.mark.parametrize("variances", [np.ones((2, 3)), np.zeros((3, 3)), np.full((3, 3), np.nan)])
def test_errors_that_are_not_known_are_refused(variances):
    with pytest.raises(ParameterError, match="need variances"):
        known_sum_weights(variances)
