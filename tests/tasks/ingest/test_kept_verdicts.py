"""The verdicts that tests keep, `tests.cheap_days`: only for frames that cannot be judged otherwise."""

from copy import copy

import polars as pl
import pytest
from great_expectations.expectations import (
    ExpectColumnPairValuesAToBeGreaterThanB,
    ExpectColumnPairValuesToBeEqual,
    ExpectColumnValuesToBeBetween,
)
from great_expectations.expectations.row_conditions import Column

from data_contracts import judge
from tasks.trusted import judging

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


def test_a_kept_page_has_the_lines_that_it_is_asked_for():
    given = ("any", (EQUAL,), pl.DataFrame({"a": [1], "b": [1]}), {})
    first, again = judge.validated(*given), judge.validated(*given)
    assert first.results is again.results
    assert b"of one day" in judging.page_of(first, ["of one day"])
    page = judging.page_of(again, ["of another"])
    assert b"of another" in page
    assert b"of one day" not in page


def test_a_kept_document_is_the_library_s_with_the_meta_that_it_is_asked_for():
    given = ("any", (EQUAL,), pl.DataFrame({"a": [1], "b": [1]}), {})
    first, again = judge.validated(*given), judge.validated(*given)
    first.meta, again.meta = {"of": "one day"}, {"of": "another"}
    one, other = first.to_json_dict(), again.to_json_dict()
    assert (one["meta"], other["meta"]) == ({"of": "one day"}, {"of": "another"})
    fresh = copy(again)
    fresh.results = list(again.results)
    assert other == fresh.to_json_dict()


def test_beside_what_is_kept_the_rest_is_asked_and_the_result_is_of_the_whole_suite():
    suite, good = (EQUAL, POSITIVE), {"a": [7], "b": [7], "c": [None]}
    assert judge.validated("both", suite, pl.DataFrame(good), {}).success
    bad = pl.DataFrame({"a": [0], "b": [0], "c": [None]})  # equal as before, and no longer positive
    result = judge.validated("both", suite, bad, {"result_format": "COMPLETE"})
    assert [one.success for one in result.results] == [True, False]
    assert result.results[1].result["unexpected_list"] == [0]
    assert (result.success, result.statistics["unsuccessful_expectations"]) == (False, 1)
