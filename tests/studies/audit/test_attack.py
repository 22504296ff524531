"""The auditor itself: it never exceeds a known epsilon, and comes near it."""

import math
from dataclasses import dataclass

import pytest

from optstream.noise import simulated_noise
from studies.audit.attack import ERROR, audit
from studies.audit.histories import Outputs
from studies.audit.statistics import epsilon_bound


@dataclass(frozen=True)
class Count:
    """A counting query with discrete Laplace noise: its epsilon is known, and met by one event."""

    epsilon: float
    name: str = "count"
    neighbours: str = "one more"

    @property
    def claimed(self):
        return self.epsilon

    def sample(self, side, n_runs, noise):
        scale = 1 / self.epsilon if self.epsilon else 1.0
        drawn = noise.discrete_laplace(scale, (n_runs, 1))
        return Outputs.of_numbers(drawn + (side if self.epsilon else 0))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_known_epsilon_is_approached_from_below(epsilon):
    result = audit(Count(epsilon), n_runs=60_000, noise=simulated_noise(1))
    assert 0.8 * epsilon < result.lower_bound <= epsilon
    assert not result.exceeds
    assert result.error == ERROR


def test_too_little_noise_is_found():
    class Starved(Count):
        @property
        def claimed(self):
            return 0.5 * self.epsilon

    assert audit(Starved(1.0), n_runs=20_000, noise=simulated_noise(2)).exceeds


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    """At an error of 0.2, over 200 audits of a mechanism whose epsilon is 0: at most 40 and four deviations.

    Choosing and testing an event on the same runs would raise one nearly every time.
    """
    audits, error = 200, 0.2
    alarms = sum(
        audit(Count(0.0), n_runs=400, noise=simulated_noise(seed), error=error).lower_bound > 0
        for seed in range(audits)
    )
    assert alarms <= audits * error + 4 * math.sqrt(audits * error * (1 - error))


def test_the_event_is_tested_on_runs_that_chose_nothing():
    """Every run is drawn once, and the chosen event is counted in the last half only."""
    drawn = []

    class Watched(Count):
        def sample(self, side, n_runs, noise):
            drawn.append((side, n_runs))
            return super().sample(side, n_runs, noise)

    result = audit(Watched(1.0), n_runs=400, noise=simulated_noise(1))
    assert drawn == [(0, 100), (1, 100), (0, 100), (1, 100), (0, 200), (1, 200)]
    assert result.tested == 200
    assert max(result.likely, result.unlikely) <= 200


def test_the_bound_is_that_of_the_tested_runs_with_a_share_of_the_error_for_each_event():
    result = audit(Count(1.0), n_runs=2000, noise=simulated_noise(5))
    families = 3  # likelihood ratio, direction, single output
    bound = epsilon_bound(result.likely, result.unlikely, 1000, ERROR / families)
    assert result.lower_bound == pytest.approx(float(bound), rel=1e-12)
