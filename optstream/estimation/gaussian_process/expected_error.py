"""How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.estimation.gaussian_process.tree_posterior import Seen, TreePosterior
from optstream.stream import AggregationTree

MOST_LOOKED_AT = 4


def expected_error(
    prior: TemporalPrior, starts: NDArray[np.int64], lengths: NDArray[np.int64], noise: float, period: range
) -> float:
    """Return the root mean square error of a step of a single series, relative to its size.

    starts, lengths: (n,), clock places and steps of the blocks that will be known. noise: variance of a
    block's mean, relative to the size squared. period: the steps that are judged. Days are of one kind.
    The values themselves do not matter. Costs no privacy.
    """
    blocks = Blocks.at(starts, lengths, worth=1.0 / lengths)
    single = AggregationTree(("series",), (-1,))
    seen = Seen(single, blocks, np.zeros((1, starts.size)), np.array([noise]), np.ones(1))
    asked = Blocks.at(np.array(period, dtype=np.int64))
    return float(np.sqrt(TreePosterior(prior, seen).variances(asked).mean()))


def expected_level_errors(
    prior: TemporalPrior,
    tree: AggregationTree,
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    noise: NDArray[np.float64],
    period: range,
) -> NDArray[np.float64]:
    """Return for each level the root mean square error of a node's step, relative to the node, (n_levels,).

    As `expected_error`, over a tree whose leaves are of size 1 and its nodes of their leaves'. noise: of each
    node, (n_nodes,), relative to a leaf's size squared; inf where none is measured. At most `MOST_LOOKED_AT`
    nodes of a level are looked at, spread over it. Costs no privacy.
    """
    blocks = Blocks.at(starts, lengths, worth=1.0 / lengths)
    sizes = np.ones(len(tree.leaves))
    seen = Seen(tree, blocks, np.zeros((len(tree.nodes), starts.size)), noise, sizes)
    looked_at = [
        np.unique(np.linspace(level.start, level.stop - 1, MOST_LOOKED_AT).astype(np.int64))
        for level in tree.levels
    ]
    asked = Blocks.at(np.array(period, dtype=np.int64))
    posterior = TreePosterior(prior, seen)
    variances = posterior.variances(asked, np.concatenate(looked_at)).mean(axis=1)
    leaves = posterior.weights[np.concatenate(looked_at), 0]
    relative = np.split(variances / leaves**2, np.cumsum([len(nodes) for nodes in looked_at])[:-1])
    return np.asarray(np.sqrt([level.mean() for level in relative]))
