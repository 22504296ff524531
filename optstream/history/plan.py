"""How far a plan's estimates are expected to miss, by the prior alone: known before anything is measured."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.history.blocks import Blocks
from optstream.history.posterior import Rotation, Seen, TreePosterior
from optstream.history.prior import TemporalPrior
from optstream.history.robust import joint_information
from optstream.stream import AggregationTree

MOST_LOOKED_AT = 4
ROUNDS = 2  # blocks for measuring how much heavy noise the estimate removes (`robust_noise`)


@dataclass(frozen=True)
class PlannedNoise:
    """The noise of a block's mean, relative to a series' size, as Laplace noise of its variance. like_group:
    of how many blocks a group of joint noise has shares like it; 1 for Laplace noise."""

    scale: float
    like_group: int = 1

    @property
    def variance(self) -> float:
        return 2.0 * self.scale**2

    def noise_variance(self, model_variance: float) -> float:
        """Return the variance of normal noise with the same information, at this variance of the model."""
        size = self.like_group
        scale = self.scale * float(np.sqrt(6.0 / ((size + 1) * (size + 2))))
        information = joint_information(model_variance, scale, size)
        return float(np.clip(1.0 / information - model_variance, size * scale**2, self.variance))


@dataclass(frozen=True, eq=False)
class PlannedBlocks:
    """Blocks that will be known, and the steps that are judged by them; the rotation is most of the work."""

    prior: TemporalPrior
    blocks: Blocks
    rotation: Rotation
    judged: Blocks

    @classmethod
    def of(
        cls, prior: TemporalPrior, starts: NDArray[np.int64], lengths: NDArray[np.int64], period: range
    ) -> "PlannedBlocks":
        """Return the plan of blocks with these clock places and lengths in steps, (n,)."""
        blocks = Blocks.at(starts, lengths, weight=1.0 / lengths)
        judged = Blocks.at(np.array(period, dtype=np.int64))
        return cls(prior, blocks, Rotation.of(prior, blocks), judged)


def expected_level_errors(
    plan: PlannedBlocks, tree: AggregationTree, noise: Sequence[PlannedNoise | None]
) -> NDArray[np.float64]:
    """Return for each level the root mean square error of a node's step, relative to the node, (n_levels,).
    Leaves are of size 1; noise is None for a level that is not measured. At most `MOST_LOOKED_AT` nodes a
    level are used."""
    variances = [np.inf if one is None else one.variance for one in noise]
    errors = level_errors(plan, tree, variances)
    leaves = [float(tree.leaves_below[level.start : level.stop].mean()) for level in tree.levels]
    for _ in range(ROUNDS):
        variances = [
            np.inf if one is None else one.noise_variance(float((missed * size) ** 2))
            for one, missed, size in zip(noise, errors, leaves, strict=True)
        ]
        errors = level_errors(plan, tree, variances)
    return errors


def level_errors(
    plan: PlannedBlocks, tree: AggregationTree, variances: Sequence[float]
) -> NDArray[np.float64]:
    """Return `expected_level_errors` for normal noise of these variances, relative to a leaf's."""
    looked_at = [
        np.unique(np.linspace(level.start, level.stop - 1, MOST_LOOKED_AT).astype(np.int64))
        for level in tree.levels
    ]
    shape, noise = (len(tree.nodes), plan.blocks.clock.size), np.array(variances)[np.array(tree.depths)]
    seen = Seen(tree, plan.blocks, np.zeros(shape), noise, np.ones(len(tree.leaves)))
    posterior = TreePosterior(plan.prior, seen, plan.rotation)
    found = posterior.variances(plan.judged, np.concatenate(looked_at)).mean(axis=1)
    leaves = posterior.weights[np.concatenate(looked_at), 0]
    relative = np.split(found / leaves**2, np.cumsum([len(nodes) for nodes in looked_at])[:-1])
    return np.asarray(np.sqrt([level.mean() for level in relative]))
