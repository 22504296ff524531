"""The effect of public covariates on a series: smooth functions of each, times a shape of the day. A leaf i
of size s_i is moved by s_i sum_k b_k u_k(i, t), b_k standard normal: u_k is a function of the covariate on
that day, bent at a few places, times a harmonic of the day, times its prior scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from optstream.estimation.replicates import normals
from optstream.history.blocks import Blocks
from optstream.history.draws import COEFFICIENTS
from optstream.history.posterior import TreePosterior
from optstream.stream import AggregationTree
from optstream.stream.covariate import Covariate

Floats = NDArray[np.float64]

LINEAR, BENT, OWN = 0.04, 0.03, 0.015
"""Prior standard deviations of a slope, of its change at a bend, and of how a group's slope differs: relative
to a series' size, for a standard deviation of the covariate over the weeks that are looked at."""
INERTIA = (2.0, 6.0)  # days over which buildings and habits forget: of exponential smoothing
N_LINES = 1 + len(INERTIA)
BENDS = (-0.7, 0.7)  # where a line may bend, in standard deviations of the covariate
FARTHEST = 4.0  # a value farther from the mean, in standard deviations, counts as this far
CONSTANT = 1e-9  # of the mean: what deviates less is rounding
HARMONICS = (1.0, 0.4, 0.4, 0.2, 0.2)
"""Of the day: the mean, then sine and cosine once and twice a day, by how much each may matter."""
MOST_GROUPS = 40  # nodes with a response of their own: the deepest level that has so few


def columns_of(
    covariates: Sequence[Covariate], tree: AggregationTree, sizes: Floats, blocks: Blocks, steps_per_day: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the effect of one unit of each coefficient on every node, (n_columns, n_nodes, n_blocks), and
    groups, (n_columns,), rising: columns of one group are of one strength."""
    found, groups = [np.zeros((0, len(sizes), blocks.clock.size))], [-1]
    for one in covariates:
        values = one.values
        if len(values) == 1:  # one row serves all, else there is one for each leaf or node
            values = np.repeat(values, len(tree.leaves), axis=0)
        common, own = _functions(values if len(values) == len(tree.leaves) else values[tree.leaf_indices])
        of_all = _at_blocks(common, one.first_day, blocks, steps_per_day, HARMONICS)
        of_groups = _at_blocks(own, one.first_day, blocks, steps_per_day, HARMONICS[:1])
        split = (_groups(tree, one.level)[:, None, :, None] * of_groups).reshape(-1, *of_groups.shape[1:])
        found += [of_all, split]
        # lines, bends and shapes of the day apart: little noise shows all of them, much noise the first
        is_bent = np.arange(len(common))[:, None] >= N_LINES
        apart = np.where(np.arange(len(HARMONICS)) > 0, 2, is_bent).ravel()
        groups += [groups[-1] + 1 + one for one in (*apart, *([3] * len(split)))]
    values = tree.add_up(sizes[:, None] * np.concatenate(found))
    return values, np.array(groups[1:], dtype=np.int64)


def _functions(values: Floats) -> tuple[Floats, Floats]:
    """Return functions of the covariate, (n_functions, n_leaves, n_days), of mean 0: all leaves', groups'."""
    applies = np.asarray(np.isfinite(values).any(axis=1))
    if not applies.any():
        return np.zeros((0, *values.shape)), np.zeros((0, *values.shape))
    filled, days = np.zeros_like(values), np.arange(values.shape[1])
    for row in np.flatnonzero(applies):  # missing days: on the line between their neighbours
        known = np.isfinite(values[row])
        filled[row] = np.interp(days, days[known], values[row, known])
    mean, spread = filled[applies].mean(), filled[applies].std()
    if spread <= CONSTANT * abs(mean):
        spread = np.inf
    scaled = np.clip((filled - mean) / spread, -FARTHEST, FARTHEST)
    slow = [scaled.copy() for _ in INERTIA]  # exponential means over the past
    for found, kept in zip(slow, np.exp(-1.0 / np.array(INERTIA)), strict=True):
        for day in days[1:]:
            found[:, day] = kept * found[:, day - 1] + (1.0 - kept) * scaled[:, day]
    lines = LINEAR * np.stack([scaled, *slow])
    bent = BENT * np.stack([np.maximum(slow[0] - place, 0.0) for place in BENDS])
    common, own = (
        (one - one.mean(axis=2, keepdims=True)) * applies[:, None]
        for one in (np.concatenate([lines, bent]), OWN * np.stack([scaled, slow[0]]))
    )
    return common, own


def _at_blocks(
    functions: Floats, first_day: int, blocks: Blocks, steps_per_day: int, harmonics: Sequence[float]
) -> Floats:
    """Return the functions times harmonics of the day, over blocks, (n_columns, n_leaves, n)."""
    offsets = np.arange(int(blocks.lengths.max(initial=1)))
    steps = blocks.clock[:, None] + offsets
    within = (offsets < blocks.lengths[:, None]) * blocks.weight[:, None]
    day = steps // steps_per_day - first_day
    known = (day >= 0) & (day < functions.shape[2])
    turn = 2.0 * np.pi * (steps % steps_per_day + 0.5) / steps_per_day
    waves = [np.ones_like(turn)]
    for times in range(1, 1 + len(harmonics) // 2):
        waves += [np.sqrt(2.0) * np.sin(times * turn), np.sqrt(2.0) * np.cos(times * turn)]
    shape = np.array(harmonics)[:, None, None] * np.stack(waves) * within * known
    on_day = functions[:, :, np.clip(day, 0, functions.shape[2] - 1)]
    at = np.einsum("pdnl,rnl->prdn", on_day, shape)
    return np.asarray(at.reshape(-1, *at.shape[2:]))


def _groups(tree: AggregationTree, level: int | None) -> Floats:
    """Return the leaves below each node with a response of its own, (n_groups, n_leaves), maybe none."""
    if level is None:
        few = [number for number, nodes in enumerate(tree.levels) if 1 < len(nodes) <= MOST_GROUPS]
        level = few[-1] if few else None
    if level is None or level >= len(tree.levels):
        return np.zeros((0, len(tree.leaves)))
    return np.asarray(tree.add_up(np.eye(len(tree.leaves)))[list(tree.levels[level])])


# The effect, learned from noisy measurements: exact Gaussian conditioning.

STRENGTHS = (0.0, 0.3, 1.0, 3.0)
"""Factors of a covariate's prior effect; the likeliest is taken, 0 first, so that a covariate
without information changes nothing."""
ROUNDS = 2
MOST_STEPS = 512  # steps whose columns are in memory at once: counts need all weeks of the estimate


@dataclass(frozen=True, eq=False)
class CovariateEffect:
    """The posterior of the coefficients; `without` knows no covariate, `columns` are of its blocks."""

    covariates: tuple[Covariate, ...]
    without: TreePosterior
    columns: Floats
    strengths: Floats
    coefficients: Floats
    covariance: Floats

    @property
    def explained(self) -> Floats:
        """What the covariates are expected to have done to the blocks, (n_nodes, n)."""
        return self._expected(self.columns)

    def means(self, steps: Blocks) -> Floats:
        """Return the expected effect on every node at single steps, (n_nodes, n_steps)."""
        firsts = range(0, steps.clock.size, MOST_STEPS)
        parts = (self._at(steps.between(first, first + MOST_STEPS)) for first in firsts)
        return np.concatenate([self._expected(one) for one in parts], axis=1)

    def variances(self, steps: Blocks, times: Floats | None = None) -> Floats:
        """Return what unknown coefficients add to the variances of nodes, or of sums with weights `times`."""
        left = self._left_open(steps) if times is None else self._left_open(steps) @ times.T
        return np.asarray(np.einsum("knt,kl,lnt->nt", left, self.covariance, left, optimize=True))

    def draws(self, steps: Blocks, n: int) -> Floats:
        """Return draws of the same error of the leaves, (n, n_leaves, n_steps)."""
        drawn = normals(COEFFICIENTS, np.arange(n)[:, None], np.arange(len(self.covariance)))
        coefficients = drawn @ np.linalg.cholesky(self.covariance).T
        left = self._left_open(steps)[:, self.without.seen.tree.leaf_indices]
        return np.asarray(np.tensordot(coefficients, left, axes=1))

    def _left_open(self, steps: Blocks) -> Floats:
        """Return every node's derivative by a coefficient, less its prediction by the measurements."""
        return self._at(steps) - self.without.means_of_pulled(*self.without.pulled(self.columns), steps)

    def _at(self, steps: Blocks) -> Floats:
        seen = self.without.seen
        found, _ = columns_of(self.covariates, seen.tree, seen.sizes, steps, self.without.prior.steps_per_day)
        return self.strengths[:, None, None] * found

    def _expected(self, columns: Floats) -> Floats:
        return np.asarray(np.tensordot(self.coefficients, columns, axes=1))


def effect_of(posterior: TreePosterior, covariates: Sequence[Covariate]) -> CovariateEffect | None:
    """Return the effect of the covariates, given the measurements; None where they can have none.

    With y = x + H b + noise, x of the prior of `posterior` and b standard normal: b has covariance (1 + H'
    S^-1 H)^-1 = C and mean C H' S^-1 y, S the covariance without the covariates. Each covariate has the
    likeliest strength.
    """
    seen, a_day = posterior.seen, posterior.prior.steps_per_day
    found, groups = columns_of(covariates, seen.tree, seen.sizes, seen.blocks, a_day)
    if not found.any():
        return None
    known, pulls = np.isfinite(seen.noise)[:, None], posterior.pulled(found)[0].reshape(len(found), -1)
    rotated = (np.where(known, found, 0.0) @ posterior.basis).reshape(len(pulls), -1)
    values = (np.where(known, seen.residuals, 0.0) @ posterior.basis).ravel()
    gram, pulled = rotated @ pulls.T, pulls @ values
    strengths = _strengths(gram, pulled, groups)
    if not strengths.any():
        return None
    fitted = _conditioned(gram, pulled, strengths)[:2]
    columns = strengths[:, None, None] * found
    return CovariateEffect(tuple(covariates), posterior, columns, strengths, *fitted)


def _strengths(gram: Floats, pulled: Floats, groups: NDArray[np.int64]) -> Floats:
    """Return the likeliest strength of each column's group, found group by group."""
    chosen = np.ones(int(groups.max()) + 1)
    for _ in range(ROUNDS):
        for group in np.unique(groups):
            gains = []
            for strength in STRENGTHS:
                chosen[group] = strength
                gains.append(_conditioned(gram, pulled, chosen[groups])[2])
            chosen[group] = STRENGTHS[int(np.argmax(gains))]
    return chosen[groups]


def _conditioned(gram: Floats, pulled: Floats, strengths: Floats) -> tuple[Floats, Floats, float]:
    """Return mean and covariance of the coefficients, and by how much they raise the log likelihood."""
    precision = np.eye(pulled.size) + strengths[:, None] * gram * strengths
    factor = scipy.linalg.cho_factor(precision, lower=True)
    pull = strengths * pulled
    mean = scipy.linalg.cho_solve(factor, pull)
    gain = 0.5 * float(pull @ mean) - float(np.log(np.diag(factor[0])).sum())
    return mean, scipy.linalg.cho_solve(factor, np.eye(pulled.size)), gain
