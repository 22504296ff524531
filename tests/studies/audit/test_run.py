"""`python -m studies audit`: what it prints, writes, keeps and returns; and a configured mechanism."""

import json
from datetime import date

import pytest

from studies.audit.cases import our_cases
from studies.audit.histories import MechanismSubject
from studies.audit.run import audit_cases, configured_cases, run_audit
from tests.flows.cli.conftest import here  # noqa: F401
from tests.studies.command import invoke

DAY = date(2025, 1, 15)


@pytest.mark.slow
def test_what_a_change_of_a_mechanism_is_charged_is_within_the_accountants_figure():
    ours = [case for case in our_cases(days=True) if isinstance(case.subject, MechanismSubject)]
    assert [case.name for case in ours if case.charged is not None and case.charged > case.accountant] == []


@pytest.mark.slow
def test_each_audit_is_a_line_and_what_was_asked_for_is_written(here):  # noqa: F811
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
