"""What the noise does to a release: each measured number pushed alone, and by simulation over periods."""

from dataclasses import replace

import numpy as np

from optstream.measurement.grouping import GROUPER
from optstream.mechanisms import (
    Fourier,
    HistoryInformed,
    HistoryInformedTree,
    PeGaSus,
)
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel, StepSpend
from optstream.stream import AggregationTree

MODEL = PrivacyModel("1", 6, 1)
TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})
SHARES = ["1/3", "2/3"]
PUSH = 1e6


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


def one_by_one(mechanism, measured):
    """Variances by brute force: the estimate is linear, so a push of any size shows each weight."""
    rest = mechanism.estimate(measured).values
    moved = ((mechanism.estimate(one).values - rest, variance) for one, variance in pushed(measured))
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


def test_nothing_is_claimed_where_it_is_not_known():
    values = np.full((2, 6), 50.0)
    history = HistoryInformed(MODEL, n_blocks=2, block_length=1)
    for mechanism in (history, HistoryInformedTree(history, TREE, SHARES)):
        release = mechanism.release(values, noise=simulated_noise(1))
        assert release.noise_standard_errors is None
        assert release.standard_errors is not None
    flat = PeGaSus(MODEL, threshold="100000")
    found = flat.release(values, noise=simulated_noise(1)).noise_standard_errors
    assert np.isfinite(found[:, :2]).all()  # a median of two is their mean
    assert np.isnan(found[:, 2:]).all()


class Silenced:
    """Noise of a seed, but 0 where the scale is one of these: what was decided stays as it was."""

    simulated = True

    def __init__(self, seed, scales=()):
        self._draws, self._scales = np.random.default_rng(seed), scales

    def discrete_laplace(self, scale, size):
        drawn = np.rint(self._draws.laplace(0, scale, size)).astype(np.int64)
        return drawn * 0 if scale in self._scales else drawn


def last_of_three(mechanism, stream, seed, silent):
    """The third period's release, with noise, and without that of these scales."""
    found, state = [], None
    noise = Silenced(seed, silent)
    for number in range(3):
        at = slice(6 * number, 6 * number + 6)
        found.append(mechanism.release(stream[:, at], noise=noise, first_step=6 * number, state=state))
        state = found[-1].state
    return found[-1]


N_RUNS = 600
"""Of a mean over N_RUNS of squares of mean 1 and variance at most 5 (Laplace): six standard deviations, below
1e-8 for a normal mean; that one square is 330 and does it alone has a chance below 600 exp(-25) = 1e-8."""

"""Mechanisms that remember, and some that do not: memory holds noise of earlier periods."""


def scales_of(mechanism, release):
    """Of the noise that enters the estimate, not of the groupers'."""
    if isinstance(getattr(mechanism, "mechanism", None), Fourier):
        return {float(own.scale) for _, own in mechanism.levels}
    linear = [spend for spend in release.spends if isinstance(spend, StepSpend)]
    return {float(spend.scale) for spend in linear if spend.stage != GROUPER}


def squares(mechanism, claim):
    """Mean square of what the noise did to the third period over its standard error as claimed, a run."""
    stream = np.array([[50.0 + (step % 5) for step in range(18)], [80.0 - (step % 7) for step in range(18)]])
    found = []
    for seed in range(N_RUNS):
        noisy = last_of_three(mechanism, stream, seed, ())
        quiet = last_of_three(mechanism, stream, seed, scales_of(mechanism, noisy))
        change = noisy.values - quiet.values
        found.append(np.nanmean((change / claim(noisy)) ** 2))
    return float(np.mean(found))
