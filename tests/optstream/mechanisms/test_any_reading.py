"""Library use: no reading decides whether there is a release."""

import numpy as np
import pytest

from optstream import mechanisms
from optstream.mechanisms import MECHANISMS
from optstream.mechanisms.series import SeriesMechanism
from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel

MODELS = {"epsilon": PrivacyModel("1", 4, 10), "rho": PrivacyModel("1", 4, 10, delta="1e-6")}
NAMES = [name for name in MECHANISMS if issubclass(getattr(mechanisms, name), SeriesMechanism)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reading", [np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**50, 1.2e12])
def test_every_mechanism_releases_whatever_a_reading_is(name, reading):
    kind = getattr(mechanisms, name)
    mechanism = kind(MODELS[kind.currency])
    values = np.full((2, 8), 5.0)
    values[1, 3] = reading
    released = mechanism.release(values, noise=simulated_noise(1))
    assert np.isfinite(released.values).all()
