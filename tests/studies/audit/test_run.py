"""The audit as a task: rows, document, chart, and the configured mechanism."""

from datetime import date

import pytest

from studies.audit.run import (
    audit_cases,
    audit_document,
    configured_cases,
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


def test_a_control_that_is_missed_fails_the_audit(rows):
    missed = list(run_audit(QUICK[1:2], n_runs=400, seed=3, error=1e-300))
    assert missed[0].result.lower_bound <= 0.5
    assert not missed[0].passed
    assert audit_document(missed, secure=False, seed=3)["passed"] is False


def test_the_configured_mechanism_is_audited_on_its_own_neighbours(small):
    cases = configured_cases(small().settings, DAY)
    assert {case.kind for case in cases} == {"ours"}
    assert all(case.name.startswith("stream small: ") for case in cases)
    (one_step,) = configured_cases(small().settings, DAY, only="one step")
    (row,) = run_audit([one_step], n_runs=400)
    assert row.passed
    assert row.charged < row.accountant <= 1
