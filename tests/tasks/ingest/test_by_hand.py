"""Whole days read by hand, and verdicts that are kept."""

import shutil
from copy import copy
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from great_expectations.expectations import (
    ExpectColumnPairValuesAToBeGreaterThanB,
    ExpectColumnPairValuesToBeEqual,
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.row_conditions import Column
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_contracts import judge
from optstream.measurement.sums import open_private_period
from tasks.ingest import customers as people
from tasks.ingest import rows as cells
from tasks.ingest.arrivals import EVERY
from tasks.trusted import judging
from tests.tasks.ingest.by_hand import Row, ingest_by_hand

DAYS = [date(2025, 1, 15), date(2025, 3, 30), date(2025, 10, 26)]
LONG = "a customer with a name of many characters "
NAMES = ["1", "2", "01", "12345678901234", "-7"]
TEXTS = [*NAMES, "", " ", "é", LONG + "1", LONG + "2"]
TIES = [
    "0",
    "0.0005",
    "0.0015",
    "0.345",
    "1.0005",
    "2.675",
    "99.9995",
    "100",
    "100.0004",
    "-0.0004",
    "-5",
    "1e9",
]
ODD = [None, float("nan"), float("inf"), float("-inf")]
RULES = ["no_customer", "no_timestamp", "outside_day", "two_leaves", "duplicates", "absent"]
RULES += ["infinite", "out_of_bounds", "steps_found"]


@st.composite
def files(draw):
    """One file: rows (customer, step, reading as text or odd float), and how it is written."""
    kind = draw(st.sampled_from(["text", "category", "integer"]))
    names = st.sampled_from([name for name in NAMES if name != "01"] if kind == "integer" else TEXTS)
    values = draw(st.sampled_from([pl.Float64, pl.Float32, pl.Decimal(20, 4)]))
    readings = st.sampled_from([None, *TIES] if values == pl.Decimal(20, 4) else [*ODD, *TIES])
    nobody, nowhere = draw(st.booleans()) and draw(st.booleans()), draw(st.booleans()) and draw(st.booleans())
    customers = st.none() | names if nobody else names
    steps = st.sampled_from([None, -1, 0, 1, 45, 46, 47, 48, 49, 50]) if nowhere else st.integers(0, 3)
    rows = draw(st.lists(st.tuples(customers, steps, readings), min_size=0, max_size=12))
    return kind, values, draw(st.integers(1, 5)), rows


def frame_of(stream, day, kind, values, rows):
    first = stream.settings.calendar.utc_times(day)[0]
    stamps = [None if step is None else first + timedelta(minutes=30) * step for _, step, _ in rows]
    types = {"text": pl.String, "category": pl.Categorical, "integer": pl.Int64}
    if values == pl.Decimal(20, 4):
        read = pl.Series([None if text is None else Decimal(text) for *_, text in rows], dtype=values)
    else:
        read = pl.Series([text if text is None else float(text) for *_, text in rows], dtype=pl.Float64)
    return pl.DataFrame(
        {
            "timestamp": pl.Series(stamps, dtype=pl.Datetime("us", "UTC")),
            "load": read.cast(values),
            "customer_id": pl.Series([name for name, *_ in rows], dtype=pl.String).cast(types[kind]),
        }
    )


def as_delivered(values, rows):
    """The rows as the rules see them: a float is its shortest decimal."""
    for name, step, text in rows:
        if isinstance(text, str):
            shortest = str(np.float32(text)) if values == pl.Float32 else text
            yield Row(name, step, Fraction(Decimal(shortest)))
        else:
            yield Row(name, step, text)


def whole_day(n_steps, region):
    """A file that gives every step a row, so that the day has no structural fault of its own."""
    return "text", pl.Float64, 7, [(f"keeper of {region}", step, "0.25") for step in range(n_steps)]


def check(stream, day, leaves):
    shutil.rmtree(stream.settings.input_folder, ignore_errors=True)
    for region, delivered in zip(stream.settings.tree_of(date.min).leaves, leaves, strict=True):
        for number, (kind, values, row_group_size, rows) in enumerate(delivered):
            frame = frame_of(stream, day, kind, values, rows)
            folder, name = region, f"part-{number}.parquet"
            if stream.settings.input.region is not None:
                folder, name = EVERY, f"part-{number}-{region}.parquet"
                frame = frame.with_columns(zone=pl.lit(region))
            path = stream.write(folder, frame, day, name)
            frame.write_parquet(path, row_group_size=row_group_size)
    (ingested,) = stream.ingest(day)
    by_hand = [[list(as_delivered(values, rows)) for _, values, _, rows in delivered] for delivered in leaves]
    n_steps = stream.settings.calendar.n_steps(day)
    units, counts = ingest_by_hand(
        by_hand, n_steps, stream.settings.privacy.bounds, stream.settings.privacy.resolution
    )
    for leaf, found in enumerate(ingested.metrics.iter_rows(named=True)):
        assert {rule: found[rule] for rule in RULES} == {rule: counts[leaf][rule] for rule in RULES}
    assert np.array_equal(open_private_period(ingested.period), units)


@pytest.fixture(params=["", 'region = "zone"'], ids=["a folder for each leaf", "one folder"])
def stream(small, request):
    return small(schema="metered", marker=request.param)


WITHOUT_PAUSE = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@WITHOUT_PAUSE
@given(day=st.sampled_from(DAYS), data=st.data(), whole=st.sampled_from([True, True, True, False]))
@pytest.mark.slow
def test_any_dump_counts_as_by_hand(stream, day, data, whole):
    n_steps = stream.settings.calendar.n_steps(day)
    leaves = [data.draw(st.lists(files(), min_size=1, max_size=3)) for _ in range(2)]
    if whole:
        leaves = [[*own, whole_day(n_steps, leaf)] for leaf, own in enumerate(leaves)]
    check(stream, day, leaves)


@WITHOUT_PAUSE
@given(data=st.data())
@pytest.mark.nightly
def test_who_is_suspected_for_another_is_not_dropped(stream, few_at_a_time, data):
    """With hashes of two bits everybody meets somebody; and suspects are judged a few at a time."""
    leaves = [
        [*data.draw(st.lists(files(), min_size=1, max_size=3)), whole_day(48, leaf)] for leaf in range(2)
    ]
    check(stream, DAYS[0], leaves)


@pytest.fixture
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(people, "HASH", 3 << 62)
    monkeypatch.setattr(people, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(cells, "BYTES_A_PLAN", 2000)


def test_a_dump_delivered_twice_counts_once(stream):
    rows = [(name, step, "0.345") for name in TEXTS for step in range(48)]
    once = [("text", pl.Float64, 50, rows)]
    check(stream, DAYS[0], [once + once, [whole_day(48, 1)]])
    check(stream, DAYS[0], [once, once])


EQUAL = ExpectColumnPairValuesToBeEqual(column_A="a", column_B="b")
ABOVE = ExpectColumnPairValuesAToBeGreaterThanB(column_A="a", column_B="b")
POSITIVE = ExpectColumnValuesToBeBetween(column="a", min_value=1, row_condition=Column("c").is_null())
NAN = float("nan")


def holds(expectation, columns):
    result = judge.validated("any", (expectation,), pl.DataFrame(columns), {"result_format": "COMPLETE"})
    return result.success


@pytest.mark.parametrize(
    ("expectation", "good", "bad"),
    [
        (EQUAL, {"a": [1.0, None], "b": [1.0, None]}, {"a": [1.0, None], "b": [1.0, 5.0]}),
        (ABOVE, {"a": [6.0], "b": [5.0]}, {"a": [NAN], "b": [5.0]}),
        (POSITIVE, {"a": [1, 0], "c": [None, "bad"]}, {"a": [1, 0], "c": [None, None]}),
    ],
)
def test_a_kept_verdict_hides_no_other(expectation, good, bad):
    assert holds(expectation, good)
    assert not holds(expectation, bad)
    assert holds(expectation, good)


def test_what_is_kept_has_the_lines_and_the_meta_that_it_is_asked_for():
    given = ("any", (EQUAL,), pl.DataFrame({"a": [1], "b": [1]}), {})
    first, again = judge.validated(*given), judge.validated(*given)
    assert first.results is again.results
    assert b"of one day" in judging.page_of(first, ["of one day"])
    page = judging.page_of(again, ["of another"])
    assert b"of another" in page
    assert b"of one day" not in page
    first.meta, again.meta = {"of": "one day"}, {"of": "another"}
    one, other = first.to_json_dict(), again.to_json_dict()
    assert (one["meta"], other["meta"]) == ({"of": "one day"}, {"of": "another"})
    fresh = copy(again)
    fresh.results = list(again.results)
    assert other == fresh.to_json_dict()  # the library's own


def test_beside_what_is_kept_the_rest_is_asked_and_the_result_is_of_the_whole_suite():
    suite, good = (EQUAL, POSITIVE), {"a": [7], "b": [7], "c": [None]}
    assert judge.validated("both", suite, pl.DataFrame(good), {}).success
    bad = pl.DataFrame({"a": [0], "b": [0], "c": [None]})  # equal as before, and no longer positive
    result = judge.validated("both", suite, bad, {"result_format": "COMPLETE"})
    assert [one.success for one in result.results] == [True, False]
    assert result.results[1].result["unexpected_list"] == [0]
    assert (result.success, result.statistics["unsuccessful_expectations"]) == (False, 1)
