"""`python -m studies leakage` from its words to its exit code, on a ledger of three days."""

import json
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import open_ledger
from studies.commands import leakage
from studies.leakage.paper_figures import Sizes
from tasks.config import load_settings
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Run, enrol
from tests.studies.command import invoke

NOW = datetime(2016, 7, 1, tzinfo=UTC)


@pytest.fixture
def here(here):
    """A folder with a configuration, two chains and a ledger without a day."""
    (here / "M.csv").write_text("low,high\n0.9,0.1\n0.3,0.7\n")
    (here / "stay.csv").write_text("0.8,0.2\n0,1\n")
    return here


@pytest.fixture
def released(here):
    """The same with three days that are charged."""
    settings = load_settings(here / "optstream.toml")
    ledger = open_ledger(settings.ledger_url)
    enrol(Run(settings, ledger, None, "test", lambda: NOW))
    for number in range(3):
        day = date(2016, 6, 1) + timedelta(days=number)
        spends = mechanism_for(settings, day).plan(48, settings.calendar.first_step(day))
        held = ledger.reserve("french-load", day.isoformat(), 0, spends, "test", NOW, timedelta(hours=1))
        ledger.begin_draw(held, NOW)
        ledger.record_drawn(held, "0" * 64, spends, NOW)
    ledger.close()
    return here


@pytest.mark.slow
def test_a_person_sees_the_history_the_bounds_and_the_caveat(released):
    result = invoke("leakage", "--transition", "M.csv")
    assert result.exit_code == 0, result.exception
    shown = " ".join(result.output.split())
    assert "3 releases, 144 steps of 30 minutes, 2016-06-01 to 2016-06-03" in shown
    assert "chain of 2 states: M.csv; backward: derived by Bayes" in shown
    assert "to keep the total at 1 or below" in shown
    assert "a step, permanently (Algorithm 7)" in shown
    assert "for 144 steps (Algorithm 8)" in shown
    assert "alpha = 10 of each other" in shown
    assert "the privacy guarantee does not cover such knowledge" in shown


def test_json_is_one_document_by_step_and_by_period(released):
    for by, n_points in (("step", 144), ("period", 3)):
        result = invoke("leakage", "--transition", "M.csv", "--by", by, "--bound", "0.5", "--json")
        document = json.loads(result.output)
        assert document["by"] == by
        assert document["n_points"] == n_points
        assert document["bound"]["total"] == 0.5
        total, epsilon = document["summary"]["total"], document["summary"]["epsilon"]
        assert total["worst"] > epsilon["worst"]
    assert epsilon["worst"] == pytest.approx(1)


def test_the_files_are_not_taken_for_each_other(released):
    """Forward M with backward stay: exchanged, both directions change."""
    words = ["leakage", "--json", "--transition"]
    one = json.loads(invoke(*words, "M.csv", "--backward", "stay.csv").output)["summary"]
    other = json.loads(invoke(*words, "stay.csv", "--backward", "M.csv").output)["summary"]
    assert one["backward"]["worst"] > one["forward"]["worst"]
    assert one["backward"]["worst"] == pytest.approx(other["forward"]["worst"], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (
            ["--transition", "stay.csv"],
            ConfigurationError,
            "reducible.*give the backward chain with --backward",
        ),
        (["--transition", "M.csv", "--bound", "0"], ParameterError, "alpha must be greater than 0"),
    ],
)
def test_faults_are_explained(released, words, error, message):
    with pytest.raises(error, match=message):
        invoke("leakage", *words)


@pytest.mark.slow
def test_the_papers_figures_need_no_stream(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = Sizes(states=(3,), n_steps_states=4, amounts_states=3, n_matrices=2, matrices_states=4, runs=1)
    monkeypatch.setattr(leakage, "Sizes", lambda: small)
    document = json.loads(invoke("leakage", "--paper", "figures.parquet", "--json").output)
    written = pl.read_parquet("figures.parquet")
    assert sorted(written["figure"].unique()) == [3, 4, 5, 6, 7, 8, 9]
    assert written.height == len(document["points"])
    assert document["largest_difference"] < 1e-6
    assert written.row(0) == (3, "(a) backward", "", "identity", 1.0, 0.1)
