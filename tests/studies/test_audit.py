"""The audit: the auditor and its exact probabilities, whole histories, and the command."""

import json
import math
from dataclasses import dataclass
from datetime import date

import numpy as np
import pytest
from scipy.stats import beta, binom

from optstream.noise import simulated_noise
from optstream.privacy import PrivacyModel
from studies.audit.attack import ERROR, audit
from studies.audit.cases import RAGGED, Case, control_cases, enumerated_samplers, our_cases
from studies.audit.compromised import broken_compromised_subjects, compromised_subjects
from studies.audit.controls import SparseVector
from studies.audit.enumeration import enumerated_window, first_above
from studies.audit.histories import MechanismSubject, Outputs
from studies.audit.ledgers import (
    ALPHAS,
    AMENDMENTS,
    WANTED,
    WINDOW,
    amended_subjects,
    apart_subjects,
    broken_tree_subjects,
    changed_tree_subjects,
    fits_the_newest,
    hasty_subjects,
    is_reserved,
    product_subjects,
    released_days,
    released_products,
)
from studies.audit.neighbours import worst_cases
from studies.audit.rows import broken_row_subjects, row_subjects
from studies.audit.run import audit_cases, configured_cases, run_audit
from studies.audit.statistics import clopper_pearson, epsilon_bound
from tests.optstream.mechanisms.silent_noise import SilentNoise
from tests.studies.conftest import invoke


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


RUNS = 40_000
SAMPLERS = enumerated_samplers()


def close(frequencies, probabilities, runs):
    """Within 5.5 standard deviations: a false alarm in 2e7 frequencies."""
    deviation = np.sqrt(probabilities * (1 - probabilities) / runs)
    return np.all(np.abs(frequencies - probabilities) <= 5.5 * deviation + 1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_agree_with_sampling(shared):
    vector = SparseVector("small", shared=shared, n_queries=6, sensitivity=3)
    for side in (0, 1):
        exact = first_above(vector.sides[side].tolist(), vector.threshold, *vector.scales, shared=shared)
        assert exact.sum() == pytest.approx(1.0, abs=1e-12)
        drawn = vector.sample(side, RUNS, simulated_noise(side)).answers[:, 0]
        assert close(np.bincount(drawn, minlength=7) / RUNS, exact, RUNS)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.slow
def test_the_enumerated_sampler_is_the_one_that_is_released(sampler):
    """The mechanism's own choices, drawn, are as likely as this package computes them to be."""
    runs, noise = 1000, simulated_noise(11)
    values = np.array([sampler.base])
    drawn = [sampler.mechanism.measure(values, noise=noise).positions for _ in range(runs)]
    asked = [positions[1] if positions[1:] and positions[1] < 5 else 5 for positions in drawn]
    exact = sampler.probabilities(sampler.base)
    assert close(np.bincount(asked, minlength=6)[1:] / runs, exact, runs)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.name)
@pytest.mark.slow
def test_no_change_of_a_period_costs_the_sampler_more_than_it_is_charged(sampler):
    result = sampler.enumerate()
    assert 0 < result.lower_bound <= sampler.claimed
    assert result.method == "enumeration"


CASES = control_cases()


@pytest.mark.slow
def test_the_papers_feature_scale_measures_well_above_epsilon():
    case = CASES[0]
    assert 2.5 < case.run(n_runs=1000, noise=simulated_noise(9)).lower_bound < case.accountant
    assert case.accountant == pytest.approx(24.5, rel=1e-12)


def test_the_honest_sparse_vector_meets_its_epsilon_exactly_and_half_the_noise_costs_half_as_much_again():
    assert SparseVector("right").enumerate().lower_bound == pytest.approx(1.0, abs=1e-6)
    assert SparseVector("half", query_factor=2.0).enumerate().lower_bound == pytest.approx(1.5, abs=1e-3)


def test_a_window_loses_no_more_than_is_claimed_by_exact_probabilities():
    found = enumerated_window().enumerate()
    assert 0.8 < found.lower_bound <= found.claimed == 1.0
    assert found.delta == 1e-3
    assert not found.exceeds


def test_the_enumeration_agrees_with_the_gaussian_law_where_sigma_is_large():
    """The hockey-stick divergence of two Gaussians, in closed form (Balle and Wang 2018, Theorem 8)."""
    subject, epsilon = enumerated_window(), 0.7
    ratio = math.sqrt(subject.n_answers) * subject.move / subject.sigma
    below = [
        0.5 * math.erfc(-x / math.sqrt(2))
        for x in (ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio)
    ]
    assert subject.delta(epsilon) == pytest.approx(below[0] - math.exp(epsilon) * below[1], rel=2e-3)


def test_an_event_as_rare_as_delta_says_nothing():
    """Seen 0.1 % of the time on one side and never on the other: nothing at delta 1e-3, much at 0."""
    pure, with_delta = (epsilon_bound([1000], [0], 10**6, 1e-9, delta)[0] for delta in (0.0, 1.2e-3))
    assert pure > 3
    assert with_delta == -np.inf
    assert epsilon_bound([500_000], [100_000], 10**6, 1e-9, 1e-3)[0] < np.log(5)


ROWS, BROKEN_ROWS = row_subjects(), broken_row_subjects()
AMENDED, HASTY = amended_subjects(), hasty_subjects()
TOGETHER, APART = product_subjects(), apart_subjects()


def of_laplace(subject):
    """By how far the answers differ, over the noise's scale."""
    one, other = (subject.sample(side, 1, SilentNoise()).numbers for side in (0, 1))
    mechanism, _ = subject.histories[0][0]
    return np.abs(one - other).sum() / float(mechanism.plan(1, 0)[0].scale)


@pytest.mark.slow
def test_rows_cost_what_the_table_says_exactly_and_what_broken_rules_do():
    """Of broken rules a day of 4 steps: its first row, and the four that come back."""
    laplace = [subject for subject in ROWS if "OptStream" not in subject.name]
    assert len(laplace) == 5
    for subject in laplace:
        assert of_laplace(subject) == pytest.approx(subject.claimed, rel=1e-12), subject.neighbours

    assert [of_laplace(subject) for subject in BROKEN_ROWS] == pytest.approx([5, 4, 4, 100])
    assert [subject.claimed for subject in BROKEN_ROWS] == [1, 2, 2, 1]


def loss(subject, window=WINDOW):
    """Exact: Laplace noise tells the distance of what it is added to, over its scale."""
    drawn = [subject.sample(side, 1, SilentNoise()).numbers[0] for side in (0, 1)]
    scales = [mechanism.plan(1, 0)[0].scale for mechanism, _ in subject.histories[0] for _ in range(window)]
    return sum(abs(a - b) / scale for a, b, scale in zip(*drawn, scales, strict=True))


@pytest.mark.parametrize("amendment", AMENDMENTS, ids=lambda one: one.name)
@pytest.mark.slow
def test_the_ledger_decides_which_days_are_released(amendment):
    second, little = [amendment.second], [amendment.second, amendment.little]

    def decided(offers, accepts):
        return [(step, one.model) for step, one in released_days(amendment, offers, accepts)]

    first = (0, amendment.first)
    assert decided(second, is_reserved) == [first, (2 * WINDOW, second[0])]
    assert decided(little, is_reserved) == [first, (WINDOW, little[1]), (2 * WINDOW, second[0])]
    assert decided(second, fits_the_newest) == [first, (WINDOW, second[0]), (2 * WINDOW, second[0])]


@pytest.mark.slow
def test_what_the_change_costs_exactly():
    assert [loss(subject) for subject in AMENDED] == [0.5, 1, 0.5, 1]
    assert [loss(subject) for subject in HASTY] == [5.5, 5.5]


def test_the_ledger_takes_what_fits_and_a_window_of_all_streams_costs_it_exactly():
    assert [name for name, _ in released_products(WANTED, one_budget=True)] == ["electricity", "heat"]
    assert [name for name, _ in released_products(WANTED, one_budget=False)] == list(ALPHAS)
    assert [loss(subject, 1) for subject in TOGETHER] == pytest.approx([1, 1])
    assert [loss(subject, 1) for subject in APART] == pytest.approx([3])


def of(subjects, *given, marks=()):
    return [pytest.param(one, *given, id=f"{one.name}: {one.neighbours}", marks=marks) for one in subjects]


KEPT = [
    *of(ROWS[:1], 41, marks=pytest.mark.slow),
    *of(compromised_subjects()[:1], 41, marks=pytest.mark.slow),
    *of(AMENDED, 31),
    *of(TOGETHER, 33),
    *of(changed_tree_subjects(), 41, marks=pytest.mark.slow),
]
CAUGHT = [
    *of(BROKEN_ROWS[:1], 42, 3000, 1.0),
    *of(broken_compromised_subjects()[:1], 42, 1500, 1.0),
    *of(HASTY, 32, 1500, 1.5),
    *of(APART, 34, 4000, 1.2),
    *of(broken_tree_subjects(), 42, 2000, 1.0),
]
"""Of rows and leaked noise the first: each draws seconds of noise, and `make audit` has all."""


@pytest.mark.parametrize(("subject", "seed"), KEPT)
def test_nothing_exceeds_its_claim(subject, seed):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(seed))
    assert case.accountant == 1 or subject in (*AMENDED, *TOGETHER)
    assert case.passes(result), result


@pytest.mark.slow
@pytest.mark.parametrize(("subject", "seed", "runs", "above"), CAUGHT)
def test_every_broken_rule_is_caught(subject, seed, runs, above):
    case = Case("control", subject)
    result = case.run(n_runs=runs, noise=simulated_noise(seed))
    assert case.passes(result), result
    assert result.lower_bound > above


DAY = date(2025, 1, 15)


@pytest.mark.slow
def test_what_a_change_of_a_mechanism_is_charged_is_within_the_accountants_figure():
    ours = [case for case in our_cases(days=True) if isinstance(case.subject, MechanismSubject)]
    assert [case.name for case in ours if case.charged is not None and case.charged > case.accountant] == []


@pytest.mark.slow
def test_each_audit_is_a_line_and_what_was_asked_for_is_written(here):
    result = invoke("audit", "--only", "half the query noise", "--output", "audit.json")
    assert result.exit_code == 0
    first, last = result.output.splitlines()
    assert "caught" in first
    assert "enumerated" in first
    assert last.startswith("1 of 1 audits are as they must be")
    document = json.loads((here / "audit.json").read_text())
    assert (document["format"], document["passed"]) == ("optstream.audit/1", True)
    (row,) = json.loads(invoke("audit", "--only", "half the query noise", "--json").stdout)["audits"]
    assert row["passed"]
    assert invoke("audit", "--config", "optstream.toml").exit_code == 2


@pytest.mark.slow
def test_a_control_that_is_missed_fails_the_audit():
    (case,) = [case for case in audit_cases() if "inverted" in case.name]
    (missed,) = run_audit([case], n_runs=400, seed=3, error=1e-300)
    assert missed["lower_bound"] <= 0.5
    assert not missed["passed"]


@pytest.mark.slow
def test_the_configured_mechanism_is_audited_on_its_own_neighbours(small):
    cases = configured_cases(small().settings, DAY)
    assert {case.kind for case in cases} == {"ours"}
    assert all(case.name.startswith("stream small: ") for case in cases)
    (row,) = run_audit([case for case in cases if "one step" in case.name], n_runs=400)
    assert row["passed"]
    assert row["charged"] < row["accountant"] <= 1
