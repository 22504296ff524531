"""What the noise does to a release: each number pushed alone, and by keyed replicates over periods."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from optstream.errors import ParameterError
from optstream.estimation import replicates as replicates_module
from optstream.estimation.least_squares import consistent
from optstream.estimation.replicates import keys_of, normals, uniforms
from optstream.measurement import EquallySpaced
from optstream.mechanisms import (
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    OptStream,
    PeGaSus,
    Sample,
)
from optstream.mechanisms.period_release import REPLICATES
from optstream.noise import simulated_noise
from optstream.privacy import OrderSpend, PrivacyModel
from optstream.stream import AggregationTree, Feature
from optstream.stream.public_days import PublicDays
from tests.optstream.mechanisms.planned_days import in_turn

MODEL = PrivacyModel("1", 6, 1)
PUSH = 1e6
DEEP = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", "a": "A", "b": "A", "c": "B", "d": "B"}
)
DEEP_SHARES = ["1/4", "1/4", "1/2"]
HALVES_OF_DAY = Feature((range(0, 3), range(3, 6)), "halves")
POINTS = {"sampling": EquallySpaced(2), "features": [HALVES_OF_DAY], "level_shares": DEEP_SHARES}
LINEAR = {
    "Laplace": Hierarchical(Laplace(MODEL), DEEP, DEEP_SHARES),
    "a derived root": Hierarchical(Laplace(MODEL), DEEP, ["0", "1/2", "1/2"]),
    "Sample": Hierarchical(Sample(MODEL), DEEP, DEEP_SHARES),
    "OptStream": OptStream(MODEL, DEEP, **POINTS),
    "the paper's weights": OptStream(MODEL, DEEP, **POINTS, weights="paper"),
}
READINGS = 50.0 + np.arange(24.0).reshape(4, 6)
QUESTIONS = [(["all"], range(6)), (["A", "c"], range(1, 5)), (["b"], [3]), (["b", "d"], [0, 5])]
FALSE_ALARM = 1e-6
"""Of a test: quantiles of chi-squared, exact for variances of linear functions of normal numbers."""
N = 500
WIDE = AggregationTree.from_parents({"all": None} | {f"leaf {number}": "all" for number in range(12)})
HOURLY = PrivacyModel("1", 24, 1, resolution=1)
HALVES = ["1/2", "1/2"]
FEATURES = [Feature((range(24),), "day")]
N_NUMBERS = 20_000
Z = 6.5
"""Standard errors: a chance below 1e-10 for each of a few hundred means."""
COLUMNS = {
    "the last key": (3, np.arange(N_NUMBERS)[:, None], np.arange(6)),
    "the first key": (np.arange(6), np.arange(N_NUMBERS)[:, None], 3),
    "both exchanged": (np.arange(6), np.arange(N_NUMBERS)[:, None]),
    "names": (np.arange(N_NUMBERS)[:, None], keys_of(["a", "b", "ab", "ba", "", "a "])),
    "days": (np.arange(N_NUMBERS)[:, None], 24 * np.arange(-3, 3)),
    "large": (np.arange(N_NUMBERS)[:, None], 2**62 + 2 ** np.arange(6)),
}


def unbounded(mechanism):
    return replace(mechanism, lower_bound=None) if hasattr(mechanism, "lower_bound") else mechanism


def pushed(measured):
    """The measurements once for every number that was drawn, with that one moved, and its variance."""
    for place, part in enumerate(measured.parts):
        for moved, variance in pushed(part):
            parts = (*measured.parts[:place], moved, *measured.parts[place + 1 :])
            yield replace(measured, parts=parts), variance
    answers = measured.answers
    if measured.point_variances is None or answers.variances is None:
        return
    arrays = [measured.points, *answers.values]
    variances = [measured.point_variances, *answers.variances]
    for number, (array, variance) in enumerate(zip(arrays, variances, strict=True)):
        spread = np.broadcast_to(variance, array.shape)
        for at in np.argwhere(np.isfinite(spread)):
            moved = [entry.astype(float) for entry in arrays]
            moved[number][tuple(at)] += PUSH
            others = replace(answers, values=tuple(moved[1:]))
            yield replace(measured, points=moved[0], answers=others), spread[tuple(at)]


def one_by_one(mechanism, measured, of=lambda values: values):
    """Variances by brute force: the estimate is linear, so a push of any size shows each weight."""
    rest = of(mechanism.estimate(measured).values)
    moved = ((of(mechanism.estimate(one).values) - rest, variance) for one, variance in pushed(measured))
    return sum((change / PUSH) ** 2 * variance for change, variance in moved)


def test_it_is_the_sum_over_all_that_was_measured(make, wavy):
    """Every mechanism of the project, whatever it chose: exactly, or nan, or None, never something else."""
    mechanism = unbounded(make(MODEL, 6))
    release = mechanism.release(wavy(6), noise=simulated_noise(8))
    found = release.noise_standard_errors
    if found is None:
        assert "HistoryInformed" in repr(mechanism)
        return
    assert found.shape == release.values.shape
    known = np.isfinite(found)
    assert known.any()
    assert "median" in repr(mechanism) or known.all() or "Budget" in repr(mechanism)
    expected = one_by_one(mechanism, release.measured)
    assert np.allclose(found[known] ** 2, expected[known], rtol=1e-6)
    if "median" not in repr(mechanism):
        assert np.allclose(expected[~known], 0)


def within(squares, degrees, expected, n_tests):
    """Whether sums of squares of so many normal numbers of these variances are no rare ones."""
    tail = FALSE_ALARM / 2 / n_tests
    low, high = chi2.ppf([tail, 1 - tail], degrees)
    ratio = np.asarray(squares) / expected
    return bool(np.all((low < ratio) & (ratio < high)))


@pytest.mark.parametrize("name", LINEAR)
def test_a_sums_error_is_what_each_number_does_to_it(name):
    bounded, mechanism = LINEAR[name], unbounded(LINEAR[name])
    release = bounded.release(READINGS, noise=simulated_noise(4))
    for names, steps in QUESTIONS:
        found, degrees = release.sum(names, steps), REPLICATES - 1
        at = np.ix_([DEEP.nodes.index(node) for node in names], list(steps))
        expected = one_by_one(mechanism, release.measured, lambda values, at=at: values[at].sum())
        of_sum = degrees * found.noise_standard_error**2
        assert within(of_sum, degrees, expected, len(QUESTIONS))
        assert not within(9 * of_sum, degrees, expected, len(QUESTIONS)), "the control"
        assert found.value == pytest.approx(release.values[at].sum())
        assert found.estimate == pytest.approx(mechanism.estimate(release.measured).values[at].sum())
        whole = found.noise_standard_error if "Laplace" in name or "root" in name else None
        assert found.standard_error == whole


def periods(mechanism, values, noises):
    return in_turn(mechanism.release, [values] * len(noises), lambda step: simulated_noise(noises[step // 6]))


def test_replicates_of_the_noise_vary_as_its_standard_errors_say(make, wavy):
    """Every mechanism of the project, two periods; and none where earlier periods' noise is in the values."""
    mechanism = make(MODEL, 6)
    first, second = periods(mechanism, wavy(6), (8, 9))
    drawn = [mechanism.noise_replicates(one.measured, N) for one in (first, second)]
    carried = any(name in repr(mechanism) for name in ("PeGaSus", "Fast", "Budget"))
    assert (drawn[0] is None) == (carried or "HistoryInformed" in repr(mechanism))
    assert "HistoryInformed" in repr(mechanism) or (first.replicates(4) is None) == carried
    for release, errors in zip((first, second), drawn, strict=True):
        if errors is None:
            continue
        expected = release.noise_standard_errors**2
        known, n_tests = np.isfinite(expected), 2 * expected.size
        assert within((errors**2).sum(axis=0)[known], N, expected[known], n_tests)
        assert not within(1.5 * (errors**2).sum(axis=0)[known], N, expected[known], n_tests), "the control"
        assert not errors[:, ~known].any(), "no noise enters there"
        assert np.allclose(errors[:, 0], errors[:, 1:].sum(axis=1)) == hasattr(mechanism, "tree")
    if drawn[1] is None:
        return
    # noise of another first period changes nothing of the second, and replicates of both are independent;
    # joint noise goes on, uncorrelated, and leaves the replicates as they are
    (other,) = periods(mechanism, wavy(6), (1,))
    again = mechanism.release(wavy(6), noise=simulated_noise(9), first_step=6, state=other.state)
    is_joint = any(isinstance(spend, OrderSpend) for spend in second.measured.spends)
    assert is_joint or np.array_equal(again.unbounded, second.unbounded)
    assert np.allclose(mechanism.noise_replicates(again.measured, N), drawn[1])
    one, two = (errors.reshape(N, -1) for errors in drawn)
    one, two = (errors[:, errors.any(axis=0)] for errors in (one, two))
    across = np.corrcoef(one.T, two.T)[: one.shape[1], one.shape[1] :]
    assert np.abs(across).max() < 6.5 / np.sqrt(N)


@pytest.mark.parametrize(
    "mechanism", [LINEAR["OptStream"], LINEAR["Sample"], Hierarchical(PeGaSus(MODEL), DEEP, DEEP_SHARES)]
)
def test_where_steps_are_guessed_or_smoothed_the_whole_error_is_not_known(mechanism):
    release = mechanism.release(READINGS, noise=simulated_noise(4))
    assert (release.standard_errors is None) == (not isinstance(mechanism, OptStream)), "of single values"
    assert release.sum().standard_error is None
    assert release.sum().band is None


@pytest.mark.parametrize("counts", [False, True])
def test_history_informed_knows_the_whole_error_of_sums(counts):
    """Of two periods, by every value's standard error; false alarm below 1e-6."""
    model = PrivacyModel("1", 6, 1, 1)
    history, n = HistoryInformed(model, n_blocks=2, block_length=2, counts=counts), 1000
    release = periods(HistoryInformedTree(history, DEEP, DEEP_SHARES), READINGS, (1, 2))[1]
    of, replicates = release.replicates(n)
    assert of == "whole"
    squares, expected = (replicates - release.unbounded) ** 2, release.standard_errors**2
    allowed = 6.5 * squares.std(axis=0) / np.sqrt(n) + 0.05 * expected
    assert (np.abs(squares.mean(axis=0) - expected) < allowed).all()
    every = release.replicates()[1]
    for names, steps in QUESTIONS:
        found = release.sum(names, [6 + step for step in steps])
        at = np.ix_([DEEP.nodes.index(node) for node in names], list(steps))
        assert found.standard_error == pytest.approx(every[:, *at].sum(axis=(1, 2)).std(ddof=1))
        assert found.noise_standard_error is None
    # a block of two steps was measured: their sum is known better than each
    alone = [release.sum(["all"], [6 + step]).standard_error for step in range(6)]
    assert counts or release.sum(["all"]).standard_error < 0.9 * np.linalg.norm(alone)


def test_of_many_nodes_there_are_fewer_and_of_more_none(monkeypatch):
    release = LINEAR["Laplace"].release(READINGS, noise=simulated_noise(4))
    every = release.replicates()[1]
    assert len(every) == REPLICATES
    monkeypatch.setattr(replicates_module, "MOST_ENTRIES", 4 * every[0].size)
    assert np.array_equal(release.replicates()[1], every[:4])
    assert release.replicates(3) is None
    monkeypatch.setattr(replicates_module, "MOST_ENTRIES", 4 * every[0].size - 1)
    assert release.replicates() is None
    found = LINEAR["Laplace"].release(READINGS, noise=simulated_noise(4)).sum()
    assert (found.standard_error, found.noise_standard_error) == (None, None)
    assert found.value == pytest.approx(release.values[0].sum())


@pytest.mark.parametrize(
    ("nodes", "steps", "words"),
    [
        (["x"], None, "nodes must be names of the release's nodes; got 'x'"),
        ({"A": 2, "B": -1}, None, "must be names, each once; `optstream.read_sum` takes weights"),
        (None, [0.5], "steps of a sum must be integers; got 0.5"),
        ("A", None, r"several names, such as \['A'\]; got the text 'A'"),
        (["A", "a"], None, "no two may share a leaf"),
        ([], None, "at least one"),
        (None, [6], "of this period: 0 to 5"),
        (None, [], "at least one"),
    ],
)
def test_a_sum_of_nothing_or_of_what_is_not_there_is_refused(nodes, steps, words):
    release = LINEAR["Laplace"].release(READINGS, noise=simulated_noise(4))
    with pytest.raises(ParameterError, match=words):
        release.sum(nodes, steps)


def of_counts(mechanism, mean):
    counts = np.random.default_rng(1).poisson(mean, (12, 24)).astype(float)
    return mechanism.release(counts, noise=simulated_noise(1))


def optstream(weights="variance"):
    return OptStream(
        HOURLY, WIDE, sampling=EquallySpaced(8), features=FEATURES, level_shares=HALVES, weights=weights
    )


@pytest.mark.parametrize(("weights", "rule"), [("variance", "held"), ("paper", "joint")])
def test_optstream_holds_parents_but_with_the_papers_weights(weights, rule):
    found = of_counts(optstream(weights), 1.0)
    expected = consistent(found.measured, WIDE, FEATURES, weights, 0.0, rule)
    assert np.array_equal(found.values, expected.values)
    assert found.optimality == expected.optimality
    assert found.optimality.converged
    assert found.values[WIDE.leaf_indices].min() == 0


def test_a_posterior_holds_parents_too_and_errs_less_by_it():
    own = HistoryInformed(HOURLY, days=PublicDays(24), n_blocks=4, block_length=3)
    bounded, free = (HistoryInformedTree(own, WIDE, HALVES, bound) for bound in (0.0, None))
    found, posterior = of_counts(bounded, 0.3), of_counts(free, 0.3)
    assert posterior.values[WIDE.leaf_indices].min() < 0
    assert posterior.optimality is None
    merged = found.measured.seen_as(posterior.values, posterior.standard_errors**2)
    joint, held = (consistent(merged, WIDE, [], "variance", 0.0, rule) for rule in ("joint", "held"))
    assert np.allclose(found.values, held.values, rtol=1e-9, atol=1e-9)
    assert not np.allclose(found.values, joint.values, rtol=1e-3, atol=1e-3)
    truth = WIDE.add_up(np.random.default_rng(1).poisson(0.3, (12, 24)).astype(float))
    assert np.abs(held.values - truth).mean() < 0.6 * np.abs(joint.values - truth).mean()
    assert found.optimality.converged


@pytest.mark.parametrize("mechanism", [optstream(), Hierarchical(Laplace(HOURLY), WIDE, HALVES)])
def test_where_no_leaf_lies_below_the_bound_nothing_is_solved(mechanism):
    assert of_counts(mechanism, 5000.0).optimality is None


def off(numbers):
    """How far moments and correlations are from those of independent uniform numbers, in standard errors."""
    even = (numbers - 0.5) * np.sqrt(12.0)
    pairs, (above, right) = even.T @ even / len(even), np.triu_indices(even.shape[1], 1)
    shifted = (even[1:] * even[:-1]).mean(axis=0)
    of_means, of_squares = even.mean(axis=0), ((even**2 - 1.0) / np.sqrt(0.8)).mean(axis=0)
    every = np.concatenate([pairs[above, right], shifted, of_means, of_squares])
    return np.abs(every).max() * np.sqrt(len(even))


@pytest.mark.parametrize("keys", COLUMNS)
def test_different_keys_give_independent_numbers(keys):
    numbers = uniforms(*COLUMNS[keys])
    assert numbers.shape == (N_NUMBERS, 6)
    assert ((numbers > 0) & (numbers < 1)).all()
    assert len(np.unique(numbers)) == numbers.size
    assert off(numbers) < Z
    assert kstest(numbers.ravel(), "uniform").pvalue > 1e-7
    assert kstest(normals(*COLUMNS[keys]).ravel(), "norm").pvalue > 1e-7


def test_the_same_keys_give_the_same_numbers_whatever_is_asked_for_with_them():
    whole = normals(1, np.arange(5)[:, None], np.arange(7))
    assert np.array_equal(whole, normals(1, np.arange(5)[:, None], np.arange(7)))
    assert np.array_equal(whole[2:4, 3:], normals(1, np.arange(2, 4)[:, None], np.arange(3, 7)))
    assert normals(1, 4, 6) == whole[4, 6]
    assert normals(6, 4, 1) != whole[4, 6]
    assert uniforms(1, 2) != uniforms(1, 2, 0)
    assert uniforms(-1) == uniforms(np.uint64(2**64 - 1))
    assert np.array_equal(keys_of(["b", "a"]), keys_of(["a", "b"])[::-1])
