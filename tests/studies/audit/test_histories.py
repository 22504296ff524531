"""The seventh family where it begins before the mechanism: rows, customers who move, leaked noise.

400 runs of each side, more of controls, error 1e-9 an audit.
"""

import numpy as np
import pytest

from optstream.noise import simulated_noise
from studies.audit import ERROR, Case
from studies.audit.compromised import (
    BEFORE_AN_END,
    DAY_BEFORE,
    TWO_DAYS_BEFORE,
    BesideLeaked,
    broken_compromised_subjects,
    compromised_subjects,
    marked_by_ledger,
)
from studies.audit.rows import broken_row_subjects, row_subjects
from studies.audit.run import audit_cases, history_cases
from studies.audit.subjects.subject import BufferedNoise
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


@pytest.mark.parametrize(
    ("readings", "marked", "is_hidden"),
    [(DAY_BEFORE, {0, 1, 2}, True), (TWO_DAYS_BEFORE, {0, 1, 2}, True), (BEFORE_AN_END, {1, 2}, False)],
)
def test_days_are_marked_by_the_groups_that_run_into_the_leaked_one(readings, marked, is_hidden):
    """Seed 5 draws a run in which every group lives as long as its readings are alike."""
    seen = []

    def marks(measured):
        seen.append(marked_by_ledger(measured))
        return seen[-1]

    subject = BesideLeaked("leaked", "here", readings, marks)
    *_, (numbers, answers) = subject._run(subject.histories[0], BufferedNoise(simulated_noise(5)))
    assert seen == [marked]
    assert np.isnan(numbers).all() == (answers == -1).all() == is_hidden


def test_what_is_known_of_the_leaked_day_is_the_same_in_every_run():
    """What tells the sides apart is an outcome of the groups that has probability 0 on one of them."""
    subject = broken_compromised_subjects()[0]
    runs = [subject.sample(side, 300, simulated_noise(6)) for side in (0, 1)]
    assert len(np.unique(np.concatenate([outputs.numbers[:, -2:] for outputs in runs]), axis=0)) == 1
    (first, *_, leaked), _ = [[period.first_step for _, period in side] for side in subject.histories]
    joined_then_not = [first, leaked + 1]
    found = [outputs.answers[:, -2:].tolist().count(joined_then_not) for outputs in runs]
    assert found[0] > 30
    assert found[1] == 0


def test_the_family_is_whole_and_in_the_usual_audit():
    cases = history_cases()
    assert [case.kind for case in cases].count("control") == 10
    names = " ".join(case.name for case in cases)
    for part in ("rows,", "change leaf", "amended", "leaked noise"):
        kinds = {case.kind for case in cases if part.split()[0] in case.name}
        assert kinds == {"ours", "control"}, part
        assert part in names
    assert {case.name for case in cases} <= {case.name for case in audit_cases()}


def test_no_audit_raises_a_false_alarm_with_more_than_one_in_a_million():
    assert len(audit_cases(days=True)) < 500
    assert 500 * ERROR < 1e-6
