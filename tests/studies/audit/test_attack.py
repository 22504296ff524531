"""The auditor itself: it never exceeds a known epsilon, and comes near it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import beta, binom

from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from studies.audit.attack import ERROR, audit
from studies.audit.cases import RAGGED
from studies.audit.histories import Outputs
from studies.audit.neighbours import worst_cases
from studies.audit.statistics import clopper_pearson, epsilon_bound


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


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    """200 audits of a mechanism whose epsilon is 0, error 0.2: at most 40 and four deviations."""
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


@pytest.mark.parametrize("error", [0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("hits", [0, 1, 40, 99, 100])
def test_limits_are_the_quantiles_of_the_beta_distribution(hits, error):
    low, high = clopper_pearson(hits, 100, error)
    assert float(low) == pytest.approx(beta.ppf(error, hits, 101 - hits) if hits else 0.0, rel=1e-6)
    assert float(high) == pytest.approx(
        beta.isf(error, hits + 1, 100 - hits) if hits < 100 else 1.0, rel=1e-6
    )


@pytest.mark.parametrize("probability", [0.001, 0.2, 0.5, 0.97])
def test_each_limit_is_wrong_no_more_often_than_it_says(probability):
    """Exactly: the probability, over all counts, that the limit lies on the wrong side."""
    counts, error = np.arange(201), 0.01
    low, high = clopper_pearson(counts, 200, error)
    mass = binom.pmf(counts, 200, probability)
    assert mass[low > probability].sum() <= error
    assert mass[high < probability].sum() <= error


def test_an_event_seen_on_one_side_only_shows_what_the_runs_bear_out():
    bound = float(epsilon_bound(1000, 0, 1000, 1e-9))
    assert bound == pytest.approx(np.log(1000 / np.log(2e9)), abs=0.05)
    assert float(epsilon_bound(0, 1000, 1000, 1e-9)) == -np.inf
    assert float(epsilon_bound(500, 500, 1000, 1e-9)) < 0


MODEL = PrivacyModel("1", 6, 2)


@pytest.mark.parametrize("lengths", [[6], [5, 6, 4], [2, 2, 2, 2]])
def test_worst_cases_are_neighbours_and_cross_every_border(lengths):
    pairs = worst_cases(MODEL, RAGGED, lengths, first_step=3)
    names = [pair.name for pair in pairs]
    assert len(set(names)) == len(names)
    for pair in pairs:
        pair.check(MODEL)
    borders = np.cumsum(lengths)[:-1] + 3
    for border in borders:
        crossing = [pair for pair in pairs if pair.changed[0] < border <= pair.changed[-1]]
        assert any(pair.span == MODEL.window_length for pair in crossing)
    assert min(len(pair.changed) for pair in pairs) == 1
    assert {len(pair.changed) for pair in pairs} >= {1, 2, min(6, sum(lengths))}


def test_roaming_changes_several_leaves_at_once():
    model = PrivacyModel("1", 6, 2, unit="roaming", leaves_per_step=2)
    gap = [
        np.concatenate(pair.other, 1) - np.concatenate(pair.one, 1)
        for pair in worst_cases(model, RAGGED, [6])
    ]
    assert all(np.count_nonzero(entry, axis=0).max() == 2 for entry in gap)
