"""Events as spans of time, by hand."""

from datetime import UTC, datetime, timedelta

import polars as pl

from optstream.catalogue.questions.runs import Run, runs_of

START = datetime(2016, 2, 1, tzinfo=UTC)


def answers(node, happened, question="drop", after=0):
    """A window a step of an hour, from so many steps after the start; None is a sum, which no event is."""
    return [
        {
            "question": question,
            "node": node,
            "timestamp": START + timedelta(hours=after + step),
            "happened": one,
        }
        for step, one in enumerate(happened)
    ]


def at(hour):
    return START + timedelta(hours=hour)


def test_windows_in_a_row_are_one_run_and_a_gap_in_time_ends_it():
    rows = [
        *answers("a", [True, True, False, True]),
        *answers("a", [True], after=6),  # hours 4 and 5 have no answers
        *answers("b", [False, False]),
        *answers("b", [None, None], question="sum"),
    ]
    assert runs_of(pl.DataFrame(rows)) == [
        Run("drop", "a", at(0), at(1), 2),
        Run("drop", "a", at(3), at(3), 1),
        Run("drop", "a", at(6), at(6), 1),
    ]


def test_a_document_says_its_instants_as_text():
    document = Run("drop", "a", at(0), at(1), 2).to_document()
    assert document == {
        **{"question": "drop", "node": "a", "windows": 2},
        **{"first": "2016-02-01T00:00:00+00:00", "last": "2016-02-01T01:00:00+00:00"},
    }
