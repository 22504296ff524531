"""Budget distribution and absorption, by exact probabilities and by the audit: none loses more than epsilon,
and every one that is broken on purpose is found.
"""

import math
from itertools import product

import numpy as np
import pytest

from optstream.measurement import distance
from optstream.mechanisms import w_event as publish_by_distance
from optstream.mechanisms.w_event import BudgetAbsorption, BudgetDistribution
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.privacy.rules import Absorption
from studies.audit.attack import audit
from studies.audit.histories import MechanismSubject
from studies.audit.neighbours import make_neighbours
from tests.optstream.mechanisms.w_event.test_memory_of_periods import BOTH

FAR = 127
"""Beyond any distance and threshold here."""


class GivenNoise:
    """First what is given for the distance, then what is given for the publication; what was asked."""

    simulated = True

    def __init__(self, on_distance, on_publication=()):
        self.given = [[on_distance], on_publication]
        self.scales = []

    def discrete_laplace(self, scale, size):
        self.scales.append(scale)
        drawn = np.array(self.given[len(self.scales) - 1] or [0] * size[0], dtype=np.int64)
        return drawn.reshape(size)


def log_mass(value, scale):
    """Of discrete Laplace noise."""
    return math.log(math.tanh(1 / scale / 2)) - abs(value) / scale


def log_tail(value, scale):
    """That it is at least `value`."""
    q = math.exp(-1 / scale)
    if value > 0:
        return value * math.log(q) - math.log1p(q)
    return math.log1p(-(q ** (1 - value)) / (1 + q))


def least_noise_that_publishes(mechanism, state, column):
    """By bisection, for more noise never speaks for holding; None where nothing is asked."""
    probe = GivenNoise(-FAR)
    mechanism.step(state, column, noise=probe)
    if not probe.scales:
        return None, None
    low, high = -FAR, FAR
    while high - low > 1:
        middle = (low + high) // 2
        _, release = mechanism.step(state, column, noise=GivenNoise(middle))
        low, high = (low, middle) if release.measured.positions else (middle, high)
    return high, probe.scales[0]


def outcomes(mechanism, values, grid):
    """{what is published at each step, None where it is held: log probability}, by running the mechanism.

    Each draw of noise is given, its probability computed. grid: the published values that are looked at;
    their probabilities are exact, however many others there are.
    """
    found, open_ones = {}, [((), mechanism.start(), 0.0)]
    while open_ones:
        past, state, so_far = open_ones.pop()
        if len(past) == values.shape[1]:
            found[past] = so_far
            continue
        column = values[:, len(past)]
        least, scale = least_noise_that_publishes(mechanism, state, column)
        after, _ = mechanism.step(state, column, noise=GivenNoise(-FAR))
        holds = 0.0 if least is None else log_tail(1 - least, scale)
        open_ones.append(((*past, None), after, so_far + holds))
        if least is None:
            continue
        for published in product(grid, repeat=len(column)):
            noise = GivenNoise(FAR, [p - c for p, c in zip(published, column, strict=True)])
            after, release = mechanism.step(state, column, noise=noise)
            assert tuple(release.measured.points[:, 0]) == published
            mass = sum(log_mass(drawn, noise.scales[1]) for drawn in noise.given[1])
            open_ones.append(((*past, published), after, so_far + log_tail(least, scale) + mass))
    return found


def largest_loss(mechanism, one, other, grid):
    first, second = (outcomes(mechanism, np.array(values), grid) for values in (one, other))
    assert first.keys() == second.keys()
    return max(abs(first[event] - second[event]) for event in first)


def neighbours(window, n_steps, n_series=1):
    """Pairs that differ at each step of a window, up or down, in one series after the other."""
    one = np.tile([0] + [3] * (n_steps - 1), (n_series, 1))
    for start in range(n_steps - window + 1):
        for signs in product((1, -1), repeat=window):
            other = one.copy()
            for offset, sign in enumerate(signs):
                other[offset % n_series, start + offset] += sign
            yield one, other


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(("n_series", "grid"), [(1, (0, 3, 9)), (2, (-2, 0, 3))])
def test_by_exact_probabilities_no_outcome_loses_more_than_epsilon(kind, n_series, grid):
    """A window of 2 in streams of 3 steps, of one series and of two between which the customer moves."""
    mechanism = kind(PrivacyModel("2", 2, 1, "1"))
    steps = 3 if n_series == 1 else 2
    losses = [largest_loss(mechanism, *pair, grid) for pair in neighbours(2, steps, n_series)]
    assert 1.2 < max(losses) <= 2 + 1e-9


def test_the_probabilities_that_are_enumerated_are_all():
    """With a wide grid they add up to 1."""
    mechanism = BudgetDistribution(PrivacyModel("4", 2, 1, "1"))
    found = outcomes(mechanism, np.array([[2, 4]]), range(-12, 19))
    assert sum(map(math.exp, found.values())) == pytest.approx(1, abs=1e-2)


def far_without_noise(exact, last, publication_scale, distance_scale, noise):
    """BROKEN ON PURPOSE: the distance is compared as it is."""
    noise.discrete_laplace(distance_scale, (1,))
    return np.abs(exact - last).sum() > last.size * publication_scale


def far_with_a_quarter_of_the_noise(exact, last, publication_scale, distance_scale, noise):
    """BROKEN ON PURPOSE."""
    on_distance = noise.discrete_laplace(distance_scale, (1,))[0] / 4
    return np.abs(exact - last).sum() + on_distance > last.size * publication_scale


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["a quarter of the distance's noise", "publications that take nothing"])
def test_by_exact_probabilities_what_is_broken_is_found(broken, monkeypatch):
    if broken == "publications that take nothing":
        monkeypatch.setattr(Absorption, "publish", lambda self, step, grains: None)
        monkeypatch.setattr(publish_by_distance, "grains_of", lambda spends, epsilon, n_grains: [])
    else:
        monkeypatch.setattr(distance, "is_far", far_with_a_quarter_of_the_noise)
    mechanism = BudgetAbsorption(PrivacyModel("2", 2, 1, "1"))
    losses = [largest_loss(mechanism, *pair, (0, 3, 9)) for pair in neighbours(2, 3)]
    assert max(losses) > 2.2


def subject(kind, lengths, epsilon):
    """A first publication has a scale of 40 / epsilon, and its distances lie on either side of that."""
    model = PrivacyModel(epsilon, 2, 10, "1")
    base = 40 / epsilon - 5
    pair = make_neighbours("pair", model, n_leaves=1, lengths=lengths, steps=[0, 1], base=base)
    return MechanismSubject(kind.__name__, [kind(model)] * len(lengths), pair)


@pytest.mark.slow
@BOTH
def test_the_audit_finds_a_distance_without_noise(kind, monkeypatch):
    monkeypatch.setattr(distance, "is_far", far_without_noise)
    assert audit(subject(kind, [4], 2), n_runs=1000, noise=simulated_noise(32)).exceeds
