"""Terms of nodes times steps against the covariance written out."""

import numpy as np
import pytest

from optstream.estimation import error_terms as module
from optstream.estimation.error_factor import ErrorFactor
from optstream.estimation.error_terms import SumsOfTimes, error_terms, times_before
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays

TREE = AggregationTree.from_parents(
    {
        "all": None,
        "A": "all",
        "B": "all",
        **{f"a{n}": "A" for n in range(4)},
        **{f"b{n}": "B" for n in range(5)},
    }
)
N_STEPS = 8
BELOW = TREE.add_up(np.eye(len(TREE.leaves)))


def factor(seed, n_earlier=0):
    """What leaves share, what a family shares, what is a leaf's own: each smooth over time."""
    random, n_times = np.random.default_rng(seed), N_STEPS + n_earlier
    away = np.abs(np.subtract.outer(np.arange(n_times), np.arange(n_times)))
    parts = []
    for length, of_leaves in ((6.0, np.ones((9, 1))), (3.0, BELOW[1:3].T), (1.0, np.eye(9))):
        smooth = np.linalg.cholesky(np.exp(-away / length) + 1e-9 * np.eye(n_times))
        sizes = random.uniform(1, 3, (of_leaves.shape))
        parts.append(np.einsum("ip,tk->itpk", sizes * of_leaves, smooth).reshape(9, n_times, -1))
    found = ErrorFactor(np.concatenate(parts, axis=2))
    return SumsOfTimes(found, np.eye(n_times), n_earlier, 1.0)


def questions(seed, n):
    random = np.random.default_rng(seed)
    for _ in range(n):
        first, last = np.sort(random.choice(N_STEPS + 1, 2, replace=False))
        leaves = random.random(9) < 0.4
        nodes = np.zeros(len(TREE.nodes))
        if leaves.any():
            nodes[TREE.leaf_indices] = leaves
        else:
            nodes[random.integers(3)] = 1.0
        yield nodes, ((np.arange(N_STEPS) >= first) & (np.arange(N_STEPS) < last)).astype(float)


@pytest.mark.parametrize("sketched", [False, True])
def test_any_sum_over_nodes_and_steps_has_the_variance_of_the_covariance(sketched, monkeypatch):
    if sketched:
        monkeypatch.setattr(module, "MOST_EXACT", 0)
    errors = factor(1)
    terms = error_terms(errors, TREE, N_STEPS)
    assert len(terms.nodes) < 9 * N_STEPS / 4
    for nodes, steps in questions(2, 100):
        exact = errors.variances((nodes @ BELOW)[None], steps[None])[0, 0]
        assert terms.variance(nodes, steps) == pytest.approx(exact, rel=1e-3)


def test_a_day_hangs_together_with_the_days_before_it():
    errors = factor(3, n_earlier=2)
    terms = error_terms(errors, TREE, N_STEPS)
    whole = errors.between(np.eye(9), np.eye(N_STEPS + 2))
    for node, leaves in zip(np.eye(len(TREE.nodes)), BELOW, strict=True):
        exact = np.einsum("i,isjt,j->st", leaves, whole, leaves)[:N_STEPS, N_STEPS:].sum(axis=0)
        found = np.einsum("rij,i,j,re->e", terms.nodes, node, node, terms.earlier)
        scale = np.sqrt(terms.variance(node, np.ones(N_STEPS)))
        assert np.allclose(found, exact, rtol=1e-2, atol=1e-3 * scale)


def test_independent_noise_of_every_step_is_one_term_for_each_shape():
    """Leaves of one variance, each step by itself: all steps are alike, so one term says it all."""
    parts = np.einsum("ij,st->isjt", np.eye(9), np.eye(N_STEPS)).reshape(9, N_STEPS, -1)
    terms = error_terms(ErrorFactor(parts), TREE, N_STEPS)
    assert len(terms.nodes) == 1
    assert terms.variance(np.eye(len(TREE.nodes))[0], np.ones(N_STEPS)) == pytest.approx(9 * N_STEPS)


def test_where_terms_are_too_few_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(module, "MOST_TERMS", 1)
    assert error_terms(factor(1), TREE, N_STEPS) is None


def test_days_before_are_whole_days_that_the_estimate_looks_at():
    days = PublicDays(4)
    times, first = times_before(days, range(12, 16), 3, is_first=False)
    assert first == 3  # step 3 is the last of a day of which no more is looked at
    assert times.shape == (4 + 2, 13)
    assert np.array_equal(times[:4, 9:], np.eye(4))
    whole, first = times_before(days, range(12, 16), 3, is_first=True)
    assert (whole.shape, first) == ((4 + 3, 16), 0)
    assert [np.flatnonzero(row).tolist() for row in times[4:]] == [[5, 6, 7, 8], [1, 2, 3, 4]]
    assert times_before(days, range(12, 16), 4, is_first=False)[0].shape == (4 + 2, 12)
    assert times_before(days, range(12, 16), 12, is_first=False)[0].shape == (4, 4)
