"""How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.estimation.gaussian_process.tree_posterior import Rotation, Seen, TreePosterior
from optstream.stream import AggregationTree

MOST_LOOKED_AT = 4


@dataclass(frozen=True, eq=False)
class PlannedBlocks:
    """Blocks that will be known, and the steps that are judged by them; of days of one kind.

    The rotation is most of the work, and the same whatever the noise and the tree.
    """

    prior: TemporalPrior
    blocks: Blocks
    rotation: Rotation
    judged: Blocks

    @classmethod
    def of(
        cls, prior: TemporalPrior, starts: NDArray[np.int64], lengths: NDArray[np.int64], period: range
    ) -> "PlannedBlocks":
        """Return the plan of blocks with these clock places and lengths in steps, (n,)."""
        blocks = Blocks.at(starts, lengths, worth=1.0 / lengths)
        judged = Blocks.at(np.array(period, dtype=np.int64))
        return cls(prior, blocks, Rotation.of(prior, blocks), judged)

    def posterior(self, tree: AggregationTree, noise: NDArray[np.float64]) -> TreePosterior:
        """Return what is known of a tree of leaves of size 1 once its nodes are measured with this noise."""
        shape = (len(tree.nodes), self.blocks.clock.size)
        seen = Seen(tree, self.blocks, np.zeros(shape), noise, np.ones(len(tree.leaves)))
        return TreePosterior(self.prior, seen, self.rotation)


def expected_error(plan: PlannedBlocks, noise: float) -> float:
    """Return the root mean square error of a step of a single series, relative to its size.

    noise: variance of a block's mean, relative to the size squared. The values themselves do not matter.
    Costs no privacy.
    """
    single = AggregationTree(("series",), (-1,))
    return float(np.sqrt(plan.posterior(single, np.array([noise])).variances(plan.judged).mean()))


def expected_level_errors(
    plan: PlannedBlocks, tree: AggregationTree, noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return for each level the root mean square error of a node's step, relative to the node, (n_levels,).

    As `expected_error`, over a tree whose leaves are of size 1 and its nodes of their leaves'. noise: of each
    node, (n_nodes,), relative to a leaf's size squared; inf where none is measured. At most `MOST_LOOKED_AT`
    nodes of a level are looked at, spread over it. Costs no privacy.
    """
    looked_at = [
        np.unique(np.linspace(level.start, level.stop - 1, MOST_LOOKED_AT).astype(np.int64))
        for level in tree.levels
    ]
    posterior = plan.posterior(tree, noise)
    variances = posterior.variances(plan.judged, np.concatenate(looked_at)).mean(axis=1)
    leaves = posterior.weights[np.concatenate(looked_at), 0]
    relative = np.split(variances / leaves**2, np.cumsum([len(nodes) for nodes in looked_at])[:-1])
    return np.asarray(np.sqrt([level.mean() for level in relative]))
