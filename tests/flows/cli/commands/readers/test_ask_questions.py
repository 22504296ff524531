"""`optstream ask`: of a published folder alone; what it prints, writes and refuses."""

import json
from datetime import date
from fractions import Fraction

import polars as pl
import pytest
from typer.testing import CliRunner

from flows.cli.commands.readers.ask_questions import app
from optstream import Question, ask, read_answers
from optstream.catalogue import publish, stage
from optstream.catalogue.about import About, put_about
from optstream.catalogue.nodes import NodeFacts
from optstream.catalogue.questions.published_answers import put_answers
from tests.optstream.catalogue.conftest import make_rows, make_statement

DAYS = [date(2016, 2, 1), date(2016, 2, 2)]


@pytest.fixture
def folder(tmp_path):
    """Two published days of three steps that have a time: 0, 10 and 30 at the root, more at its leaves."""
    stated = [make_statement(day) for day in DAYS]
    staged = [stage(make_rows(one.period), one) for one in stated]
    publish(tmp_path / "published", list(zip(staged, stated, strict=True)), lambda _: "h1")
    return tmp_path / "published"


@pytest.fixture
def call(folder):
    return lambda *words: CliRunner().invoke(app, [str(folder), *map(str, words)], env={"COLUMNS": "200"})


def test_an_event_is_printed_as_spans_of_time(call):
    done = call("--window", "1h", "--low", "30", "--nodes", "FR")
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "FR  windows that end 2016-02-01 00:30Z to 2016-02-01 00:30Z",
        "FR  windows that end 2016-02-02 00:00Z to 2016-02-02 00:30Z",
        "5 windows answered",
    ]
    document = json.loads(call("--window", "1h", "--low", "30", "--nodes", "FR", "--json").output)
    assert document["runs"][-1] == {
        "question": "asked",
        "node": "FR",
        "first": "2016-02-02T00:00:00+00:00",
        "last": "2016-02-02T00:30:00+00:00",
        "windows": 2,
    }


def test_names_stand_beside_codes_where_the_publisher_tells_them(folder, call):
    put_about(folder, "../french load", About(nodes={"FR": NodeFacts(name="France")}))
    assert call("--window", "1h", "--low", "30", "--nodes", "FR").output.startswith("France (FR)  windows")
    assert "Z  France (FR)  30" in call("--window", "1h", "--level", "0").output


def test_sums_are_printed_with_what_is_known_of_their_errors(call):
    done = call("--window", "1h", "--level", "0", "--from", DAYS[1])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        "2016-02-02 00:00Z  FR  30",  # the last step of the day before has no known error
        "2016-02-02 00:30Z  FR  10  (noise alone at most 3)",
        "2016-02-02 01:30Z  FR  40",
        "3 windows answered",
    ]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_file_has_all_answers_and_none_is_overwritten(folder, call, tmp_path, suffix):
    output = tmp_path / f"drops{suffix}"
    words = ("--window", "1h", "--drop", "29.5", "--level", "1", "--output", output)
    assert call(*words).exit_code == 0
    wanted = ask(folder, [Question("asked", "drop", 2, Fraction("29.5"), level=1)])
    assert wanted["happened"].sum() == 2
    read = pl.read_parquet(output) if suffix == ".parquet" else pl.read_csv(output)
    assert read["answer"].to_list() == wanted["answer"].to_list()
    assert read["happened"].to_list() == wanted["happened"].to_list()
    again = call(*words)
    assert (again.exit_code, "is there already" in again.output) == (2, True)


def test_without_a_window_it_prints_what_the_publisher_asked(folder, call):
    assert call().exception is not None  # nothing is asked in this folder
    put_answers(folder, (Question("dawn", "jump", 2, Fraction(20), nodes=("FR",)),), 30)
    done = call()
    assert done.output.splitlines() == [
        "dawn: FR  windows that end 2016-02-01 01:30Z to 2016-02-01 01:30Z",
        "dawn: FR  windows that end 2016-02-02 01:30Z to 2016-02-02 01:30Z",
        f"{read_answers(folder).height} windows answered",
    ]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("--low", "3"), "--window is missing"),
        (("--window", "45min", "--nodes", "FR"), "whole steps of 30 minutes"),
        (("--window", "4", "--nodes", "FR"), "looks like 30min or 4h"),
        (("--window", "1h", "--low", "3", "--drop", "3", "--nodes", "FR"), "different questions"),
        (("--window", "1h", "--low", "x", "--nodes", "FR"), "border"),
        (("--window", "1h", "--nodes", "FR", "--output", "x.txt"), "must end in .csv or .parquet"),
    ],
)
def test_words_that_do_not_go_together_are_refused(call, words, rule):
    done = call(*words)
    assert done.exit_code == 2
    assert rule in done.output


def test_runs_end_where_a_node_a_question_or_the_answers_end(folder):
    from optstream.catalogue.questions.runs import runs_of

    rows = ask(folder, [Question("q", "low", 1, Fraction(10**6), level=1)])
    found = [(run.node, run.first.day, run.windows) for run in runs_of(rows)]
    # three steps a day with a gap between them
    assert found == [
        ("84", 1, 2),
        ("Île & ../x", 1, 2),
        ("84", 1, 1),
        ("Île & ../x", 1, 1),
        ("84", 2, 2),
        ("Île & ../x", 2, 2),
        ("84", 2, 1),
        ("Île & ../x", 2, 1),
    ]
