"""Budget distribution and absorption: comparisons, their algorithms, by hand and by brute force."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from optstream.errors import ParameterError
from optstream.measurement import sums
from optstream.measurement.sums import is_far, measure_by_distance
from optstream.mechanisms import w_event as publish_by_distance
from optstream.mechanisms.w_event import GRAINS, BudgetAbsorption, BudgetDistribution
from optstream.noise import simulated_noise
from optstream.privacy import CappedSpend, PrivacyModel, StepSpend
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.rules import Absorption
from optstream.stream import PrivatePeriod
from tests.optstream.mechanisms.silent_noise import SilentNoise, Undrawn

BY_HAND = BudgetAbsorption(PrivacyModel("8", 4, 1, "1"))
"""A window of 4 and epsilon 8: a share is 1, its scale 1, a distance's 1."""
BOTH = pytest.mark.parametrize("kind", [BudgetDistribution, BudgetAbsorption])
ALMOST = 1 - Fraction(1, 2**40)
FAR = 127
"""Beyond any distance and threshold here."""


def quarters(*counts):
    return tuple(Fraction(count, 4) for count in counts)


def test_a_debt_that_no_window_sees_any_more_is_remembered():
    """Four shares at step 3 pay for 4 to 6; at step 8 a window of 4 sees none of it, and two are there."""
    first = BY_HAND.release([[0, 0, 0, 50, 50, 50, 50, 50]], noise=SilentNoise())
    assert first.spends[1].weights == quarters(0, 0, 0, 4, 0, 0, 0, 0)
    assert first.state["spent"] == []
    assert np.isnan(first.noise_standard_errors[0]).tolist() == [True] * 3 + [False] * 5
    second = BY_HAND.release([[90]], noise=SilentNoise(), first_step=8, state=first.state)
    assert second.spends[1].weights == quarters(2)


def absorption(series, window, noise):
    """The algorithm as published: (step, shares, release) of what it publishes."""
    last, at, shares, published = np.zeros(len(series), dtype=int), -1, 1, []
    for step in range(series.shape[1]):
        silenced = shares - 1
        if at >= 0 and step - at <= silenced:
            continue
        absorbed = min(step - (at + silenced), window)
        distance = np.abs(series[:, step] - last).mean()
        noisy = distance + noise.discrete_laplace(1.0, (1,))[0] / len(series)
        if noisy > 1 / absorbed:
            scale = round_up_to_float(Fraction(1, absorbed))
            last = series[:, step] + noise.discrete_laplace(scale, (len(series),))
            at, shares = step, absorbed
            published.append((step, absorbed, list(last)))
    return published


def distribution(series, window, noise):
    """The algorithm as published, epsilon 2, alpha 1: (step, budget, release) of what it publishes."""
    last, budgets, published = np.zeros(len(series), dtype=int), [], []
    for step in range(series.shape[1]):
        distance = np.abs(series[:, step] - last).mean()
        left = 1 - sum(budgets[-(window - 1) :] if window > 1 else [])
        # in whole grains, as ours
        budget = Fraction(int(left / 2 * GRAINS), GRAINS)
        budgets.append(Fraction(0))
        if budget == 0:
            continue
        noisy = distance + noise.discrete_laplace(float(window), (1,))[0] / len(series)
        if noisy > 1 / budget:
            last = series[:, step] + noise.discrete_laplace(float(1 / budget), (len(series),))
            budgets[-1] = budget
            published.append((step, budget, list(last)))
    return published


@pytest.mark.parametrize(
    ("kind", "algorithm", "jump", "share"),
    [(BudgetAbsorption, absorption, 4, 0.3), (BudgetDistribution, distribution, 40, 0.5)],
)
# powers of two on either side of distribution's comparison, so that floats there are exact
@pytest.mark.parametrize("window", [1, 2, 5, 16])
def test_the_schedule_is_the_algorithms(kind, algorithm, jump, share, window):
    shares = window if kind is BudgetAbsorption else 1
    mechanism = kind(PrivacyModel(2 * shares, window, 1, "1"))
    generator = np.random.default_rng(window)
    for seed in range(20):
        steps = generator.integers(-jump, jump, (2, 60)) * (generator.random(60) < share)
        series = steps.cumsum(axis=1)
        release = mechanism.release(series, noise=simulated_noise(seed))
        weights = release.spends[1].weights
        drawn = [
            (step, weights[step] * shares, list(release.measured.points[:, place]))
            for place, step in enumerate(release.measured.positions)
        ]
        assert drawn == algorithm(series, window, simulated_noise(seed))
        assert len(drawn) > 3


def build(kind, window=6, epsilon="1", share="1/2", **model):
    return kind(PrivacyModel(epsilon, window, 1, "1", **model), share)


@BOTH
def test_a_state_that_names_no_spends_is_refused(kind):
    with pytest.raises(ParameterError, match=f"state of {kind.__name__} must name the spends"):
        build(kind).plan(4, 4, {"mechanism": kind.__name__})


@BOTH
def test_the_steps_noise_is_what_its_price_says(kind):
    mechanism = build(kind, 6, "7/3", unit="roaming", leaves_per_step=2)
    noise = SilentNoise()
    values = np.arange(12) ** 3 * 10**4
    release = mechanism.release(np.tile(values, (3, 1)), noise=noise)
    distance, publications = release.spends
    drawn = [Fraction(scale) for scale, size in noise.asked if size == (3,)]
    priced = [charge for charge in publications.charges if charge]
    assert len(drawn) == len(priced) > 3
    for scale, charge in zip(drawn, priced, strict=True):
        assert charge * ALMOST < 2 / scale <= charge
    assert {scale for scale, size in noise.asked if size == (1,)} == {float(distance.scale)}
    assert sum(size == (1,) for _, size in noise.asked) == sum(distance.weights)
    variances = [2 * float(scale) ** 2 for scale in drawn]
    assert np.array_equal(release.measured.point_variances, np.tile(variances, (3, 1)))


@BOTH
def test_noise_that_would_outgrow_the_integers_is_never_drawn(kind):
    """Distances fit, small offers do not: budget absorption waits, budget distribution stops halving."""
    mechanism = kind(PrivacyModel("1", 8, 2**36, "1"), "7/8")
    noise = SilentNoise()
    mechanism.release(np.arange(24)[None] * 2**44, noise=noise)
    scales = [scale for scale, _ in noise.asked]
    assert max(scales) == 2**40
    with pytest.raises(ParameterError, match="outgrow the integers"):
        build(kind, 8, "1/100000000000000")


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
    return math.log(math.tanh(1 / scale / 2)) - abs(value) / scale


def log_tail(value, scale):
    q = math.exp(-1 / scale)
    if value > 0:
        return value * math.log(q) - math.log1p(q)
    return math.log1p(-(q ** (1 - value)) / (1 + q))


def step(mechanism, state, column, noise):
    """Release one step; state: its running index, and the state after the step before."""
    first, before = state
    release = mechanism.release(np.reshape(column, (-1, 1)), noise=noise, first_step=first, state=before)
    return (first + 1, release.state), release


def least_noise_that_publishes(mechanism, state, column):
    """By bisection, for more noise never speaks for holding; None where nothing is asked."""
    probe = GivenNoise(-FAR)
    step(mechanism, state, column, probe)
    if not probe.scales:
        return None, None
    low, high = -FAR, FAR
    while high - low > 1:
        middle = (low + high) // 2
        _, release = step(mechanism, state, column, GivenNoise(middle))
        low, high = (low, middle) if release.measured.positions else (middle, high)
    return high, probe.scales[0]


def outcomes(mechanism, values, grid):
    """{what is published at each step, None where held: log probability}, for published values on a grid."""
    found, open_ones = {}, [((), (0, None), 0.0)]
    while open_ones:
        past, state, so_far = open_ones.pop()
        if len(past) == values.shape[1]:
            found[past] = so_far
            continue
        column = values[:, len(past)]
        least, scale = least_noise_that_publishes(mechanism, state, column)
        after, _ = step(mechanism, state, column, GivenNoise(-FAR))
        holds = 0.0 if least is None else log_tail(1 - least, scale)
        open_ones.append(((*past, None), after, so_far + holds))
        if least is None:
            continue
        for published in product(grid, repeat=len(column)):
            noise = GivenNoise(FAR, [p - c for p, c in zip(published, column, strict=True)])
            after, release = step(mechanism, state, column, noise)
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
@pytest.mark.parametrize(("n_series", "grid"), [(1, (0, 4)), (2, (-2, 3))])
def test_by_exact_probabilities_no_outcome_loses_more_than_epsilon(kind, n_series, grid):
    """A window of 2 in streams of 3 steps, of one series and of two between which the customer moves."""
    mechanism = kind(PrivacyModel("2", 2, 1, "1"))
    steps = 3 if n_series == 1 else 2
    losses = [largest_loss(mechanism, *pair, grid) for pair in neighbours(2, steps, n_series)]
    assert 1.2 < max(losses) <= 2 + 1e-9


def test_the_probabilities_that_are_enumerated_are_all():
    found = outcomes(BudgetDistribution(PrivacyModel("4", 2, 1, "1")), np.array([[2, 4]]), range(-12, 19))
    assert sum(map(math.exp, found.values())) == pytest.approx(1, abs=1e-2)


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
        monkeypatch.setattr(sums, "is_far", far_with_a_quarter_of_the_noise)
    mechanism = BudgetAbsorption(PrivacyModel("2", 2, 1, "1"))
    assert any(largest_loss(mechanism, *pair, (0, 9)) > 2.2 for pair in neighbours(2, 3))


def plans(n_steps, first_step=5):
    return (
        StepSpend(0, "distance", first_step, (1,) * n_steps, Fraction(100), 1),
        CappedSpend(0, "publications", first_step, n_steps, 1, (), Fraction(3), 1),
    )


def period_of(values, first_step=0):
    return PrivatePeriod(np.array(values, dtype=np.int64), resolution=Fraction(1), first_step=first_step)


@pytest.mark.parametrize("n_series", [1, 3])
def test_the_comparison_is_strict_and_exact_where_floats_are_not(n_series):
    """2^57 and one: as floats they are the same."""
    at = 2**57 * n_series
    last = np.zeros(n_series, dtype=np.int64)
    exact = np.full(n_series, 2**57)
    for on_distance, expected in ((-1, False), (0, False), (1, True)):
        assert is_far(exact, last, 2.0**57, 1.0, SilentNoise(on_distance)) == expected
    assert float(at + 1) == float(at)


def test_what_does_not_fit_is_refused_before_anything_is_drawn():
    with pytest.raises(ParameterError, match="a last release of 2 series, and this period has 1"):
        measure_by_distance(period_of([[7, 7]], 5), [0, 0], *plans(2), None, Undrawn())
    for wrong in (plans(3), plans(2, 6)):
        with pytest.raises(ParameterError, match="does not price the steps"):
            measure_by_distance(period_of([[7, 7]], 5), [0], *wrong, None, Undrawn())
