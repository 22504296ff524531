"""Gaussian noise on every step: a window's whole loss, enumerated, and who may have it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from optstream import mechanisms
from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced
from optstream.mechanisms import MECHANISMS, Gaussian
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree
from studies.audit.enumeration import EnumeratedGaussian

TREE = AggregationTree.from_parents({"all": None, "A": "all", "B": "all"})


def model(epsilon="1", window=48, alpha=1, delta="1e-6", **more):
    return PrivacyModel(epsilon, window, alpha, delta=delta, **more)


def true_delta(sigma, n_steps, epsilon):
    """The least delta at which so many independent discrete Gaussian integers hide a move of each by 1."""
    return EnumeratedGaussian("", "", sigma, n_steps, 1).delta(epsilon)


@pytest.mark.parametrize("window", [1, 2, 5, 12])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-3"), ("1", "1e-6"), ("4", "1e-6"), ("1/10", "1e-4")]
)
def test_a_window_that_is_changed_whole_stays_within_epsilon_and_delta(epsilon, delta, window):
    """Each step by alpha. Controls: a sigma too small by a fifth, and one charged once for a window."""
    mechanism = Gaussian(model(epsilon, window, delta=delta, resolution=1))
    sigma, most = float(mechanism.sigma), float(Fraction(epsilon))
    assert true_delta(sigma, window, most) <= float(delta)
    assert true_delta(0.8 * sigma, window, most) > float(delta)
    assert window == 1 or true_delta(sigma / math.sqrt(window), window, most) > float(delta)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_one_currency_and_refuses_the_other(name):
    kind = getattr(mechanisms, name)
    more = {"tree": TREE, "sampling": EquallySpaced(2), "features": [], "level_shares": ["1/2", "1/2"]}
    own, other = PrivacyModel("1", 48, 1), model()
    if kind.currency == "rho":
        own, other = other, own
    given = more if name == "OptStream" else {}
    assert kind(own, **given).model.currency == kind.currency
    with pytest.raises(ParameterError, match=r"\[privacy\] delta"):
        kind(other, **given)


def test_noise_and_its_standard_errors_are_those_of_the_plan():
    """Of 2 x 4,800 values: a standard deviation within 5 %, which fails with a probability below 1e-10."""
    mechanism, values = Gaussian(model(resolution="0.01")), np.full((2, 4800), 1000.0)
    release = mechanism.release(values, noise=simulated_noise(5))
    sigma = float(mechanism.sigma) * 0.01
    assert np.allclose(release.standard_errors, sigma)
    assert np.std(release.values - values) == pytest.approx(sigma, rel=0.05)
    # scales of another noise would be seen
    assert np.std(release.values - values) != pytest.approx(sigma * 2**0.5, rel=0.05)
