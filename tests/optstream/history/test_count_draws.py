"""Draws of the errors of counts vary as single values' standard errors say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from optstream.estimation.replicates import normals
from optstream.history import counts
from optstream.history.counts import estimate_leaves, fit_counts, own_parts, shared_fit
from optstream.history.filter import step_blocks
from optstream.stream.covariate import Covariate
from tests.optstream.history.test_tree_counts import BELIEF, TREE, histories, history
from tests.optstream.monte_carlo import Z, agree

STEPS, N = range(27 * 24, 28 * 24), 1000
ROUGHLY = 0.03
"""Relative, of a variance: what the closed form leaves out, and rounds."""


def dense():
    """All levels measured at the same blocks."""
    starts = np.arange(0, 28 * 24, 13)
    return {level: history(level, starts, 2, 6) for level in range(3)}


def single_steps():
    """The same of blocks of one step, of which more is known in the day."""
    starts = np.arange(0, 28 * 24, 5)
    return {level: history(level, starts, 1, 2) for level in range(3)}


def without(day, known):
    """Nothing of this day."""
    return {level: one.between(0, day * 24) for level, one in known.items()}


DEGREES = 20 + np.random.default_rng(1).normal(0, 6, (1, 30))
DEGREES[0, 27] = 80.0
"""Unlike any day before: a large part of the error is the effect's."""


def warmed():
    """Counts that are larger on warm days; none of the last."""
    return {
        level: replace(one, sums=np.rint(one.sums * np.exp(0.05 * (DEGREES[0, one.starts // 24] - 20))))
        for level, one in without(27, dense()).items()
    }


KNOWN = {
    "small leaves": (histories, 2, ()),
    "the same blocks": (dense, None, ()),
    "single steps": (single_steps, None, ()),
    "no blocks in the day": (lambda: without(27, dense()), None, ()),
    "small leaves, no blocks in the day": (lambda: without(27, histories()), 2, ()),
    "noisy small leaves": (lambda: histories() | {2: history(2, np.arange(0, 28 * 24, 25), 4, 60)}, 2, ()),
    "covariates": (warmed, None, (Covariate("warmth", 0, DEGREES),)),
}


def fits_of(kind):
    """The posterior of the levels that share blocks, every node's fit, and the blocks of small leaves."""
    make, small, covariates = KNOWN[kind]
    given = replace(BELIEF, covariates=covariates), make(), TREE, small, STEPS, 2.0
    shared = shared_fit(*given)
    return shared, fit_counts(*given), small and shared.leaf_blocks(TREE, small, given[1][small], STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KNOWN)
def test_single_counts_err_as_their_rows_say(kind):
    """Of every node at every step: its expectation, and the count around it. False alarm below 1e-6."""
    shared, fit, _ = fits_of(kind)
    assert (shared.found.effect is not None) == (kind == "covariates")
    rows = fit.variances + fit.count_variances * np.maximum(fit.means, 0.0)
    squares = fit.draws(N) ** 2
    allowed = Z * np.sqrt(squares.var(axis=0) / N) + ROUGHLY * rows
    assert (np.abs(squares.mean(axis=0) - rows) < allowed).all()
    assert not (np.abs(2 * squares.mean(axis=0) - rows) < 2 * allowed).all(), "the control"


def test_sums_over_a_day_err_as_its_steps_do_together():
    """Of a day without blocks: expectations as the posterior says, sizes alike at all steps, counts each by
    itself. False alarm below 1e-6.
    """
    shared, fit, _ = fits_of("no blocks in the day")
    blocks, day, found = step_blocks(STEPS, shared.days), np.ones((1, len(STEPS))), shared.found
    of_expectations = found.factor * shared.factors * found.published.variances(blocks, times=day)[:, 0]
    of_sizes = shared.excess_variances[:, 0] * shared.shape(fit.means).sum() ** 2
    expected = of_expectations + of_sizes + TREE.add_up(np.maximum(fit.means, 0.0)[3:]).sum(axis=1)
    squares = fit.draws(N).sum(axis=2) ** 2
    errors = np.sqrt(squares.var(axis=0) / N)
    assert (np.abs(squares.mean(axis=0) - expected) < Z * errors).all()
    alone = fit.variances.sum(axis=1) + fit.means.sum(axis=1)
    assert (np.abs(squares.mean(axis=0) - alone) > Z * errors).any(), "the control: steps err together"


def own_errors(estimate, parent, of_day, one):
    """The covariance of sums over the day of a family's own errors, written out; `parent` shapes them."""
    leaves, power = one.leaves, (estimate.strength * estimate.sizes[one.leaves]) ** 2
    noise = estimate.noise[leaves]
    told = (parent @ one.across) ** 2 @ (power**2 / (power * one.spectrum[:, None] + noise))
    sizes = np.diag(estimate.size_variances[leaves] + estimate.joined[leaves] ** 2)
    sizes -= np.outer(estimate.joined[leaves], estimate.joined[leaves])
    return estimate.factor * (sizes * parent.sum() ** 2 + np.diag(power * (parent @ of_day @ parent) - told))


def test_sums_of_small_leaves_err_as_those_of_independent_series_with_joined_sizes(monkeypatch):
    """Given their parents and without the variation of counts. False alarm below 1e-6."""
    shared, fit, blocks = fits_of("noisy small leaves")
    prior = shared.found.posterior.prior
    estimate = estimate_leaves(*blocks, STEPS, prior, shared.days)
    of_day = own_parts(prior).covariances(*(step_blocks(STEPS, shared.days),) * 2)[1]
    expected = [
        own_errors(estimate, estimate.shape[blocks[0].parents[one.leaves[0]]], of_day, one)
        for one in estimate.families
    ]

    def without_counts(first, *keys):
        return normals(first, *keys) * (first != counts.LEAF_COUNTS)

    monkeypatch.setattr(counts, "normals", without_counts)
    monkeypatch.setattr(counts.LeafEstimate, "shares", np.zeros((6, 3)))
    drawn = fit.draws(2000)[:, 3:].sum(axis=2)
    assert agree(drawn, block_diag(*expected))
    assert not agree(drawn, np.diag(np.diag(block_diag(*expected)))), "the control: siblings err together"


def test_leaves_that_were_never_measured_have_no_draws():
    known = histories()
    known[2] = known[2].between(0, 0)
    assert fit_counts(BELIEF, known, TREE, 2, STEPS, 2.0).draws is None
