"""The covariance of leaves' doubts is that of the dense joint Gaussian process, to rounding."""

import numpy as np
import pytest

from optstream.history.tree import LeafCovariance, LeafSpans, TreePosterior
from tests.optstream.estimation.gaussian_process.dense import Dense
from tests.optstream.estimation.gaussian_process.test_tree_posterior import NOISES, TREES, blocks_of, case
from tests.optstream.estimation.written_out import written_out


@pytest.mark.parametrize("asking", ["steps", "blocks of steps"])
@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
def test_it_is_the_dense_process(tree_name, noise_name, asking):
    prior, seen, steps = case(tree_name, noise_name)
    asked = steps if asking == "steps" else blocks_of(np.random.default_rng(7), 6)
    n, leaves = asked.clock.size, seen.tree.leaf_indices
    posterior = TreePosterior(prior, seen)
    doubt = LeafCovariance(LeafSpans(posterior), asked)
    found = written_out(doubt.products(np.eye(leaves.size), np.eye(n)))
    whole = Dense(prior, seen).spread(asked).reshape(len(seen.tree.nodes), n, len(seen.tree.nodes), n)
    expected = whole[leaves][:, :, leaves]
    expected = 0.5 * (expected + expected.transpose(0, 3, 2, 1))  # alike in both orders of a pair
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-8 * expected.max())
    diagonal = np.einsum("isis->is", found)
    if asking == "steps":
        assert np.allclose(
            diagonal, posterior.variances(asked)[leaves], rtol=1e-7, atol=1e-8 * expected.max()
        )


def test_of_sums_it_is_that_of_their_leaves_and_steps():
    prior, seen, asked = case("ragged", "all measured")
    random = np.random.default_rng(3)
    n, n_leaves = asked.clock.size, len(seen.tree.leaves)
    times, leaves = random.normal(size=(3, n)), random.normal(size=(2, n_leaves))
    doubt = LeafCovariance(LeafSpans(TreePosterior(prior, seen)), asked)
    whole = written_out(doubt.products(np.eye(n_leaves), np.eye(n)))
    expected = np.einsum("pi,as,isjt,qj,bt->paqb", leaves, times, whole, leaves, times)
    products = doubt.products(leaves, times)
    assert np.allclose(written_out(products), expected, rtol=1e-8)
    assert np.allclose(products.variances(), np.einsum("papa->pa", expected), rtol=1e-8)
