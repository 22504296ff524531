"""How the errors of small leaves hang together, which are shares of their parents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.counts.shares import (
    LEAST_SHAPE,
    Family,
    Integers,
    LeafBlocks,
    LeafEstimate,
    block_sums,
    families_of,
    own_parts,
    shapes_of,
)
from optstream.estimation.error_products import outer_squares, products_of_each
from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeafDoubt:
    """The covariance of which a `LeafEstimate` has the variances: leaves err apart, their parents known, but
    for sizes, which add up to what is known of the parent's.

    Attributes:
        estimate: Of the leaves.
        families: At the asked steps.
        alone: (n_asked, n_asked), covariance of the own parts at the asked steps without blocks.
        shapes: (n_parents, n_asked), the parents' series over their means.
        parents: (n_leaves,), rows of these.
    """

    estimate: LeafEstimate
    families: Sequence[Family]
    alone: Floats
    shapes: Floats
    parents: Integers

    def products(self, leaves: Floats, times: Floats) -> tuple[Floats, Floats]:
        """Return matrices of sums of leaves and of times whose products add up to the covariance, (n, p, p)
        and (n, q, q), by weights of leaves, (p, n_leaves), and of times, (q, n_asked).
        """
        of_leaves, nodes, squares = np.zeros((len(self.parents), *(len(times),) * 2)), [], []
        for one, moved, power, gain in self._parts(times):
            sums = moved.sum(axis=1)
            of_all, of_own = np.outer(sums, sums), power[:, None, None] * (moved @ self.alone @ moved.T)
            explained = np.tensordot(gain, outer_squares((moved @ one.across).T), axes=1)
            of_leaves[one.leaves] = self._sizes[one.leaves, None, None] * of_all + of_own - explained
            joined = leaves[:, one.leaves] @ self.estimate.joined[one.leaves]
            nodes.append(-np.outer(joined, joined))
            squares.append(of_all)
        alone, times_alone = products_of_each(leaves, of_leaves)
        every = np.concatenate([alone, nodes]), np.concatenate([times_alone, squares])
        return self.estimate.factor * every[0], every[1]

    @property
    def _sizes(self) -> Floats:
        """Variances of the sizes, each known by itself."""
        return self.estimate.doubts + self.estimate.joined**2

    def _parts(self, times: Floats) -> Iterator[tuple[Family, Floats, Floats, Floats]]:
        """Yield each family, its weights of times, (q, n_asked), the powers of its leaves' own parts, (m,),
        and what blocks explain of them, (m, n_blocks).
        """
        for one in self.families:
            power = (self.estimate.strength * self.estimate.sizes[one.leaves]) ** 2
            seen = power[:, None] * one.spectrum + self.estimate.noise[one.leaves, None]
            yield one, times * self.shapes[self.parents[one.leaves[0]]], power, power[:, None] ** 2 / seen


def doubt_of_leaves(
    estimate: LeafEstimate,
    blocks: LeafBlocks,
    parents: Floats,
    first: int,
    now: Floats,
    asked: range,
    prior: TemporalPrior,
    days: PublicDays,
) -> LeafDoubt:
    """Return how the errors of an estimate of `estimate_leaves`, asked of some of the steps, hang together at
    these steps; costs no privacy.

    now: (n_parents, n_asked), the parents' means at the asked steps. Other arguments as there.
    """
    means, shape = shapes_of(parents)
    cover = block_sums(shape, blocks, first)
    families = families_of(blocks, cover, np.zeros_like(blocks.sums), asked, prior, days)
    steps = np.arange(asked.start, asked.stop)
    wanted = Blocks.at(days.clock(steps), kinds=days.kinds(steps))
    alone = own_parts(prior).covariances(wanted, wanted)[1]
    shapes = np.maximum(now / means[:, None], LEAST_SHAPE)
    return LeafDoubt(estimate, families, alone, shapes, blocks.parents)
