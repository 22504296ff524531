"""Joint noise: the sampler's own code by enumeration, the loss of all moves, chi-square for larger groups.

Each chi-square test rejects a right sampler with probability 1e-8, a Kolmogorov-Smirnov test likewise; the
file holds 14 of them: below 2e-7 a run. The controls are drawn wrongly, and the same tests must reject them.
"""

import math
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from optstream.errors import NoiseError
from optstream.noise import joint, joint_noise, joint_variance, secure_noise, simulated_noise
from tests.optstream.mechanisms.silent_noise import SilentNoise

FALSE_ALARM = 1e-8
Q = Fraction(1, 3)
"""Stands for exp(-1 / scale) where outcomes are enumerated."""
SOURCES = [secure_noise(), simulated_noise(20160201)]


class CutOffError(Exception):
    """A branch with a larger radius than is enumerated, or a rejected one."""


class EveryOutcome:
    """A source that takes each branch in turn: all radii up to `most`, and all points of the cube.

    signed: also of the draws below 0, which stand for the same geometric ones; else k is drawn for both.
    """

    simulated = True

    def __init__(self, most, signed):
        self.most, self.signed, self.choices = most, signed, []

    def begin(self):
        self.branches, self.probability, self.attempts = [], Fraction(1), 0

    def choose(self, n):
        place = len(self.branches)
        self.branches.append(n)
        if place == len(self.choices):
            self.choices.append(0)
        return self.choices[place]

    def advance(self):
        """Whether there is another branch to take."""
        del self.choices[len(self.branches) :]
        while self.choices and self.choices[-1] + 1 == self.branches[len(self.choices) - 1]:
            self.choices.pop()
        if self.choices:
            self.choices[-1] += 1
        return bool(self.choices)

    def discrete_laplace(self, scale, size):
        self.attempts += 1
        if self.attempts > 1:
            raise CutOffError  # the radius was rejected: the loop begins again, alike
        drawn, radius = [], 0
        for _ in range(math.prod(size)):
            k = self.choose(2 * self.most + 2) - self.most - 1 if self.signed else self.choose(self.most + 1)
            radius += k if k >= 0 else -k - 1
            if radius > self.most:
                raise CutOffError
            self.probability *= (Q ** abs(k) if self.signed else Q**k + Q ** (k + 1)) * (1 - Q) / (1 + Q)
            drawn.append(k)
        return np.array(drawn, dtype=np.int64).reshape(size)

    def uniform_below(self, bounds):
        drawn = []
        for n in bounds.ravel().tolist():
            drawn.append(self.choose(n))
            self.probability /= n
        return np.array(drawn, dtype=np.int64).reshape(bounds.shape)


def enumerated(size, most, signed=True):
    """The exact probability that the first attempt returns x with a radius of at most `most`: {x: p}."""
    source, found = EveryOutcome(most, signed), Counter()
    while True:
        source.begin()
        with suppress(CutOffError):
            found[tuple(joint_noise(source, 1.0, size, 1)[0].tolist())] += source.probability
        if not source.advance():
            return found


def cube(size, most):
    return product(range(-most, most + 1), repeat=size)


def defined(size, most):
    """The definition, cut at the same radius: the sum of q^R over max|x_i| <= R <= most."""
    return {x: sum(Q**r for r in range(max(map(abs, x)), most + 1)) for x in cube(size, most)}


def differs(found, wanted):
    return set(found) != set(wanted) or len({found[x] / p for x, p in wanted.items()}) != 1


@pytest.mark.parametrize(
    ("size", "most", "signed"), [(1, 5, True), (2, 1, True), (2, 2, False), (3, 1, False)]
)
def test_the_code_draws_what_is_defined_to_the_last_digit(size, most, signed):
    assert not differs(enumerated(size, most, signed), defined(size, most))


def test_an_enumeration_finds_a_radius_that_is_never_rejected(monkeypatch):
    """The control: step 2 left out."""

    def tried(source, scale, size, count):
        drawn = source.discrete_laplace(scale, (count, size + 1))
        return np.where(drawn < 0, -drawn - 1, drawn).sum(axis=1), np.ones(count, dtype=bool)

    monkeypatch.setattr(joint, "_tried", tried)
    assert differs(enumerated(2, 1), defined(2, 1))


@pytest.mark.parametrize(("size", "most", "moved"), [(1, 12, 3), (2, 6, 2), (3, 3, 1)])
def test_no_move_inside_the_cube_loses_more_than_is_charged_and_one_loses_it(size, most, moved):
    weights = {x: Q ** max(map(abs, x)) for x in cube(size, most)}
    worst = Fraction(0)
    for move in cube(size, moved):
        shifted = {x: tuple(a + b for a, b in zip(x, move, strict=True)) for x in weights}
        worst = max(worst, *(p / weights[shifted[x]] for x, p in weights.items() if shifted[x] in weights))
    assert worst == Q**-moved


def exceeds(largest, size, scale):
    """Whether the largest coordinates are refused as those of joint noise of this scale."""
    q, top = math.exp(-1 / scale), int(scale * (size * 6 + 60))
    weights = [((2 * r + 1) ** size - max(2 * r - 1, 0) ** size) * q**r for r in range(top)]
    law = np.array(weights) / sum(weights)
    edges = np.unique(np.searchsorted(np.cumsum(law), np.linspace(0, 1, 41)[1:-1])) + 1
    cells = np.searchsorted(edges, largest, side="right")
    counts = np.bincount(cells, minlength=edges.size + 1)
    wanted = np.add.reduceat(law, [0, *edges]) * largest.size
    statistic = np.sum((counts - wanted) ** 2 / wanted)
    return statistic > stats.chi2.isf(FALSE_ALARM, counts.size - 1)


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
@pytest.mark.parametrize(("size", "scale"), [(1, 3.0), (2, 1.5), (5, 3.0), (8, 2.5), (48, 20.0)])
def test_the_largest_coordinate_follows_its_law_and_no_other(source, size, scale):
    drawn = joint_noise(source, scale, size, 12_000 // (size + 1))
    largest = np.abs(drawn).max(axis=1)
    assert drawn.dtype == np.int64
    assert not exceeds(largest, size, scale)
    assert exceeds(largest, size, 1.3 * scale)
    assert exceeds(largest, size, 0.7 * scale)


def test_places_and_signs_are_alike_and_the_rest_is_uniform():
    """Given the largest, each other coordinate is uniform below it. 8,000 groups of 5."""
    drawn = joint_noise(simulated_noise(5), 7000.0, 5, 8000)
    places = np.bincount(np.abs(drawn).argmax(axis=1) * 2 + (drawn.sum(axis=1) > 0), minlength=10)
    assert stats.chisquare(places).pvalue > FALSE_ALARM
    largest = np.abs(drawn).max(axis=1, keepdims=True)
    others = (drawn / largest)[np.abs(drawn) < largest]
    assert stats.kstest(others, stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(largest[:, 0] / 7000.0, stats.gamma(5).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(largest[:, 0] / 7000.0, stats.gamma(6).cdf).pvalue < FALSE_ALARM  # control
    assert drawn.var() == pytest.approx(joint_variance(7000.0, 5), rel=0.1)
    correlations = np.corrcoef(drawn.T)[np.triu_indices(5, 1)]
    assert np.abs(correlations).max() < 0.1  # seven standard errors of 8,000 heavy-tailed pairs at most


def test_wrong_ways_to_draw_a_radius_are_rejected():
    """The controls: nothing rejected; one geometric too few; the same one for all."""
    size, scale, source = 8, 2.5, simulated_noise(1)
    drawn = source.discrete_laplace(scale, (7500, size + 1))
    geometric = np.where(drawn < 0, -drawn - 1, drawn)
    bare = geometric.sum(axis=1)
    wrong = [bare]
    for radii in (geometric[:, :size].sum(axis=1), geometric[:, 0] * (size + 1)):
        bounds = 2 * (radii[:, None] + np.arange(1, size + 1))
        wrong.append(radii[(source.uniform_below(bounds) < 2 * radii[:, None] + 1).all(axis=1)])
    for radii in wrong:
        reach = np.repeat(radii[:, None], size, axis=1)
        points = source.uniform_below(2 * reach + 1) - reach
        assert exceeds(np.abs(points).max(axis=1), size, scale)


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("scale", [2.0, 40.0])
def test_the_variance_is_that_of_the_definition(size, scale):
    q = math.exp(-1 / scale)
    weights = [(2 * r + 1) ** size * q**r for r in range(int(scale * (size * 6 + 60)))]
    exact = sum(r * (r + 1) / 3 * p for r, p in enumerate(weights)) / sum(weights)
    assert joint_variance(scale, size) == pytest.approx(exact, abs=1 / 6)


@pytest.mark.parametrize("source", SOURCES, ids=["secure", "simulated"])
@pytest.mark.parametrize(
    ("scale", "size", "message"),
    [
        (math.nextafter(2.0**44, math.inf), 1, r"at most 2\^44.* larger epsilon or a coarser resolution"),
        (1000.0, 0, r"1 \.\. 512 measurements; got 0"),
        (1000.0, 513, r"1 \.\. 512 measurements; got 513"),
        (1.9, 8, "reject most radii"),
        (float("nan"), 1, "positive finite float"),
    ],
)
def test_groups_that_cannot_be_drawn_exactly_are_refused(source, scale, size, message):
    with pytest.raises(NoiseError, match=message):
        joint_noise(source, scale, size, 1)


def test_the_largest_scale_and_size_stay_inside_the_integers():
    """The stated bound: 513 draws, e^-(2^52 / 2^44) each; and what they add up to below it."""
    assert math.log2(513) - joint.LARGEST_DRAW / joint.LARGEST_JOINT_SCALE / math.log(2) < -359
    largest = (joint.LARGEST_GROUP + 1) * (joint.LARGEST_DRAW - 1)
    assert 2 * (largest + joint.LARGEST_GROUP) < 2**63
    for source in SOURCES:
        drawn = joint_noise(source, 2.0**44, joint.LARGEST_GROUP, 2)
        # false alarm: a radius of 513 geometrics of mean 2^44 below half its mean, less than e^-90
        assert 2**52 < np.abs(drawn).max() < 2**55


@pytest.mark.parametrize("drawn", [2**63 - 1, -(2**63) + 1, joint.LARGEST_DRAW])
def test_a_draw_that_was_cut_off_never_becomes_noise(drawn):
    """A source whose draws are as large as the integers allow; it has nothing else to draw from."""
    with pytest.raises(NoiseError, match="left the 64-bit integers"):
        joint_noise(SilentNoise(drawn), 2.0**44, 8, 1)
