"""The posterior over a tree: that of the dense joint Gaussian process, and of Laplace noise by its score."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaincc, ndtr

from optstream.history.blocks import Blocks, LagTables
from optstream.history.filter import fit, star
from optstream.history.learn import STRENGTH_DEVIATION, learn, likelihood_gradient, with_spread
from optstream.history.posterior import Seen, TreePosterior
from optstream.history.prior import NUGGET, Component, TemporalPrior, rough
from optstream.history.robust import information, joint_information, joint_score, score, with_known_noise
from optstream.history.self_check import day_surprises, is_unlike
from optstream.stream import AggregationTree, Lattice
from tests.optstream.estimation.programs import incomplete, product

SLOTS = 12
TREES = {
    "one leaf": {"r": None},
    "a star": {"r": None, "a": "r", "b": "r", "c": "r"},
    "ragged": {"r": None, "a": "r", "b": "r", "c": "a", "d": "a", "e": "b", "f": "r"},
    "two dimensions": product(2, 2),
    "cells that do not exist": incomplete(3),
}
NOISES = {
    "all measured": lambda n: np.linspace(0.2, 1.0, n),
    "leaves only": lambda n: np.where(np.arange(n) < n // 2 - 1, np.inf, 0.3),
    "hardly any noise": lambda n: np.full(n, 1e-4),
    "much noise": lambda n: np.full(n, 1e6),
}


def by_hand(prior, rows, columns, which):
    """The covariance of two sets of blocks: that of every two steps, added up."""
    (steps, row), (others, column) = (_steps_of(one) for one in (rows, columns))
    lags = (steps[:, None] - others) / prior.steps_per_day
    event = rows.events[row][:, None]
    gates = {
        "always": True,
        "kind": rows.kinds[row][:, None] == columns.kinds[column],
        "event": (event == columns.events[column]) & (event > 0),
    }
    hours = 1.0
    if prior.hours.size:
        hours = np.outer(prior.strengths(rows)[row], prior.strengths(columns)[column])
    of_steps = sum(
        gates[one.gate] * (shared, own)[which] * one.kernel(lags, lengths) * (hours if one.by_hour else 1.0)
        for one, _, shared, own, lengths in prior.parameters
    )
    found = np.zeros((rows.clock.size, columns.clock.size))
    np.add.at(found, (row[:, None], column), of_steps)
    return found * rows.weight[:, None] * columns.weight


def _steps_of(blocks):
    steps = [first + np.arange(length) for first, length in zip(blocks.clock, blocks.lengths, strict=True)]
    return np.concatenate(steps), np.repeat(np.arange(blocks.clock.size), blocks.lengths)


def _common(columns, others):
    """What coefficients of variance 1 of these columns give two sets of rows in common."""
    if columns is None:
        return 0.0
    return columns.reshape(len(columns), -1).T @ others.reshape(len(others), -1)


class Dense:
    """The joint Gaussian process of all nodes, and of coefficients of these columns, written out."""

    def __init__(self, prior, seen, columns=None):
        self.prior, self.seen, self.columns = prior, seen, columns
        self.sums = seen.tree.add_up(np.eye(len(seen.sizes)))
        known = np.isfinite(seen.noise)
        self.rows = np.repeat(known, seen.blocks.clock.size)
        noise = np.repeat(np.where(known, seen.noise, 1.0), seen.blocks.clock.size)
        nugget = np.diag(NUGGET * seen.blocks.weight**2 * seen.blocks.lengths)
        whole = self.covariance(seen.blocks, seen.blocks) + self.of_own(nugget) + np.diag(noise)
        whole += _common(columns, columns)
        self.measured = whole[np.ix_(self.rows, self.rows)]
        self.values = seen.residuals.ravel()[self.rows]

    def of_own(self, part):
        return np.kron(self.sums @ np.diag(self.seen.sizes**2) @ self.sums.T, part)

    def covariance(self, rows, columns):
        weights = self.sums @ self.seen.sizes
        shared, own = (by_hand(self.prior, rows, columns, which) for which in (0, 1))
        return np.kron(np.outer(weights, weights), shared) + self.of_own(own)

    def across(self, steps, columns):
        whole = self.covariance(steps, self.seen.blocks) + _common(columns, self.columns)
        return whole[:, self.rows]

    def at(self, steps, columns=None):
        means = self.across(steps, columns) @ np.linalg.solve(self.measured, self.values)
        variances = np.diag(self.spread(steps, columns))
        return means.reshape(len(self.sums), -1), variances.reshape(len(self.sums), -1)

    def spread(self, steps, columns=None):
        across = self.across(steps, columns)
        own = self.covariance(steps, steps) + _common(columns, columns)
        return own - across @ np.linalg.solve(self.measured, across.T)

    @property
    def log_likelihood(self):
        quadratic = self.values @ np.linalg.solve(self.measured, self.values)
        return -0.5 * (quadratic + np.linalg.slogdet(self.measured)[1])


def blocks_of(generator, n, kinds=3):
    return Blocks(
        np.sort(generator.integers(-30, 200, n)),
        generator.integers(1, 5, n),
        generator.integers(0, kinds, n),
        np.where(np.arange(n) < n - 5, 0, generator.integers(0, 3, n)),
        1 / (1 + generator.random(n)),
    )


def case(tree_name, noise_name, seed=0, n=14):
    generator = np.random.default_rng(seed)
    tree = TREES[tree_name]
    tree = tree if isinstance(tree, Lattice) else AggregationTree.from_parents(tree)
    noise = NOISES[noise_name](len(tree.nodes))
    noise[tree.leaf_indices] = np.where(np.isfinite(noise), noise, 0.4)[tree.leaf_indices]
    sizes = generator.uniform(0.5, 8.0, len(tree.leaves))
    residuals = generator.normal(0, 2, (len(tree.nodes), n))
    seen = Seen(tree, blocks_of(generator, n), residuals, noise, sizes)
    asked = Blocks.at(np.arange(190, 202), kinds=np.full(12, 1), events=np.arange(12) // 5)
    return TemporalPrior.broad(SLOTS), seen, asked


@pytest.mark.parametrize("noise_name", NOISES)
@pytest.mark.parametrize("tree_name", TREES)
@pytest.mark.slow
def test_it_is_the_dense_process(tree_name, noise_name):
    prior, seen, asked = case(tree_name, noise_name)
    fast, dense = TreePosterior(prior, seen), Dense(prior, seen)
    means, variances = dense.at(asked)
    size = np.abs(means).max()
    assert np.allclose(fast.means(asked), means, rtol=1e-8, atol=1e-8 * size)
    assert np.allclose(fast.variances(asked), variances, rtol=1e-8, atol=1e-8 * variances.max())
    assert np.isclose(fast.log_likelihood, dense.log_likelihood, rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize("tree_name", TREES)
def test_a_value_left_out_is_predicted_as_by_the_dense_process(tree_name):
    prior, seen, _ = case(tree_name, "all measured")
    inverse = np.linalg.inv(Dense(prior, seen).measured)
    surprise, spread = TreePosterior(prior, seen).left_out(14)
    expected = inverse @ seen.residuals.ravel() / np.diag(inverse)
    assert np.allclose(surprise.ravel(), expected, rtol=1e-7)
    assert np.allclose(spread.ravel(), 1 / np.diag(inverse), rtol=1e-7)
    _, roughly = TreePosterior(prior, seen).left_out(4)
    assert np.allclose(roughly[:, 10:], spread[:, 10:])
    assert np.allclose(roughly[:, :10], 1 / (1 / spread).mean(axis=1, keepdims=True))


def test_a_days_surprise_is_that_of_the_dense_process():
    prior, seen, _ = case("ragged", "all measured")
    chosen = np.arange(14) > 9
    dense = Dense(prior, seen)
    weights, pull = dense.sums @ seen.sizes, np.linalg.solve(dense.measured, dense.values)
    inverse = np.linalg.inv(dense.measured)
    posterior = TreePosterior(prior, seen)
    *found, shared = (day_surprises(posterior, chosen) ** 2).sum(axis=1)
    for node in range(len(found)):
        at = np.flatnonzero(np.repeat(np.arange(len(found)) == node, 14) & np.tile(chosen, len(found)))
        part = inverse[np.ix_(at, at)]
        assert np.isclose(found[node], pull[at] @ np.linalg.solve(part, pull[at]), rtol=1e-6)
    shifts = np.kron(weights[:, None], np.eye(14)[:, chosen])
    score = shifts.T @ pull
    assert np.isclose(shared, score @ np.linalg.solve(shifts.T @ inverse @ shifts, score), rtol=1e-6)


@pytest.mark.parametrize("noise_name", ["all measured", "leaves only"])
@pytest.mark.parametrize("tree_name", TREES)
@pytest.mark.slow
def test_the_gradient_is_that_of_the_likelihood(tree_name, noise_name):
    prior, seen, _ = case(tree_name, noise_name)
    prior = replace(prior, hours=np.exp(np.sin(np.arange(5.0))))
    tables = LagTables.between(seen.blocks, seen.blocks, SLOTS)
    gradient = likelihood_gradient(TreePosterior(prior, seen), tables)
    for place in range(gradient.size):
        moved = np.where(np.arange(gradient.size) == place, 1e-5, 0.0)
        logs, hours = np.split(moved, [prior.logs.size])
        low, high = (
            TreePosterior(
                replace(prior, logs=prior.logs + sign * logs, hours=prior.hours * np.exp(sign * hours)), seen
            ).log_likelihood
            for sign in (-1, 1)
        )
        assert np.isclose(gradient[place], (high - low) / 2e-5, rtol=2e-3, atol=2e-3)


def test_the_strength_of_an_hour_is_that_at_its_middle_and_moves_evenly_to_the_next():
    """A stair of two half hours made the largest error of steep mornings."""
    prior = replace(TemporalPrior.broad(48), hours=np.exp(np.arange(24.0)))
    found = np.log(prior.strengths(Blocks.at(np.arange(48))))
    assert np.allclose(found[1:-1], np.arange(1, 47) / 2 - 0.25)
    assert np.allclose(found[[0, -1]], [0.25 * 23, 0.75 * 23])
    assert np.allclose(np.log(prior.strengths(Blocks.at(np.arange(0, 48, 2), np.full(24, 2)))), np.arange(24))


def drawn_from(prior, seen, seed):
    """Measurements that the prior itself would give."""
    dense = Dense(prior, seen)
    root = np.linalg.cholesky(dense.measured)
    values = np.zeros(seen.residuals.size)
    values[dense.rows] = root @ np.random.default_rng(seed).normal(size=dense.values.size)
    return replace(seen, residuals=values.reshape(seen.residuals.shape))


@pytest.mark.slow
def test_learning_finds_a_more_likely_prior_and_the_direction_of_the_truth():
    prior, seen, _ = case("a star", "leaves only", n=60)
    truth = replace(prior, logs=prior.logs.copy())
    drift = next(place for one, place, *_ in prior.parameters if one.name == "drift")
    truth.logs[drift] += 1.5
    given = drawn_from(truth, replace(seen, noise=np.where(np.isinf(seen.noise), np.inf, 1e-3)), 3)
    learned = learn(prior, given)
    assert TreePosterior(learned, given).log_likelihood > TreePosterior(prior, given).log_likelihood
    assert learned.logs[drift] > prior.logs[drift]


@pytest.mark.parametrize(("noise", "times"), [(1e-3, (1.01, 1.05)), (10.0, (1.1, 1.2)), (1e6, (1.63, 1.64))])
def test_a_strength_that_measurements_hardly_know_counts_by_its_mean_square(noise, times):
    """As an integral over the strength finds it; at medians alone bands were too narrow."""
    rough_days = Component("day to day", rough, "always", 0.5, 1e-6, (1.5,))
    prior = TemporalPrior.broad(SLOTS, (rough_days,))
    _, seen, _ = case("one leaf", "all measured", n=40)
    given = drawn_from(prior, replace(seen, noise=np.array([noise]), sizes=np.ones(1)), 5)
    logs = np.linspace(-3.0, 3.0, 301)
    moved = [replace(prior, logs=prior.logs + one * np.array([1.0, 0.0, 0.0])) for one in logs]
    likely = [TreePosterior(one, given).log_likelihood for one in moved]
    density = np.array(likely) - 0.5 * (logs / STRENGTH_DEVIATION) ** 2
    weights = np.exp(density - density.max())
    mean_square = float((weights * np.exp(2.0 * logs)).sum() / weights.sum())
    best = moved[int(density.argmax())]
    found = with_spread(best, given)
    (_, _, variance, *_), (_, _, likeliest, *_) = found.parameters[0], best.parameters[0]
    assert times[0] ** 2 < variance / likeliest < times[1] ** 2
    assert np.isclose(variance, 0.5**2 * mean_square, rtol=0.12)
    assert found.as_components == best.as_components


@pytest.mark.parametrize("variance", [1e-3, 0.5, 4.0, 100.0])
def test_the_score_is_the_derivative_of_the_log_density(variance):
    z = np.linspace(-9, 9, 20001)
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])

    def log_density(surprise):
        return np.log((weight * np.exp(-np.abs(surprise - z * np.sqrt(variance)) / 2.0) / 4.0).sum())

    given = np.array([[variance]]), np.array([[2.0]])
    for surprise in (-7.0, -0.4, 1.3, 20.0):
        numeric = (log_density(surprise - 1e-3) - log_density(surprise + 1e-3)) / 2e-3
        assert np.isclose(score(np.array([[surprise]]), *given)[0, 0], numeric, rtol=1e-2, atol=1e-4)
    noise_variance = 1.0 / information(*given)[0, 0] - variance
    assert noise_variance * (1 + 1e-3) >= 4.0
    assert noise_variance <= 8.0 * (1 + 1e-2) + 0.05 * variance


def log_density_of_group(surprise, variance, size):
    radius, deviation = np.linspace(1e-4, 80, 40_001), np.sqrt(variance)
    density = radius**size * np.exp(-radius)
    for value in surprise:
        inside = ndtr((value + radius) / deviation) - ndtr((value - radius) / deviation)
        density = density * inside / (2 * radius)
    return np.log(np.trapezoid(density, radius))


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0])
def test_the_joint_score_is_the_slope(size, variance):
    surprise, step = np.random.default_rng(size).normal(0, 4, 3), 1e-4
    before, after = (
        np.array([log_density_of_group([value + side], variance, size) for value in surprise])
        for side in (-step, step)
    )
    found = joint_score(surprise * 7.0, variance * 49.0, 7.0, size) * 7.0
    assert found == pytest.approx((before - after) / (2 * step), abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4, pytest.param(8, marks=pytest.mark.nightly)])
def test_the_joint_information_is_the_mean_square_for_drawn_noise(size):
    """10,000 draws, seeded: its standard error is about a hundredth and a half."""
    random = np.random.default_rng(3)
    drawn = random.gamma(size + 1, size=10_000) * random.uniform(-1, 1, 10_000)
    for variance in (0.2, 2.0):
        moved = drawn + np.random.default_rng(1).normal(0, np.sqrt(variance), drawn.shape)
        found = joint_information(variance, 1.0, size)
        assert found == pytest.approx((joint_score(moved, variance, 1.0, size) ** 2).mean(), rel=0.05)
        assert size < 1.0 / found - variance < (size + 1) * (size + 2) / 3
    noise, like_group = (size + 1) * (size + 2) / 3, np.full((3, 60), size)
    known = with_known_noise(posterior_of(drawn[:120].reshape(2, 60), noise, like_group=like_group))
    assert np.all((size <= known.seen.noise[1:]) & (known.seen.noise[1:] < noise))


def posterior_of(values, noise, *, slots=SLOTS, clock=None, like_group=None):
    """Series side by side, measured at every third step unless given otherwise."""
    n_series, n = values.shape
    blocks = Blocks.at(np.arange(n) * 3 if clock is None else clock)
    residuals = np.vstack([np.zeros(n), values])
    noises = np.array([np.inf] + [noise] * n_series)
    seen = Seen(star(n_series), blocks, residuals, noises, np.ones(n_series), like_group)
    return TreePosterior(TemporalPrior.broad(slots), seen)


@pytest.mark.parametrize("size", [1, 3])
def test_the_mean_given_one_value_is_that_of_its_exact_density(size):
    """By an integral over the true value x and the radius of the noise, at several surprises."""
    noise = (size + 1) * (size + 2) / 3
    at = np.linspace(-60, 60, 24_001)
    for value in (-1.0, 3.0, 9.0):
        first = posterior_of(np.array([[value]]), noise, like_group=np.full((2, 1), size))
        variance = first.left_out(1)[1][1, 0] - noise
        away = np.maximum(np.abs(value - at), 1e-9)
        # the integral of r^(size - 1) exp(-r) beyond |value - x|: the noise is uniform within its radius
        weights = gammaincc(size, away) * np.exp(-(at**2) / (2 * variance))
        exact = (at * weights).sum() / weights.sum()
        assert with_known_noise(first).means(first.seen.blocks)[1, 0] == pytest.approx(exact, rel=0.003)


@pytest.mark.slow
def test_a_shifted_day_alarms_and_noise_does_not():
    """Noise: 100 histories, none alarms (false alarms of 1 in 10^6 blocks by design)."""
    today = np.arange(60) >= 56
    for seed in range(100):
        values = np.random.default_rng(seed).laplace(0, 0.1, (3, 60))
        assert not is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)
    values[1, 56:] += 3.0
    assert is_unlike(posterior_of(values, 2 * 0.1**2), today, 1.2)


def test_a_prior_that_cannot_be_computed_with_is_not_used():
    """Lengths that learning ran away with: the broad prior answers in their place."""
    posterior, broken = posterior_of(np.zeros((2, 20)), 0.1), TemporalPrior.broad(SLOTS)
    with np.errstate(all="ignore"):
        found = fit(replace(broken, logs=broken.logs + 400.0), posterior.seen, (), (4,))
    assert np.isfinite(found.posterior.means(Blocks.at(np.arange(60, 72)))).all()
