"""Error covariances of counts: of their expectations, and of their variation around them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from optstream.estimation.error_terms import ErrorProducts, outer_squares
from optstream.estimation.groups import Groups, InGroups, Part, Squares, in_few, leaves_below
from optstream.history.blocks import BlockHistory, Blocks
from optstream.history.counts import (
    LEAST_SHAPE,
    Family,
    Integers,
    LeafBlocks,
    LeafEstimate,
    SharedFit,
    Variation,
    block_sums,
    count_variation,
    estimate_leaves,
    families_of,
    own_parts,
    shapes_of,
    shares_of_parents,
)
from optstream.history.filter import LeafErrors, step_blocks
from optstream.history.posterior import SpannedRows
from optstream.history.prior import TemporalPrior
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# The error covariance of small leaves, which are shares of their parents.

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SmallLeafErrors:
    """The covariance of a `LeafEstimate`.

    Given their parents leaves err independently, but for sizes, which add up to the parent's.

    Attributes:
        estimate: Of the leaves.
        families: At the target steps.
        alone: (n_asked, n_targets), covariance of the own parts at the target steps without blocks.
        shapes: (n_parents, n_targets), the parents' series over their means.
        parents: (n_leaves,), rows of these.
    """

    estimate: LeafEstimate
    families: Sequence[Family]
    alone: Floats
    shapes: Floats
    parents: Integers

    def squares(self, leaves: "csr_array", times: Floats) -> list[Squares]:
        """Return the covariance of sums of leaves and times: each leaf's own, then that of siblings."""
        from scipy.sparse import csr_array

        weights, of_times, shared = [], [], []
        for one, moved, power, gain in self._parts(times):
            sums, explained = np.asarray(moved.sum(axis=1)), SpannedRows.of(gain)
            of_all, of_own = np.outer(sums, sums), moved @ (moved @ self.alone).T
            of_times.append(
                np.concatenate([of_all[None], of_own[None], -explained.weighed(moved @ one.across)])
            )
            weights.append(np.column_stack([self._sizes[one.leaves], power, explained.weights]))
            shared.append(-of_all)
        rows, n_families = np.concatenate([one.leaves for one in self.families]), len(self.families)
        family = np.repeat(np.arange(n_families), [one.leaves.size for one in self.families])
        joined = csr_array((self.estimate.joined[rows], (rows, family)), shape=(rows.size, n_families))
        # each family's matrices are its own
        leaf_parts = Squares(leaves, block_diag(*weights)[np.argsort(rows)], np.concatenate(of_times))
        siblings = Squares(csr_array(leaves @ joined), np.eye(n_families), np.array(shared))
        return [one.scaled(self.estimate.factor) for one in (leaf_parts, siblings)]

    @property
    def _sizes(self) -> Floats:
        """Variances of the sizes, each known by itself."""
        return self.estimate.size_variances + self.estimate.joined**2

    def _parts(self, times: Floats) -> "Iterator[tuple[Family, csr_array, Floats, Floats]]":
        """Yield each family, its weights of times, and the power and known share of its leaves' own parts."""
        from scipy.sparse import csr_array

        for one in self.families:
            power = (self.estimate.strength * self.estimate.sizes[one.leaves]) ** 2
            seen = power[:, None] * one.spectrum + self.estimate.noise[one.leaves, None]
            moved = csr_array(times * self.shapes[self.parents[one.leaves[0]]])  # of single steps, mostly 0
            yield one, moved, power, power[:, None] ** 2 / seen


def small_leaf_errors(
    estimate: LeafEstimate,
    blocks: LeafBlocks,
    parents: Floats,
    first: int,
    now: Floats,
    targets: range,
    prior: TemporalPrior,
    days: PublicDays,
) -> SmallLeafErrors:
    """Return the error covariance of an estimate of `estimate_leaves` at some of its steps.

    `now`, (n_parents, n_targets), are the parents' means there.
    """
    means, shape = shapes_of(parents)
    cover = block_sums(shape, blocks, first)
    families = families_of(blocks, cover, np.zeros_like(blocks.sums), targets, prior, days)
    steps = np.arange(targets.start, targets.stop)
    single = Blocks.at(days.clock(steps), kinds=days.kinds(steps))
    alone = own_parts(prior).covariances(single, single)[1]
    shapes = np.maximum(now / means[:, None], LEAST_SHAPE)
    return SmallLeafErrors(estimate, families, alone, shapes, blocks.parents)


TRUSTED = 0.03
"""Relative: how exactly it is written how far a node is doubted at a step; twice as many products cost four
times as much."""
LEAST = 1e-8
"""Relative, of variances: columns of expectations that count for less are left out."""
NEARLY = 1e-7
"""Relative: how exactly rows of the posterior are known, of which errors are differences."""
MOST_TRUSTS = 4
"""Such products at most. What counts are found to be differs from step to step, which no few say to the last
digit: of 161 nodes as many as steps (36) did, and errors took minutes and gigabytes."""
MOST_FORMS = 288
"""Such products times the steps of a period: of 37 nodes at 288 steps three took 25 seconds and 9 GB, one, to
1 % in nine of ten single counts, takes 8 seconds and 2 GB."""


@dataclass(frozen=True, eq=False)
class CountErrors:
    """The covariance of `published_counts` (`CovarianceOfSums`), of nodes.

    Levels have factors of their own, so nodes' expectations do not err as the sums of their leaves; counts
    vary around them additively. Small leaves err independently, and by their shares of their parents' errors.

    Attributes:
        shared: The posterior of the levels that share blocks.
        leaf_errors: Of the leaves of these levels.
        trust: (n_parts, n_nodes), (n_parts, n_targets): the factor of each node's deviation at each time,
            as a sum of products.
        sizes: (n_nodes, n_targets), the weight of the error of a size at each time.
        size_errors: (n_nodes, n_shared_nodes), nodes' errors by those of these levels' sizes.
        variation: Of the counts of these levels in the period.
        expected: (n_leaves, n_steps), variance of each leaf's count, in the period alone.
        below: (n_nodes, n_leaves), which leaves lie below each node, times their factor of that variance.
        erring: (n_nodes, n_shared_nodes), nodes' errors by those of these levels: their own, or, of small
            leaves, their shares of their parents'.
        leaves: Of small leaves, the last nodes; None where there are none.
    """

    shared: SharedFit
    leaf_errors: LeafErrors
    trust: tuple[Floats, Floats]
    sizes: Floats
    size_errors: "csr_array"
    variation: Variation
    expected: Floats
    below: "csr_array"
    erring: "csr_array"
    leaves: SmallLeafErrors | None
    n_earlier: ClassVar[int] = 0
    of_nodes: ClassVar[bool] = True

    def products(self, leaves: "Floats | csr_array", times: Floats) -> ErrorProducts:
        """Return the covariance of sums, by weights of nodes, (p, n_nodes), and of times, (q, n_targets)."""
        from scipy.sparse import csr_array

        nodes, n_shared = csr_array(leaves), len(self.shared.tree.nodes)
        period = times[:, -self.expected.shape[1] :]
        shared_leaves = csr_array(nodes[:, :n_shared] @ leaves_below(self.shared.tree))
        erring = csr_array(nodes @ self.erring)
        counted = Squares(csr_array(nodes @ self.below), self.expected, outer_squares(period.T))
        size_errors = csr_array(nodes @ self.size_errors)
        parts: list[Part] = [
            *self._expectations(erring, times),
            Squares.of_rows(size_errors, self.sizes @ times.T),
            counted,
            *self.variation.explained(shared_leaves, period),
        ]
        if self.leaves is not None:
            parts += self.leaves.squares(nodes[:, n_shared:], times)
        return ErrorProducts.of_groups(parts, nodes.shape[0], len(times))

    def _expectations(self, nodes: "csr_array", times: Floats) -> list[Groups]:
        """Return the covariance of expectations, by each node's and time's factor."""
        from scipy.sparse import csr_array

        below, (of_nodes, of_times) = leaves_below(self.shared.tree).tocoo(), self.trust
        # each leaf once for each node above it, which has a trust of its own
        pairs = csr_array(
            (np.ones(below.nnz), (below.row, np.arange(below.nnz))), (below.shape[0], below.nnz)
        )
        sums, found, n, q = nodes @ pairs, [], len(of_nodes), len(times)
        for one in self.leaf_errors.in_groups((times * of_times[:, None]).reshape(n * q, -1)):
            columns = of_nodes[:, below.row, None] * one.columns[below.col]
            c = columns.shape[2]
            forms = (
                one.forms.reshape(c, n, q, c, n, q).transpose(1, 0, 2, 4, 3, 5).reshape(n * c, q, n * c, q)
            )
            of = one.of[below.col]
            found.append(InGroups(of, columns.transpose(1, 0, 2).reshape(-1, n * c), forms))
        return in_few(found, sums, LEAST)


def count_errors(
    shared: SharedFit,
    histories: Mapping[int, BlockHistory],
    tree: AggregationTree,
    small: int | None,
    targets: range,
    n_steps: int,
) -> CountErrors | None:
    """Return the error covariance of counts; None where leaves were not measured.

    `targets` are running steps, the period's n_steps the last ones of them.
    """
    from scipy.sparse import csr_array, diags_array, eye_array, vstack

    days, n_before = shared.days, len(targets) - n_steps
    steps = targets[n_before:]
    blocks = step_blocks(targets, days, shared.events)
    means = shared.of_nodes + shared.found.published_means(blocks)
    now = means[:, n_before:]
    varied = count_variation(shared.tree, now, shared.measured, steps)
    below, leaves, erring = leaves_below(tree), None, eye_array(len(means), format="csr")
    found, of_sizes = now + varied.moved, np.sqrt(shared.excess_variances)
    size_errors = diags_array(of_sizes[:, 0], format="csr")
    if small is not None:
        known = shared.leaf_blocks(tree, small, histories[small], steps)
        if known is None:
            return None
        prior = shared.found.posterior.prior
        estimate = estimate_leaves(*known, steps, prior, days, 1.0)
        leaves = small_leaf_errors(estimate, *known, shared.means(targets), targets, prior, days)
        shares = shares_of_parents(estimate, known[0].parents, len(means))
        deviations = np.sqrt(shared.excess_variances_with(estimate, known[0].parents))
        size_errors = vstack([diags_array(deviations[:, 0]), csr_array(shares * of_sizes.T)], format="csr")
        more = np.where(np.arange(len(tree.nodes)) < len(means), 1.0, np.sqrt(estimate.factor))
        below = diags_array(more, format="csr") @ below
        erring = vstack([erring, csr_array(shares)], format="csr")
        # above small leaves other leaves may lie
        found = np.vstack([found, estimate.means * shared.raised(now, varied)[known[0].parents]])
    left = np.sqrt(1.0 - count_variation(shared.tree, means, shared.measured, targets).known_expected)
    most = min(MOST_TRUSTS, max(MOST_FORMS // n_steps, 1))
    trust = few_products(np.sqrt(shared.factors)[:, None] * left, most)
    leaf_errors = LeafErrors(shared.found, blocks, NEARLY)
    return CountErrors(
        shared,
        leaf_errors,
        trust,
        left * shared.shape(means),
        size_errors,
        varied,
        np.maximum(found[tree.leaf_indices], 0.0),
        below,
        erring,
        leaves,
    )


def few_products(rows: Floats, most: int) -> tuple[Floats, Floats]:
    """Return (r, n_rows) and (r, n_columns) whose products add up to rows above 0, to `TRUSTED` or `most`
    terms.

    Nearness is relative: each row and column is first divided by its geometric mean.
    """
    logs = np.log(rows)
    of_rows, of_columns = np.exp(logs.mean(axis=1)), np.exp(logs.mean(axis=0) - logs.mean())
    scale = np.outer(of_rows, of_columns)
    left, strengths, right = np.linalg.svd(rows / scale, full_matrices=False)
    weighed, rank = left * strengths, 1
    while (
        rank < min(most, strengths.size)
        and np.abs(weighed[:, :rank] @ right[:rank] * scale / rows - 1.0).max() > TRUSTED
    ):
        rank += 1
    return weighed[:, :rank].T * of_rows, right[:rank] * of_columns
