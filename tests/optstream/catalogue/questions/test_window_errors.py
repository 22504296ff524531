"""Errors of windows against the covariance written out, and bounds that no covariance exceeds."""

import numpy as np
import pytest

from optstream.catalogue.questions.window_errors import StepErrors, errors_of_windows

LENGTHS = (4, 3, 5)


def days_of(random, n_nodes=2, n_parts=6):
    return [random.normal(size=(n_nodes, length, n_parts)) for length in LENGTHS]


def weights_of(window, is_difference):
    """A row for each window: what its answer counts each step."""
    n_steps = sum(LENGTHS)
    rows = np.zeros((n_steps - window + 1, n_steps))
    for first, row in enumerate(rows):
        if is_difference:
            row[first + window - 1] += 1
            row[first] -= 1
        else:
            row[first : first + window] = 1
    return rows


def covariance_of(days, node):
    """Of days whose errors are independent."""
    n_steps = sum(LENGTHS)
    found, start = np.zeros((n_steps, n_steps)), 0
    for parts in days:
        at = slice(start, start + parts.shape[1])
        found[at, at] = parts[node] @ parts[node].T
        start = at.stop
    return found


@pytest.mark.parametrize("is_difference", [False, True])
@pytest.mark.parametrize("window", [2, 3, 6, 9, 12])
def test_independent_days_give_the_exact_error_of_every_window(window, is_difference):
    days = days_of(np.random.default_rng(window))
    steps = [StepErrors(np.linalg.norm(parts, axis=2), parts, days_independent=True) for parts in days]
    exact, most = errors_of_windows(steps, window, is_difference)
    for node in range(2):
        weights = weights_of(window, is_difference)
        wanted = np.sqrt(np.einsum("wi,ij,wj->w", weights, covariance_of(days, node), weights))
        np.testing.assert_allclose(exact[node], wanted, rtol=1e-9)
    np.testing.assert_array_equal(exact, most)


@pytest.mark.parametrize("is_difference", [False, True])
@pytest.mark.parametrize("window", [2, 4, 7])
def test_days_that_depend_on_each_other_are_exact_within_and_bounded_across_midnight(window, is_difference):
    """The same parts move all days: the worst that there is."""
    random = np.random.default_rng(0)
    days = days_of(random)
    steps = [StepErrors(np.linalg.norm(parts, axis=2), parts) for parts in days]
    exact, most = errors_of_windows(steps, window, is_difference)
    whole = np.concatenate(days, axis=1)
    weights = weights_of(window, is_difference)
    wanted = np.linalg.norm(np.einsum("wi,nip->nwp", weights, whole), axis=2)
    known = np.isfinite(exact)
    day_of = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    within = day_of[: weights.shape[0]] == day_of[window - 1 :]
    np.testing.assert_array_equal(known, np.stack([within, within]))
    np.testing.assert_allclose(exact[known], wanted[known], rtol=1e-9)
    assert (most >= wanted * (1 - 1e-12)).all()
    assert (most[~known] > wanted[~known] * 1.001).any()  # a bound, not the truth


@pytest.mark.parametrize("is_difference", [False, True])
def test_single_errors_alone_bound_whatever_the_covariance_is(is_difference):
    random = np.random.default_rng(1)
    whole = random.normal(size=(2, sum(LENGTHS), 3))
    single = np.linalg.norm(whole, axis=2)
    cuts = np.cumsum(LENGTHS)[:-1]
    steps = [StepErrors(part) for part in np.split(single, cuts, axis=1)]
    exact, most = errors_of_windows(steps, 5, is_difference)
    weights = weights_of(5, is_difference)
    wanted = np.linalg.norm(np.einsum("wi,nip->nwp", weights, whole), axis=2)
    assert np.isnan(exact).all()
    assert (most >= wanted * (1 - 1e-12)).all()
    # reached where all errors move together, and against each other for a difference
    np.testing.assert_allclose(most, np.einsum("wi,ni->nw", np.abs(weights), single), rtol=1e-9)


def test_a_step_whose_error_is_unknown_leaves_its_windows_unknown():
    single = np.array([[1.0, np.nan, 3.0, 4.0]])
    exact, most = errors_of_windows([StepErrors(single)], 2, False)
    np.testing.assert_array_equal(most, [[np.nan, np.nan, 7.0]])
    exact, most = errors_of_windows([StepErrors(single)], 1, False)
    np.testing.assert_array_equal(exact, single)
    np.testing.assert_array_equal(errors_of_windows([StepErrors(single)], 3, True)[1], [[4.0, np.nan]])
