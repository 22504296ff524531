"""The seventh family where it begins before the mechanism: rows, customers who move, leaked noise.

400 runs of each side, more of controls, error 1e-9 an audit.
"""

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit.cases import Case
from studies.audit.compromised import (
    broken_compromised_subjects,
    compromised_subjects,
)
from studies.audit.rows import broken_row_subjects, row_subjects
from tests.optstream.mechanisms.silent_noise import SilentNoise

pytestmark = pytest.mark.slow

ROWS, BROKEN_ROWS = row_subjects(), broken_row_subjects()
RUNS = {"first leaf of the day": 1000, "far from 0": 1000, "leaked noise": 1500}
"""Of controls that need fewer than 3,000."""


def exact_loss(subject):
    """Of Laplace noise: by how far the answers differ, over its scale."""
    one, other = (subject.sample(side, 1, SilentNoise()).numbers for side in (0, 1))
    mechanism, _ = subject.histories[0][0]
    return np.abs(one - other).sum() / float(mechanism.plan(1, 0)[0].scale)


def test_rows_cost_what_the_table_says_exactly():
    laplace = [subject for subject in ROWS if "OptStream" not in subject.name]
    assert len(laplace) == 5
    for subject in laplace:
        assert exact_loss(subject) == pytest.approx(subject.claimed, rel=1e-12), subject.neighbours


def test_what_broken_rules_and_claims_cost_exactly():
    """A day of 4 steps: its first row, and the four that come back."""
    assert [exact_loss(subject) for subject in BROKEN_ROWS] == pytest.approx([5, 4, 4, 100])
    assert [subject.claimed for subject in BROKEN_ROWS] == [1, 2, 2, 1]


def few_by_day(subjects):
    """The first by day; each of them draws seconds of noise. What rows cost is worked out by day for all."""
    for number, subject in enumerate(subjects):
        marks = [pytest.mark.nightly] if number else []
        yield pytest.param(subject, id=f"{subject.name}: {subject.neighbours}", marks=marks)


@pytest.mark.parametrize("subject", [*few_by_day(ROWS), *few_by_day(compromised_subjects())])
def test_no_history_exceeds_its_claim(subject):
    case = Case("ours", subject)
    result = case.run(n_runs=400, noise=simulated_noise(41))
    assert case.accountant == 1
    assert case.passes(result), result


@pytest.mark.parametrize("subject", [*few_by_day(BROKEN_ROWS), *few_by_day(broken_compromised_subjects())])
def test_every_broken_rule_is_caught(subject):
    case = Case("control", subject)
    runs = next((runs for name, runs in RUNS.items() if name in subject.name), 3000)
    result = case.run(n_runs=runs, noise=simulated_noise(42))
    assert case.passes(result), result
