"""The posterior of all series of a tree, from blocks at the same times: exact, and linear in nodes."""

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.estimation.system import System, holders_of
from optstream.history.blocks import Blocks
from optstream.history.prior import NUGGET, TemporalPrior
from optstream.stream import AggregationTree, Lattice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AT_ONCE = 2**18  # entries, of nodes and modes, of one pass, for the memory of its intermediate results
MOST_ENTRIES = 2**24  # of the systems of modes of a lattice that are solved side by side: 128 MiB


@dataclass(eq=False)
class Passed:
    """The result of a pass for each right-hand side y. means: E[x | y] of every node, and pulls, Sigma^-1 y,
    (n_sides, n_nodes, n_modes). variances: Var[x | y]; prior: Var[x]. log_density: of the first y, constants
    left out."""

    means: Floats
    pulls: Floats
    variances: Floats
    prior: Floats
    log_density: float = 0.0


def pass_over_tree(tree: AggregationTree, leaf_variances: Floats, noise: Floats, seen: Floats) -> Passed:
    """Condition independent Gaussian leaves, and their sums, on noisy values of nodes.

    Leaves x_i ~ N(0, leaf_variances[i]), a node is the sum of its leaves, y_p = x_p + N(0, noise[p]), each
    mode (column) by itself. leaf_variances: (n_leaves, n_modes), above 0. noise: (n_nodes,), inf where a node
    was not measured. seen: right-hand sides y, (n_sides, n_nodes, n_modes), 0 where a node was not measured.

    A leaf's own measurement makes it N(u, D), D = d r / (d + r), u = d y / (d + r), of prior variance d and
    noise r. The nodes above have multipliers mu = (V + A D A')^-1 (y - A u) (`System`), and a leaf is u + D
    A' mu. Time linear in leaves, modes and sides.
    """
    prior, holders, measured = tree.add_up(leaf_variances), holders_of(tree), np.isfinite(noise)
    found = Passed(np.empty(seen.shape), np.empty(seen.shape), np.empty(prior.shape), prior)
    leaves, nodes = holders.leaves, holders.above
    at, above, noises = measured[leaves, None], measured[nodes], np.where(measured, noise, 0.0)
    precision = np.where(above, 1.0 / noise[nodes], 0.0)[:, None, None, None]
    width = max(1, AT_ONCE // len(prior))
    if isinstance(tree, Lattice):
        width = max(1, MOST_ENTRIES // len(nodes) ** 2)
    for first in range(0, prior.shape[1], width):
        some = np.s_[..., first : first + width]
        own, values = prior[some][leaves], np.stack(tuple(seen[some]), axis=-1)
        weight = np.where(at, 1.0 / (own + noises[leaves, None]), 0.0)
        free = np.where(at, own * noises[leaves, None] * weight, own)
        shape = len(nodes), own.shape[1], 1, 1
        system = System(holders, np.broadcast_to(precision, shape), free[..., None, None])
        known = (own * weight)[..., None] * values[leaves]
        right = np.where(above[:, None, None], values[nodes] - holders.sums(known), 0.0)
        mu, pulled = (part[:, :, 0] for part in system.refined(right[:, :, None]))
        of_leaves = known + free[..., None] * pulled
        pulls = weight[..., None] * (values[leaves] - own[..., None] * pulled)
        for whole, below, upper in (
            (found.means[some], of_leaves, holders.sums(of_leaves)),
            (found.pulls[some], pulls, mu),
        ):
            whole[:, leaves], whole[:, nodes] = np.moveaxis(below, -1, 0), np.moveaxis(upper, -1, 0)
        variances = found.variances[some]
        variances[leaves], variances[nodes] = (part[..., 0] for part in system.variances())
        surprise = float((weight * values[leaves, :, 0] ** 2).sum() + (right[..., 0] * mu[..., 0]).sum())
        spread = -float(np.log(weight[at[:, 0]]).sum())
        spread -= float(np.log(system.gain[above[: len(system.gain)]]).sum())
        spread += float(np.linalg.slogdet(system.factor)[1].sum())
        found.log_density -= 0.5 * (surprise + spread)
    return found


EXACT = 1e-10  # of a row's length: the largest residual of the span
NEGLIGIBLE = 1e-13  # of a row's length, squared: pairs of the span that count for less are left out


@dataclass(frozen=True, eq=False)
class SpannedRows:
    """Rows as `weights` (n_rows, r) times `span` (r, n): a dozen rows span those of 10,000 nodes, and
    quadratic work in n is done for these alone."""

    weights: Floats
    span: Floats

    @classmethod
    def of(cls, rows: Floats) -> "SpannedRows":
        """Return these rows, to `EXACT` of each one's length, by Gram-Schmidt with the worst row next."""
        lengths = np.linalg.norm(rows, axis=1)
        lengths[lengths == 0.0] = 1.0
        left = rows / lengths[:, None]
        known = np.empty_like(left)
        found: list[Floats] = []
        for _ in range(min(rows.shape)):
            squares = np.einsum("ij,ij->i", left, left)
            worst = int(np.argmax(squares))
            if squares[worst] <= EXACT**2:
                break
            one = left[worst].copy()
            for other in found:  # once more, for rounding
                one -= (one @ other) * other
            one /= np.linalg.norm(one)
            left -= np.multiply((left @ one)[:, None], one, out=known)
            found.append(one)
        span = np.array(found).reshape(len(found), rows.shape[1])
        return cls(rows @ span.T, span)

    @property
    def pairs(self) -> Floats:
        """What each row counts a pair of the span for, each pair once, (n_rows, r (r + 1) / 2)."""
        first, second = np.triu_indices(len(self.span))
        return np.asarray(self.weights[:, first] * self.weights[:, second])

    def squares(self, ends: Floats, matrix: Floats) -> Floats:
        """Return (row * end)' M (row * end) of each row and end, (n_rows, n_ends), M symmetric."""
        lengths = np.linalg.norm(self.weights, axis=1, keepdims=True)
        major = (np.abs(self.weights) > np.sqrt(NEGLIGIBLE) * lengths).any(axis=0)
        moved = self.span * ends[:, None, :]
        forms = (moved[:, major] @ matrix) @ moved.transpose(0, 2, 1)
        forms[:, :, ~major] *= 2.0
        n_pairs = forms.shape[1] * forms.shape[2]
        pairs = (self.weights[:, major, None] * self.weights[:, None, :]).reshape(len(lengths), n_pairs)
        return np.asarray(pairs @ forms.reshape(len(ends), n_pairs).T)

    def products(self, ends: Floats, matrix: Floats) -> Floats:
        """Return the same of any two ends for the `pairs` of the span, (n_pairs, n_ends, n_ends)."""
        moved = self.span[:, None, :] * ends
        rank, n_ends, n = moved.shape
        across = (moved @ matrix).reshape(-1, n) @ moved.reshape(-1, n).T
        of_pairs = across.reshape(rank, n_ends, rank, n_ends).transpose(0, 2, 1, 3)
        first, second = np.triu_indices(rank)
        both = of_pairs[first, second] + of_pairs[second, first]
        both[first == second] /= 2.0
        return np.asarray(both)

    def weighed(self, ends: Floats) -> Floats:
        """Return ends diag(span) ends', (r, n_ends, n_ends)."""
        return np.asarray((self.span[:, None, :] * ends) @ ends.T)


@dataclass(frozen=True, eq=False)
class Seen:
    """Measurements, relative to prior means, of n blocks that are the same at every node. residuals:
    (n_nodes, n). noise: (n_nodes,), variance of each entry of a row; inf where it was not measured. sizes:
    (n_leaves,), s_i. like_group: (n_nodes, n), as in `BlockHistory`; None where all
    noise is Laplace noise."""

    tree: AggregationTree
    blocks: Blocks
    residuals: Floats
    noise: Floats
    sizes: Floats
    like_group: NDArray[np.int64] | None = None

    @cached_property
    def key(self) -> bytes:
        """A digest of all of it but names."""
        digest = sha256(repr((self.tree.parents, getattr(self.tree, "members", None))).encode())
        groups = () if self.like_group is None else (self.like_group,)
        for part in (self.residuals, self.noise, self.sizes, *vars(self.blocks).values(), *groups):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()


@dataclass(frozen=True, eq=False)
class Rotation:
    """The own part's eigenbasis at the blocks, its spectrum, and the shared covariance in it."""

    basis: Floats
    spectrum: Floats
    shared: Floats

    @classmethod
    def of(cls, prior: TemporalPrior, blocks: Blocks) -> "Rotation":
        """Return the kernels of these blocks under this prior. Time O(n^3)."""
        shared, own = prior.covariances(blocks, blocks)
        own[np.diag_indices_from(own)] += NUGGET * blocks.weight**2 * blocks.lengths
        spectrum, basis = scipy.linalg.eigh(own, driver="evd", overwrite_a=True)
        least = 1e-14 * max(float(spectrum[-1]), 1e-300)
        return cls(basis, np.maximum(spectrum, least), basis.T @ shared @ basis)


class TreePosterior:
    """The prior conditioned on measurements.

    With x_i = s_i (f + g_i) at the blocks, f ~ N(0, F), g_i ~ N(0, G) and measurements of leaves and of sums
    of leaves: in the eigenbasis of G each mode, given f, is a tree of scalars (`pass_over_tree`); f itself
    takes one n x n solve. Exact. Time O(n^3 + nodes n), memory O(n^2 + nodes n). Raises
    numpy.linalg.LinAlgError only for a prior that is no covariance.
    """

    def __init__(self, prior: TemporalPrior, seen: Seen, rotation: "Rotation | None" = None) -> None:
        self.prior, self.seen = prior, seen
        self.rotation = rotation or Rotation.of(prior, seen.blocks)
        self.basis, self.spectrum = self.rotation.basis, self.rotation.spectrum
        self.weights = seen.tree.add_up(seen.sizes[:, None])
        self.known = np.isfinite(seen.noise)[:, None]
        rotated = np.where(self.known, seen.residuals, 0.0) @ self.basis
        loading = np.broadcast_to(np.where(self.known, self.weights, 0.0), rotated.shape)
        self.passed = self._passed(np.stack([rotated, loading]))
        self.predictions: dict[int, tuple[Floats, Floats]] = {}
        """The results of `left_out`."""
        # the shared part's posterior: precision P and pull q from the tree
        (residual, load), (pull, self.loads) = self.passed.means, self.passed.pulls
        self.precision = (self.weights * self.loads).sum(axis=0)
        first = (self.weights * pull).sum(axis=0)
        root = np.sqrt(np.maximum(self.precision, 1e-300))
        system = root[:, None] * self.rotation.shared
        system *= root
        system[np.diag_indices_from(system)] += 1.0
        factor = scipy.linalg.cholesky(system, lower=True)
        # (1 - 1 / system) / root / root, of which LAPACK computes the lower half
        half, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        half[np.diag_indices_from(half)] -= 1.0
        half /= -root[:, None]
        half /= root
        self.kept = np.tril(half) + np.tril(half, -1).T
        factor_mean = self.kept @ first
        self.log_likelihood = float(
            self.passed.log_density + 0.5 * first @ factor_mean - np.sum(np.log(np.diag(factor)))
        )
        # in place: nothing else reads them, and of 10,000 nodes each is 27 MB
        pull -= self.loads * factor_mean
        residual -= load * factor_mean
        self.pulls, self.own_means = pull, residual
        """Sigma^-1 times the residuals, and own means, in the eigenbasis, (n_nodes, n)."""

    def _passed(self, sides: Floats) -> Passed:
        """Return the pass over the tree of the modes of the own parts, which are independent."""
        variances = self.seen.sizes[:, None] ** 2 * self.spectrum
        return pass_over_tree(self.seen.tree, variances, self.seen.noise, sides)

    def revalued(self, residuals: Floats, noise: Floats) -> "TreePosterior":
        """Return the posterior of other values with other noise at the same blocks."""
        return TreePosterior(self.prior, replace(self.seen, residuals=residuals, noise=noise), self.rotation)

    @cached_property
    def shared_pull(self) -> Floats:
        """The factor of the shared part's covariance in its mean, (n,), in the eigenbasis."""
        return np.asarray((self.weights * self.pulls).sum(axis=0))

    @cached_property
    def shared_precision(self) -> Floats:
        """The precision of all measurements for the shared part, leaves' own parts included, (n, n)."""
        p = self.precision
        return np.asarray(np.diag(p) - p[:, None] * self.kept * p[None, :])

    @property
    def own_pull(self) -> Floats:
        """The factor of each node's own covariance in its mean, (n_nodes, n), in the eigenbasis."""
        return np.asarray(self.own_means / self.spectrum)

    @property
    def own_loads(self) -> Floats:
        """How the own parts move with the shared one, (n_nodes, n)."""
        return np.asarray(self.passed.means[1] / self.spectrum)

    @property
    def own_precision(self) -> Floats:
        """The own precision given the shared part, (n_nodes, n)."""
        return np.asarray((self.passed.prior - self.passed.variances) / self.spectrum**2)

    @property
    def alone(self) -> Floats:
        """The diagonal of Sigma^-1 in the eigenbasis, given the shared part; 0 where not measured."""
        noise = np.where(self.known, self.seen.noise[:, None], 1.0)
        return np.where(self.known, np.maximum(noise - self.passed.variances, 0.0) / noise**2, 0.0)

    @cached_property
    def spanned_loads(self) -> SpannedRows:
        return SpannedRows.of(self.loads)

    @cached_property
    def spanned_own_loads(self) -> SpannedRows:
        return SpannedRows.of(self.own_loads)  # all days of an estimate need them

    def left_out(self, exact_for: int) -> tuple[Floats, Floats]:
        """Return each measured value less its prediction by all others, and the variance, (n_nodes, n) each:
        (Sigma^-1 r) / d and 1 / d, d the diagonal of Sigma^-1, exact for the last `exact_for` blocks, else
        their mean."""
        if exact_for not in self.predictions:
            n, alone = self.spectrum.size, self.alone
            rows = self.basis[max(n - exact_for, 0) :]
            mean = (alone.sum(axis=1) - self.loads**2 @ np.diag(self.kept)) / n
            diagonal = np.repeat(mean[:, None], n, axis=1)
            exact = alone @ (rows**2).T - self.spanned_loads.squares(rows, self.kept)
            diagonal[:, n - len(rows) :] = exact
            diagonal = np.where(self.known, diagonal, 1.0)
            self.predictions[exact_for] = (self.pulls @ self.basis.T) / diagonal, 1.0 / diagonal
        return self.predictions[exact_for]

    def means(self, steps: Blocks) -> Floats:
        """Return posterior means of every node at these steps less the prior means, (n_nodes, n_steps)."""
        return np.asarray(self.means_of_pulled(self.pulls[None], self.own_pull[None], steps)[0])

    def covariance_with_root(self, steps: Blocks, times: Floats) -> Floats:
        """Return every node's posterior covariance with the root, of a sum with these weights."""
        squares, blocks = self.seen.tree.add_up(self.seen.sizes[:, None] ** 2), self.seen.blocks
        weights = self.weights * self.weights[0]
        (shared, own), (of_shared, of_own) = (
            self.prior.covariances(steps, other) for other in (blocks, steps)
        )
        column = weights * (times @ shared) + squares * (times @ own)
        before = weights[:, 0] * (times @ of_shared @ times) + squares[:, 0] * (times @ of_own @ times)
        return np.asarray(before - self.means_of_pulled(*self.pulled(column[None]), steps)[0] @ times)

    def pulled(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return the factors of the shared and the own covariances in means of other residuals. columns:
        (n_columns, n_nodes, n): Sigma^-1 times these residuals in the eigenbasis, 0 where a node was not
        measured."""
        passed = self._passed(np.where(self.known, columns, 0.0) @ self.basis)
        factor_means = ((self.weights * passed.pulls).sum(axis=1) @ self.kept)[:, None]
        own_means = passed.means - self.passed.means[1] * factor_means
        return passed.pulls - self.loads * factor_means, own_means / self.spectrum

    def means_of_pulled(self, pulls: Floats, own_pulls: Floats, steps: Blocks) -> Floats:
        """Return the means of what `pulled` returned, (n_columns, n_nodes, n_steps)."""
        shared, own = self.prior.covariances(steps, self.seen.blocks)
        joint = (self.weights * pulls).sum(axis=1) @ (shared @ self.basis).T
        return np.asarray(self.weights * joint[:, None] + own_pulls @ (own @ self.basis).T)

    def variances(self, steps: Blocks, nodes: Integers | None = None) -> Floats:
        """Return posterior variances of nodes at these steps, (n_nodes, n_steps)."""
        chosen = slice(None) if nodes is None else nodes
        shared, own = (part @ self.basis for part in self.prior.covariances(steps, self.seen.blocks))
        of_shared, of_own = self.prior.variances(steps)
        squares = self.seen.tree.add_up(self.seen.sizes[:, None] ** 2)
        known = ((shared @ self.shared_precision) * shared).sum(axis=1)
        shared_kept = (shared * self.precision) @ self.kept
        found = self.weights[chosen] ** 2 * (of_shared - known) + squares[chosen] * of_own
        loads = self.own_loads[chosen]
        cross = loads @ ((shared - shared_kept) * own).T
        explained = self.own_precision[chosen] @ (own**2).T
        spanned = self.spanned_own_loads if nodes is None else SpannedRows.of(loads)
        explained -= spanned.squares(own, self.kept)
        return np.asarray(np.maximum(found - 2.0 * self.weights[chosen] * cross - explained, 0.0))

    def covariance_with_mean(self, steps: Blocks) -> Floats:
        """Return every node's posterior covariance at each step with its mean of them, (n_nodes, n_steps)."""
        shared, own = (part @ self.basis for part in self.prior.covariances(steps, self.seen.blocks))
        of_shared, of_own = (part.mean(axis=1) for part in self.prior.covariances(steps, steps))
        mean_shared, mean_own = shared.mean(axis=0), own.mean(axis=0)
        squares = self.seen.tree.add_up(self.seen.sizes[:, None] ** 2)
        known = shared @ (self.shared_precision @ mean_shared)
        left = shared - (shared * self.precision) @ self.kept
        found = self.weights**2 * (of_shared - known) + squares * of_own
        loads, spanned = self.own_loads, self.spanned_own_loads
        kept = spanned.weights @ ((spanned.span * mean_own) @ self.kept)
        cross = loads @ (left * mean_own).T + (loads * left.mean(axis=0)) @ own.T
        explained = (self.own_precision * mean_own - loads * kept) @ own.T
        return np.asarray(found - self.weights * cross - explained)
