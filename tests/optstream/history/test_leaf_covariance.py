"""The covariance of leaves' doubts is that of the dense joint Gaussian process, to rounding."""

import numpy as np
import pytest

from optstream.history.posterior import LeafCovariance, LeafSpans, TreePosterior
from tests.optstream.history.dense import Dense
from tests.optstream.history.test_tree_posterior import NOISES, TREES, blocks_of, case
from tests.optstream.history.written_out import written_out


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
