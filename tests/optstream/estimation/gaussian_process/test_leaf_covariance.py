"""The covariance of leaves' doubts is that of the dense joint Gaussian process, to rounding."""

import numpy as np
import pytest

from optstream.estimation.gaussian_process.leaf_covariance import leaf_covariance
from optstream.estimation.gaussian_process.tree_posterior import TreePosterior
from tests.optstream.estimation.gaussian_process.dense import Dense
from tests.optstream.estimation.gaussian_process.test_tree_posterior import NOISES, TREES, blocks_of, case


@pytest.mark.parametrize("asking", ["steps", "blocks of steps"])
@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
def test_it_is_the_dense_process(tree_name, noise_name, asking):
    prior, seen, steps = case(tree_name, noise_name)
    asked = steps if asking == "steps" else blocks_of(np.random.default_rng(7), 6)
    n, leaves = asked.clock.size, seen.tree.leaf_indices
    posterior = TreePosterior(prior, seen)
    found = leaf_covariance(posterior, asked)
    whole = Dense(prior, seen).spread(asked).reshape(len(seen.tree.nodes), n, len(seen.tree.nodes), n)
    expected = whole[leaves][:, :, leaves]
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-8 * expected.max())
    diagonal = np.einsum("isis->is", found)
    if asking == "steps":
        assert np.allclose(
            diagonal, posterior.variances(asked)[leaves], rtol=1e-7, atol=1e-8 * expected.max()
        )


def test_of_sums_it_is_that_of_their_steps():
    prior, seen, asked = case("ragged", "all measured")
    sums = np.random.default_rng(3).normal(size=(3, asked.clock.size))
    whole = leaf_covariance(TreePosterior(prior, seen), asked)
    found = leaf_covariance(TreePosterior(prior, seen), asked, sums)
    assert np.allclose(found, np.einsum("as,isjt,bt->iajb", sums, whole, sums), rtol=1e-8)
