"""Answers of days against the definitions, window by window; borders decided exactly."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from optstream.catalogue.questions.figures import figures_of
from optstream.catalogue.questions.question import Question
from optstream.catalogue.questions.window_answers import SCHEMA, answers
from optstream.errors import ParameterError

FIRST = date(2016, 3, 26)
LEVELS = {"FR": 0, "84": 1, "11": 1}
RESOLUTION = Fraction(1, 10)


def rows_of(day, tenths, absent=()):
    """A day's rows, of {node: values in tenths}; absent: slots that the day does not have."""
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    rows = [
        {
            "date": day,
            "step": step,
            "timestamp": None if step in absent else midnight + timedelta(minutes=30 * step),
            "node": node,
            "level": LEVELS[node],
            "load": value / 10,
            "load_noise_se": 1.0 + step,
            "load_se": None,
        }
        for node, values in tenths.items()
        for step, value in enumerate(values)
    ]
    kinds = {"timestamp": pl.Datetime("us", "UTC"), "load_se": pl.Float64(), "step": pl.Int32()}
    return pl.DataFrame(rows, schema_overrides=kinds | {"level": pl.Int32()})


def figures(day, tenths, absent=()):
    return figures_of(rows_of(day, tenths, absent), "load", RESOLUTION)


def brute_force(question, series):
    """By the definitions: {(node, place of the last step): (answer in tenths, whether it happened)}."""
    found = {}
    for node, values in series.items():
        if not question.asks(node, LEVELS[node]):
            continue
        for last in range(question.window - 1, len(values)):
            window = [values[place] for place in range(last - question.window + 1, last + 1)]
            match question.kind:
                case "sum":
                    found[node, last] = sum(window), None
                case "low":
                    found[node, last] = sum(window), Fraction(sum(window), 10) <= question.bound
                case "jump":
                    change = window[-1] - window[0]
                    found[node, last] = change, Fraction(change, 10) >= question.bound
                case "drop":
                    change = window[0] - window[-1]
                    found[node, last] = change, Fraction(change, 10) >= question.bound
    return found


QUESTIONS = [
    Question("s", "sum", 3, nodes=("FR", "11")),
    Question("one", "sum", 1, level=1),
    Question("low", "low", 2, Fraction(3, 10), level=1),
    Question("below", "low", 4, Fraction(-1, 10), level=0),
    Question("up", "jump", 2, Fraction(3, 10), level=1),
    Question("down", "drop", 7, Fraction(3, 10), nodes=("84",)),
    Question("between", "jump", 3, Fraction(1, 4), level=0),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
@pytest.mark.parametrize("seed", range(4))
def test_every_window_is_answered_as_its_definition_says_across_midnight(question, seed):
    random = np.random.default_rng(seed)
    days = [{node: random.integers(-3, 5, size=length).tolist() for node in LEVELS} for length in (16, 4, 12)]
    series = {node: [value for day in days for value in day[node]] for node in LEVELS}
    wanted = brute_force(question, series)
    several = [figures(FIRST + timedelta(days=number), day) for number, day in enumerate(days)]
    found, before = {}, 0
    for number, day in enumerate(days):
        for row in answers([question], several[: number + 1], RESOLUTION).iter_rows(named=True):
            units = round(row["answer"] * 10)
            assert row["answer"] == units / 10
            found[row["node"], before + row["step"]] = units, row["happened"]
        before += len(day["FR"])
    assert found == wanted
    if question.kind != "sum":
        # the random values decide both ways, so a wrong border is seen
        assert {happened for _, happened in wanted.values()} == {True, False}


def test_a_border_that_floats_miss_is_decided_exactly():
    """0.1 + 0.2 is above 0.3 in floats; published tenths are not."""
    day = figures(FIRST, {"FR": [1, 2], "84": [1, 2], "11": [0, 0]})
    assert 0.1 + 0.2 > 0.3  # the control
    (answer,) = answers([Question("low", "low", 2, Fraction(3, 10), level=0)], [day], RESOLUTION).iter_rows(
        named=True
    )
    assert answer["happened"] is True


def test_a_slot_that_the_day_does_not_have_is_no_step_of_a_window():
    tenths = {node: [1, 2, 99, 99, 5] for node in LEVELS}
    day = figures(FIRST, tenths, absent=(2, 3))
    found = answers([Question("s", "sum", 2, level=0)], [day], RESOLUTION)
    assert found.select("step", "answer").rows() == [(1, 0.3), (4, 0.7)]


def test_windows_that_reach_before_the_first_day_or_a_node_that_was_not_there_are_missing():
    early = {node: [1, 1] for node in LEVELS if node != "11"}
    days = [figures(FIRST, early), figures(FIRST + timedelta(days=1), {node: [2, 2] for node in LEVELS})]
    found = answers([Question("s", "sum", 3, level=1)], days, RESOLUTION)
    assert found.select("node", "step", "answer").rows() == [("84", 0, 0.4), ("84", 1, 0.5)]
    assert answers([Question("s", "sum", 9, level=1)], days, RESOLUTION).height == 0
    assert dict(answers([Question("s", "sum", 9, level=1)], days, RESOLUTION).schema) == SCHEMA


def test_without_measurements_errors_are_bounded_by_the_steps_own():
    day = figures(FIRST, {node: [1, 2, 3, 4] for node in LEVELS})
    asked = [Question("s", "sum", 3, level=0), Question("j", "jump", 3, Fraction(1), level=0)]
    found = answers(asked, [day], RESOLUTION)
    assert found["answer_noise_se"].to_list() == [None] * 4
    assert found["answer_noise_se_at_most"].to_list() == [6.0, 9.0, 4.0, 6.0]
    assert found["answer_se_at_most"].null_count() == 4


def test_values_whose_sums_floats_do_not_hold_are_refused():
    with pytest.raises(ParameterError, match="too large for questions"):
        figures(FIRST, {node: [2**51, 2**51, 2**51, 2**51] for node in LEVELS})


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"name": ""}, "printable"),
        ({"name": "a\n"}, "printable"),
        ({"name": "a" * 65}, "at most 64"),
        ({"kind": "most"}, "one of sum, low, jump, drop"),
        ({"window": 0}, "at least 1 steps"),
        ({"window": True}, "at least 1 steps"),
        ({"kind": "jump", "bound": Fraction(1), "window": 1}, "at least 2 steps"),
        ({"bound": Fraction(1)}, "for all but a sum"),
        ({"kind": "low"}, "for all but a sum"),
        ({"kind": "drop", "bound": Fraction(0), "window": 2}, "greater than 0"),
        ({"nodes": ()}, "one of nodes and level"),
        ({"level": 1}, "one of nodes and level"),
        ({"nodes": ("a", "a")}, "once each"),
        ({"nodes": (), "level": -1}, "at least 0"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(changes, rule):
    with pytest.raises(ParameterError, match=rule):
        Question(**{"name": "q", "kind": "sum", "window": 3, "nodes": ("FR",), **changes})


def test_a_question_comes_back_from_its_document():
    for question in QUESTIONS:
        assert Question.from_document(question.name, question.to_document()) == question
        assert question.in_words("load", 30).endswith(".")
