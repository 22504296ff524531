"""The audit as a task: rows, document, chart, and the configured mechanism."""

from datetime import date

import pytest

from optstream.errors import ParameterError
from studies.audit import control_cases, our_cases
from studies.audit.run import (
    audit_cases,
    audit_document,
    configured_cases,
    history_cases,
    run_audit,
)

pytestmark = pytest.mark.slow

DAY = date(2025, 1, 15)
QUICK = [
    *audit_cases(only="points only: all steps"),
    *audit_cases(only="inverted"),
    *audit_cases(only="counting"),
]


@pytest.fixture(scope="module")
def rows():
    return list(run_audit(QUICK, n_runs=1000, seed=3))


def test_rows_say_what_was_found(rows):
    assert [row.kind for row in rows] == ["ours", "control", "twin"]
    assert all(row.passed for row in rows)
    ours, control, _ = rows
    assert ours.result.lower_bound <= ours.charged <= ours.accountant == pytest.approx(1.0)
    assert control.result.lower_bound > control.result.claimed
    assert control.accountant is None


def test_a_control_that_is_missed_fails_the_audit(rows):
    missed = list(run_audit(QUICK[1:2], n_runs=400, seed=3, error=1e-300))
    assert missed[0].result.lower_bound <= 0.5
    assert not missed[0].passed
    assert audit_document(missed, secure=False, seed=3)["passed"] is False


def test_the_same_seed_finds_the_same(rows):
    again = list(run_audit(QUICK, n_runs=1000, seed=3))
    assert [row.result for row in again] == [row.result for row in rows]
    other = list(run_audit(QUICK, n_runs=1000, seed=4))
    assert [row.result for row in other] != [row.result for row in rows]


def test_all_cases_are_run_unless_some_are_named():
    parts = our_cases(days=False), history_cases(), control_cases()
    assert len(audit_cases()) == sum(map(len, parts))
    assert len(audit_cases(days=True)) > len(audit_cases())
    with pytest.raises(ParameterError, match="no audit is named like 'nothing'"):
        audit_cases(only="nothing")


def test_the_configured_mechanism_is_audited_on_its_own_neighbours(small):
    cases = configured_cases(small().settings, DAY)
    assert {case.kind for case in cases} == {"ours"}
    assert all(case.name.startswith("stream small: ") for case in cases)
    (one_step,) = configured_cases(small().settings, DAY, only="one step")
    (row,) = run_audit([one_step], n_runs=400)
    assert row.passed
    assert row.charged < row.accountant <= 1
