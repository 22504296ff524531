"""How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.blocks import Blocks
from optstream.estimation.gaussian_tree import Seen, TreePosterior
from optstream.estimation.temporal_prior import TemporalPrior
from optstream.stream import AggregationTree


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
