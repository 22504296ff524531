"""How the errors of small leaves hang together, which are shares of their parents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

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
from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import TemporalPrior
from optstream.estimation.gaussian_process.surprises.spanned_rows import SpannedRows
from optstream.estimation.many_leaves.squares import Squares
from optstream.stream.public_days import PublicDays

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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

    def squares(self, leaves: "csr_array", times: Floats) -> list[Squares]:
        """Return what sums of leaves add, by weights of leaves, (p, n_leaves), and of times, (q, n_asked):
        each leaf apart, then siblings together.
        """
        from scipy.sparse import csr_array

        worths, of_times, shared = [], [], []
        for one, moved, power, gain in self._parts(times):
            sums, told = np.asarray(moved.sum(axis=1)), SpannedRows.of(gain)
            of_all, of_own = np.outer(sums, sums), moved @ (moved @ self.alone).T
            of_times.append(np.concatenate([of_all[None], of_own[None], -told.weighed(moved @ one.across)]))
            worths.append(np.column_stack([self._sizes[one.leaves], power, told.weights]))
            shared.append(-of_all)
        rows, n_families = np.concatenate([one.leaves for one in self.families]), len(self.families)
        family = np.repeat(np.arange(n_families), [one.leaves.size for one in self.families])
        joined = csr_array((self.estimate.joined[rows], (rows, family)), shape=(rows.size, n_families))
        # each family's matrices are its own
        apart = Squares(leaves, block_diag(*worths)[np.argsort(rows)], np.concatenate(of_times))
        together = Squares(csr_array(leaves @ joined), np.eye(n_families), np.array(shared))
        return [one.scaled(self.estimate.factor) for one in (apart, together)]

    @property
    def _sizes(self) -> Floats:
        """Variances of the sizes, each known by itself."""
        return self.estimate.doubts + self.estimate.joined**2

    def _parts(self, times: Floats) -> "Iterator[tuple[Family, csr_array, Floats, Floats]]":
        """Yield each family, its weights of times, (q, n_asked), the powers of its leaves' own parts, (m,),
        and what blocks explain of them, (m, n_blocks).
        """
        from scipy.sparse import csr_array

        for one in self.families:
            power = (self.estimate.strength * self.estimate.sizes[one.leaves]) ** 2
            seen = power[:, None] * one.spectrum + self.estimate.noise[one.leaves, None]
            moved = csr_array(times * self.shapes[self.parents[one.leaves[0]]])  # of single steps, mostly 0
            yield one, moved, power, power[:, None] ** 2 / seen


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
