"""The posterior of all series of a tree, from blocks that were measured at the same times: exact and linear
in the number of nodes.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh
from scipy.linalg.lapack import dpotri

from optstream.estimation.gaussian_process.blocks import Blocks
from optstream.estimation.gaussian_process.prior import NUGGET, TemporalPrior
from optstream.estimation.gaussian_process.surprises.spanned_rows import SpannedRows
from optstream.estimation.gaussian_process.tree_passes import Passed, pass_over_tree
from optstream.estimation.lattice.independent_cells import pass_over_lattice
from optstream.stream import AggregationTree, Lattice

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoiseGroups:
    """Which blocks share joint noise.

    numbers: (n,), the same for blocks of one group. sizes: (n_nodes, n), blocks of the group, some of which
    may be no longer known; 1 for Laplace noise.
    """

    numbers: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What was measured, relative to nothing yet.

    blocks: n of them, the same at every node. residuals: (n_nodes, n), measured minus prior mean; anything
    where a node was not measured. noise: (n_nodes,), variance of each entry of a row; inf where it was not.
    sizes: (n_leaves,), s_i. groups: of the noise; None where all of it is Laplace noise.
    """

    tree: AggregationTree
    blocks: Blocks
    residuals: Floats
    noise: Floats
    sizes: Floats
    groups: NoiseGroups | None = None

    @cached_property
    def key(self) -> bytes:
        """A digest of all of it but names."""
        blocks = self.blocks
        tree = (self.tree.parents, getattr(self.tree, "members", None))
        digest = hashlib.sha256(repr(tree).encode())
        for part in (
            self.residuals, self.noise, self.sizes,
            blocks.clock, blocks.lengths, blocks.kinds, blocks.events, blocks.worth,
        ):  # fmt: skip
            digest.update(np.ascontiguousarray(part).data)
        if self.groups is not None:
            digest.update(self.groups.numbers.tobytes() + self.groups.sizes.tobytes())
        return digest.digest()


@dataclass(frozen=True, eq=False)
class Rotation:
    """The own part's eigenbasis at the blocks, (n, n), its spectrum, (n,); the shared covariance in it."""

    basis: Floats
    spectrum: Floats
    shared: Floats

    @classmethod
    def of(cls, prior: TemporalPrior, blocks: Blocks) -> "Rotation":
        """Return the kernels of these blocks under this prior. Time O(n^3)."""
        shared, own = prior.covariances(blocks, blocks)
        own[np.diag_indices_from(own)] += NUGGET * blocks.worth**2 * blocks.lengths
        spectrum, basis = eigh(own, driver="evd", overwrite_a=True)
        least = 1e-14 * max(float(spectrum[-1]), 1e-300)
        return cls(basis, np.maximum(spectrum, least), basis.T @ shared @ basis)


class TreePosterior:
    """Condition the prior on what was seen.

    With x_i = s_i (f + g_i) at the blocks, f ~ N(0, F), g_i ~ N(0, G) and measurements of leaves and of sums
    of leaves: in the eigenbasis of G the g_i of different modes are independent, and so is the noise, for all
    nodes were measured at the same blocks. Given f each mode is a tree of scalars (`pass_over_tree`, beside a
    margin `pass_over_lattice`); f itself takes one n x n solve. Nothing is approximated. Time O(n^3 + nodes
    n), memory O(n^2 + nodes n).

    Costs no privacy. Raises numpy.linalg.LinAlgError only for a prior that is no covariance.
    """

    def __init__(self, prior: TemporalPrior, seen: Seen, rotation: "Rotation | None" = None) -> None:
        self.prior, self.seen = prior, seen
        self.rotation = rotation or Rotation.of(prior, seen.blocks)
        self.basis, self.spectrum = self.rotation.basis, self.rotation.spectrum
        self.weights = seen.tree.add_up(seen.sizes[:, None])
        known = np.isfinite(seen.noise)[:, None]
        rotated = np.where(known, seen.residuals, 0.0) @ self.basis
        loading = np.broadcast_to(np.where(known, self.weights, 0.0), rotated.shape)
        self.passed: Passed = self._passed((rotated, loading))
        self.asked: dict[int, tuple[Floats, Floats]] = {}
        """Of `surprises.left_out`: what was asked is kept."""
        self._join_shared()

    def _passed(self, sides: tuple[Floats, ...]) -> Passed:
        """Return what each side says of all nodes, the modes of the own parts being independent."""
        tree, variances = self.seen.tree, self.seen.sizes[:, None] ** 2 * self.spectrum
        if isinstance(tree, Lattice):
            return pass_over_lattice(tree, variances, self.seen.noise, sides)
        return pass_over_tree(tree, variances, self.seen.noise, sides)

    def revalued(self, residuals: Floats, noise: Floats) -> "TreePosterior":
        """Return the posterior of other values with other noise at the same blocks."""
        return TreePosterior(self.prior, replace(self.seen, residuals=residuals, noise=noise), self.rotation)

    def _join_shared(self) -> None:
        """The shared part's posterior: precision P and pull q from the tree, in the eigenbasis."""
        (residual, load), (pull, self.loads) = self.passed.means, self.passed.pulls
        self.precision = (self.weights * self.loads).sum(axis=0)
        first = (self.weights * pull).sum(axis=0)
        n = self.spectrum.size
        root = np.sqrt(np.maximum(self.precision, 1e-300))
        factor = cholesky(np.eye(n) + root[:, None] * self.rotation.shared * root[None, :], lower=True)
        half, _ = dpotri(factor, lower=1)  # the lower half of the product's inverse; its diagonal is above 0
        inverse = half + np.tril(half, -1).T
        self.kept = (np.eye(n) - inverse) / root[:, None] / root[None, :]
        self.factor_mean = self.kept @ first
        self.log_likelihood = float(
            self.passed.log_density + 0.5 * first @ self.factor_mean - np.sum(np.log(np.diag(factor)))
        )
        # in place: nothing else reads them, and of 10,000 nodes each is 27 MB
        pull -= self.loads * self.factor_mean
        residual -= load * self.factor_mean
        self.pulls = pull
        """Sigma^-1 times the residuals, in the eigenbasis, (n_nodes, n)."""
        self.own_means = residual

    @cached_property
    def shared_pull(self) -> Floats:
        """What the shared part's covariance is multiplied with, (n,), in the eigenbasis."""
        return np.asarray((self.weights * self.pulls).sum(axis=0))

    @cached_property
    def shared_precision(self) -> Floats:
        """The precision of all measurements for the shared part, the parts' uncertainty counted in, (n,
        n).
        """
        p = self.precision
        return np.asarray(np.diag(p) - p[:, None] * self.kept * p[None, :])

    def own_pull(self) -> Floats:
        """Return what each node's own covariance is multiplied with, (n_nodes, n), in the eigenbasis."""
        return np.asarray(self.own_means / self.spectrum)

    def own_loads(self) -> Floats:
        """Return how the own parts move with the shared one, (n_nodes, n)."""
        return np.asarray(self.passed.means[1] / self.spectrum)

    def own_precision(self) -> Floats:
        """The own precision given the shared part, (n_nodes, n)."""
        return np.asarray((self.passed.prior - self.passed.variances) / self.spectrum**2)

    @cached_property
    def spanned_loads(self) -> SpannedRows:
        """The loads, as sums of few."""
        return SpannedRows.of(self.loads)

    def alone(self) -> Floats:
        """Return the diagonal of Sigma^-1 in the eigenbasis, the shared part being known, (n_nodes, n); 0
        where a node was not measured.
        """
        known = np.isfinite(self.seen.noise)[:, None]
        noise = np.where(known, self.seen.noise[:, None], 1.0)
        return np.where(known, np.maximum(noise - self.passed.variances, 0.0) / noise**2, 0.0)

    @cached_property
    def spanned_alone(self) -> SpannedRows:
        """The same, as sums of few."""
        return SpannedRows.of(self.alone())

    @cached_property
    def spanned_own_loads(self) -> SpannedRows:
        """The own parts' loads, likewise: all days that are asked about need them."""
        return SpannedRows.of(self.own_loads())

    def means(self, steps: Blocks) -> Floats:
        """Return posterior means of every node at these steps less the prior means, (n_nodes, n_steps)."""
        shared, own = self.prior.covariances(steps, self.seen.blocks)
        together = (shared @ self.basis) @ self.shared_pull
        return np.asarray(self.weights * together + self.own_pull() @ (own @ self.basis).T)

    def responses(self, columns: Floats, steps: Blocks) -> tuple[Floats, Floats]:
        """Return for other residuals (n_columns, n_nodes, n) what `means` would be, (n_columns, n_nodes,
        n_steps), and Sigma^-1 times them, in the eigenbasis and 0 where a node was not measured. Linear.
        """
        known = np.isfinite(self.seen.noise)[:, None]
        rotated = np.where(known, columns, 0.0) @ self.basis
        passed = self._passed(tuple(rotated))
        pulls, own_means = np.stack(passed.pulls), np.stack(passed.means)
        factor_means = ((self.weights * pulls).sum(axis=1) @ self.kept)[:, None]
        pulls, own_means = (
            part - load * factor_means
            for part, load in ((pulls, self.loads), (own_means, self.passed.means[1]))
        )
        shared, own = self.prior.covariances(steps, self.seen.blocks)
        together = (self.weights * pulls).sum(axis=1) @ (shared @ self.basis).T
        of_own = (own_means / self.spectrum) @ (own @ self.basis).T
        return self.weights * together[:, None] + of_own, pulls

    def variances(self, steps: Blocks, nodes: NDArray[np.int64] | None = None) -> Floats:
        """Return posterior variances of every node at these steps, or of some of them, (n_nodes, n_steps)."""
        chosen = slice(None) if nodes is None else nodes
        shared, own = (part @ self.basis for part in self.prior.covariances(steps, self.seen.blocks))
        of_shared, of_own = self.prior.variances(steps)
        squares = self.seen.tree.add_up(self.seen.sizes[:, None] ** 2)
        known = np.einsum("tk,kl,tl->t", shared, self.shared_precision, shared, optimize=True)
        shared_precise = shared * self.precision
        shared_kept = shared_precise @ self.kept
        found = self.weights[chosen] ** 2 * (of_shared - known) + squares[chosen] * of_own
        loads = self.own_loads()[chosen]
        cross = loads @ ((shared - shared_kept) * own).T
        explained = self.own_precision()[chosen] @ (own**2).T
        spanned = self.spanned_own_loads if nodes is None else SpannedRows.of(loads)
        explained -= spanned.squares(own, self.kept)
        return np.asarray(np.maximum(found - 2.0 * self.weights[chosen] * cross - explained, 0.0))
