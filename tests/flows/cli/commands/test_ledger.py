"""`optstream ledger` and `optstream purge` from their words to their exit codes, on a ledger of two days."""

import json
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from flows.cli.ledger import clock
from flows.cli.main import app
from optstream.errors import LedgerError
from optstream.ledger import open_ledger
from optstream.stream import Calendar
from tasks.config import load_settings
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Run, enrol
from tests.flows.command import invoke

NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def charged(here):
    """Two days that are reserved under their own plan, and one that is VOID."""
    settings = load_settings(here / "optstream.toml")
    ledger = open_ledger(settings.ledger_url)
    enrol(Run(settings, ledger, None, "test", lambda: NOW))
    for number in range(3):
        day = date(2016, 6, 1) + timedelta(days=number)
        spends = mechanism_for(settings, day).plan(48, settings.calendar.first_step(day))
        ledger.reserve("french-load", day.isoformat(), 0, spends, "test", NOW, timedelta(hours=1))
    ledger.void("french-load", "2016-06-03", 0, "given up", NOW)
    ledger.close()
    return here


@pytest.mark.slow
def test_show_answers_what_may_be_released_and_when_budget_returns(charged):
    result = invoke("ledger", "show")
    assert result.exit_code == 0, result.exception
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    shown = "\n".join(lines)
    assert "privacy budget french-customers: epsilon 1 in any window of 48 steps (30 min, Eur" in shown
    assert "Europe/Paris, elapsed; sliding" in shown
    assert (
        "stream french-load: 2 reserved, 1 void; alpha 10, resolution 1/1000, unit customer, strict" in shown
    )
    assert "2016-06-01 reserved 1 0" in lines
    assert "2016-06-03 void 1 0" in lines
    assert any(line.startswith("2016-06-05 1 yes") for line in lines)
    assert "windows that begin at 2016-06-04 00:00 or later have all of it, 1" in shown


def test_show_of_a_range_as_json(charged):
    words = ["ledger", "show", "--from", "2016-06-02", "--to", "2016-06-02", "--json"]
    document = json.loads(invoke(*words).output)
    assert document["format"] == "optstream.ledger-show/1"
    (grant,) = document["grants"]
    assert (grant["epsilon"], grant["epsilon_float"], grant["window_steps"]) == ("1", 1.0, 48)
    assert [day["date"] for day in grant["days"]] == ["2016-06-02"]
    (stream,) = grant["streams"]
    assert stream["n_releases"] == {"reserved": 2, "void": 1}
    assert [release["date"] for release in stream["releases"]] == ["2016-06-02"]
    windows = grant["window_groups"]
    assert windows[0]["begin_first"] == "2016-06-01T00:30+02:00"
    assert windows[-1]["begin_last"] == "2016-06-02T23:30+02:00"
    assert grant["all_free_from"] == "2016-06-04T00:00+02:00"
    # neighbours, none left out
    assert all(a["last_step"] + 1 == b["first_step"] for a, b in pairwise(windows))


def test_show_says_when_a_run_would_be_refused(charged):
    path = charged / "optstream.toml"
    path.write_text(path.read_text().replace('epsilon = "1"', 'epsilon = "2"'))
    shown = " ".join(invoke("ledger", "show").output.split())
    assert "the ledger has another epsilon than the configuration: a run is refused" in shown


def test_verify_is_0_for_a_whole_ledger_and_1_with_a_line_for_each_problem(charged):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "no edit, gap, reordering or difference found: 3 releases, 0 days" in result.output
    assert "note: " in result.output
    (charged / "trusted/measurements/french-load/2016-06-09-r0").mkdir(parents=True)
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


def test_verify_without_a_ledger_makes_none(here):
    result = invoke("ledger", "verify")
    assert result.exit_code == 0
    assert "there is no ledger yet" in result.output
    assert not (here / "trusted").exists()


@pytest.mark.parametrize("words", [["ledger", "show"], ["ledger", "export", "--into", "out"], ["purge"]])
def test_nothing_else_makes_one_either(here, words):
    with pytest.raises(LedgerError, match="there is no ledger"):
        invoke(*words)
    assert not (here / "trusted").exists()
    assert not (here / "out").exists()


def test_export_ends_with_its_rows(charged):
    result = invoke("ledger", "export", "--into", "out")
    assert result.exit_code == 0, result.exception
    assert f"rows in {charged / 'out'}: 1 streams, 3 releases" in result.output.splitlines()[-1]
    with pytest.raises(LedgerError):
        invoke("ledger", "export", "--into", "out")
    document = json.loads(invoke("ledger", "export", "--into", "other", "--json").output)
    assert document["format"] == "optstream.ledger-export/1"
    assert document["n_rows"]["releases"] == 3


def test_purge_counts_by_kind(charged):
    folder = charged / "trusted/validation/french-load"
    folder.mkdir(parents=True)
    for day in ("2016-06-02", "2016-06-03"):  # one of a day that is RESERVED
        (folder / f"{day}-20160701T000000000000.json").write_text("{}")
    shown = invoke("purge", "--dry-run").output
    assert "would remove 0 staged files, 1 validation results, 0 hashes of inputs, 0 raw states" in shown
    document = json.loads(invoke("purge", "--json").output)
    assert (document["format"], document["n_removed"]["validation results"]) == ("optstream.purge/1", 1)
    assert [path.name[:10] for path in folder.iterdir()] == ["2016-06-02"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ledger", "show", "--from", "2016-06-02", "--to", "2016-06-01"], "is before --from"),
        (["ledger", "show", "--from", "june"], "a date looks like"),
        (["ledger", "export"], "--into"),
        (["ledger", "rewrite"], "No such command"),
    ],
)
def test_wrong_words_are_explained(charged, words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_the_hour_that_comes_twice_is_told_apart():
    calendar = Calendar(30, "Europe/Paris")
    first = calendar.first_step(date(2016, 10, 30))
    times = [clock(calendar.local_time(first + number)) for number in (3, 4, 6, 8)]
    assert times == [
        "2016-10-30 01:30",
        "2016-10-30 02:00+0200",
        "2016-10-30 02:00+0100",
        "2016-10-30 03:00",
    ]
    fixed = Calendar(30, "Europe/Paris", "fixed")
    assert clock(fixed.local_time(fixed.first_step(date(2016, 10, 30)) + 5)) == "2016-10-30 02:30"


def test_horizon_states_span_delta_and_the_plain_sum_beside_the_composed_one(charged):
    said = invoke("ledger", "horizon", "--days", "3", "--delta", "1e-6")
    assert said.exit_code == 0, said.exception
    first, second = said.output.splitlines()
    told = (
        "privacy budget french-customers, 3 days, 2016-06-01 to 2016-06-03: all readings of one customer lose"
    )
    assert first.startswith(told)
    assert first.endswith(" at delta 1e-06")
    document = json.loads(invoke("ledger", "horizon", "--days", "3", "--delta", "1e-6", "--json").output)
    assert document["format"] == "optstream.ledger-horizon/1"
    assert (document["first"], document["last"], document["n_days"]) == ("2016-06-01", "2016-06-03", 3)
    assert document["composed"] == "draws"
    assert document["epsilon_float"] < document["plain_sum_float"] == pytest.approx(3)
    assert second == "exact composition of the noise that was drawn; plain sum, at delta 0: 3"
    one = json.loads(invoke("ledger", "horizon", "--days", "1", "--json").output)
    assert one["first"] == one["last"] == "2016-06-03"
    assert one["epsilon_float"] <= one["plain_sum_float"] == pytest.approx(1)


@pytest.mark.slow
def test_show_gives_the_last_month_and_year_beside_their_plain_sums(charged):
    shown = invoke("ledger", "show")
    assert shown.exit_code == 0, shown.exception
    for n_days in (30, 365):
        (line,) = [
            one for one in shown.output.splitlines() if one.startswith(f"the {n_days} days to 2016-06-03")
        ]
        assert line.endswith(" at delta 1e-06; plain sum 3")
    document = json.loads(invoke("ledger", "show", "--json").output)
    month = json.loads(invoke("ledger", "horizon", "--json").output)
    assert document["horizons"][0] == month
    assert [one["n_days"] for one in document["horizons"]] == [30, 365]


def test_horizon_of_compromised_days_says_that_all_is_lost(charged):
    invoke("ledger", "compromised", "--date", "2016-06-03", "--reason", "a stolen disk")
    assert "noise was compromised, so all is lost" in invoke("ledger", "horizon").output
    assert (
        "the 30 days to 2016-06-03: noise was compromised, so all is lost" in invoke("ledger", "show").output
    )
    document = json.loads(invoke("ledger", "horizon", "--json").output)
    assert (document["plain_sum"], document["epsilon_float"]) == ("inf", None)


@pytest.mark.parametrize("delta", ["0", "1e-11", "0.2", "none"])
def test_horizon_refuses_a_delta_that_says_nothing(charged, delta):
    said = CliRunner().invoke(app, ["ledger", "horizon", "--delta", delta])
    assert said.exit_code != 0
    assert "delta" in f"{said.output}{said.stderr}{said.exception}"


def test_a_dry_run_of_an_amendment_names_the_days_that_would_wait_and_declares_nothing(charged):
    path = charged / "optstream.toml"
    before = path.read_text()
    path.write_text(before.replace('epsilon = "1" ', 'epsilon = "2" '))
    result = invoke("ledger", "amend", "--dry-run")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "french-load: epsilon would change; nothing was declared"
    assert "2016-06-04 would wait: some window would lose" in result.stdout
    assert "2016-06-05 is the first day that could be released" in result.stdout
    refused = invoke("ledger", "amend")
    assert refused.exit_code == 2
    assert "--reason" in refused.output
    path.write_text(before)
    assert invoke("ledger", "verify").exit_code == 0
