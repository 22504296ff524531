"""`python -m studies audit`: what it prints, writes and returns."""

import json

import pytest

from flows.cli.output import Terminal
from studies.audit.run import audit_cases
from studies.commands.audit import audit_and_show
from tests.studies.command import invoke

CASES = [*audit_cases(only="inverted"), *audit_cases(only="half the query")]


@pytest.mark.slow
def test_each_audit_is_a_line_and_what_was_asked_for_is_written(tmp_path, capsys):
    output = tmp_path / "audit.json"
    assert audit_and_show(CASES, Terminal(), n_runs=1000, output=output)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "caught" in lines[0]
    assert "noise of inverted scale: one more [1,000 runs" in lines[0]
    assert "enumerated" in lines[1]
    assert lines[2].startswith("2 of 2 audits are as they must be")
    assert json.loads(output.read_text())["format"] == "optstream.audit/1"


def test_the_audit_catches_a_control_and_says_so(here):
    result = invoke("audit", "--only", "half the query noise", "--json")
    assert result.exit_code == 0
    (row,) = json.loads(result.output)["audits"]
    assert row["passed"]
    assert invoke("audit", "--config", "optstream.toml").exit_code == 2
