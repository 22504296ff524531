"""`optstream ledger` and `optstream purge` from their words to their exit codes, on a ledger of two days."""

import json
from datetime import date

import pytest
from jsonschema import Draft202012Validator

from optstream.errors import LedgerError
from optstream.ledger import Key
from tasks.schemas import schema_of
from tests.flows.command import invoke
from tests.tasks.two_regions import RESERVED

DAYS = [date(2016, 6, number) for number in (1, 2, 3)]


@pytest.fixture
def charged(installation):
    """Two days that are reserved under their own plan, and one that is VOID."""
    installation.simulate(*DAYS)
    installation.release(*DAYS, steps=RESERVED)
    installation.ledger.void(Key("two-regions", "2016-06-03"), "given up", installation.now)
    return installation.folder


def test_verify_is_0_for_a_whole_ledger_and_1_with_a_line_for_each_problem(charged):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "no edit, gap, reordering or difference found: 3 releases, 0 days" in result.output
    assert "note: " in result.output
    (charged / "trusted/measurements/two-regions/2016-06-09-r0").mkdir(parents=True)
    result = invoke("ledger", "verify")
    assert result.exit_code == 1
    assert sum(line.startswith("problem: ") for line in result.output.splitlines()) == 1
    result = invoke("ledger", "verify", "--json")
    assert result.exit_code == 1
    document = json.loads(result.output)
    assert (document["format"], document["whole"], len(document["problems"])) == (
        "optstream.ledger-verify/1",
        False,
        1,
    )


def test_no_command_makes_a_ledger_where_there_is_none(here):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "there is no ledger yet" in result.output
    for words in (["ledger", "show"], ["ledger", "export", "--into", "out"], ["purge"]):
        with pytest.raises(LedgerError, match="there is no ledger"):
            invoke(*words)
    assert not (here / "trusted").exists()
    assert not (here / "out").exists()


def test_horizon_of_compromised_days_says_that_all_is_lost(charged):
    assert "of one customer lose at most epsilon" in invoke("ledger", "horizon").output
    invoke("ledger", "compromised", "--date", "2016-06-03", "--reason", "a stolen disk")
    assert "noise was compromised, so all is lost" in invoke("ledger", "horizon").output
    assert (
        "the 30 days to 2016-06-03: noise was compromised, so all is lost" in invoke("ledger", "show").output
    )
    document = json.loads(invoke("ledger", "horizon", "--json").output)
    assert (document["plain_sum"], document["epsilon_float"]) == ("inf", None)
    for one in (document, json.loads(invoke("ledger", "show", "--json").output)):
        Draft202012Validator(schema_of(one["format"])).validate(one)
