"""What tests that release days do without, where they are of something else; imported by their conftest.py.

Great Expectations' verdicts were half of what a small day costs, three years of plans seconds for each
configuration. The tests of data_contracts, of faults, of documents and canaries take both as they are.
"""

from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from great_expectations.expectations import Expectation
from polars import selectors

from data_contracts import judge as module
from optstream.stream import days_from
from tasks.contracts import judging
from tasks.planning import long_spans

SHORT_SPANS: dict[Any, Any] = {}
VERDICTS: dict[Any, Any] = {}
PAGES: dict[Any, bytes] = {}


@pytest.fixture(autouse=True, scope="module")
def verdicts_once() -> Iterator[None]:
    """Ask the library once for each content of a frame, as far as the suite's expectations see it.

    Only that all is well is kept, and its page: a frame of which something is broken is judged each time.
    """
    kept, pages = VERDICTS, PAGES  # of all modules, but in place only while one that imports this runs
    real, real_page = module.validated, judging.page_of

    def validated(name, suite, metrics, result_format):
        seen = (name, *((id(one), *_seen(one, metrics)) for one in suite))
        if seen not in kept:
            result = real(name, suite, metrics, result_format)
            if not result.success:
                return result
            kept[seen] = result, suite  # which stays, so that no other expectation has its id
        return copy(kept[seen][0])

    def page_of(result, told):
        place = (id(result.results), *told)  # which copies share
        if all(one.results is not result.results for one, _ in kept.values()):
            return real_page(result, told)
        if place not in pages:
            pages[place] = real_page(result, told)
        return pages[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "validated", validated)
        patch.setattr(judging, "page_of", page_of)
        yield


@pytest.fixture
def whole_spans() -> None:
    """What is planned for a month and a year is planned for a month and a year; see `short_spans`."""


@pytest.fixture(autouse=True)
def short_spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements and dry runs tell of two and of five days instead of a month and a year."""
    if "whole_spans" in request.fixturenames:
        return
    monkeypatch.setattr(long_spans, "HORIZONS", (2, 5))
    monkeypatch.setattr(long_spans, "days_from", lambda first, _: days_from(first, first + timedelta(days=9)))
    monkeypatch.setattr(long_spans, "_made", SHORT_SPANS)


def _seen(expectation: Expectation, metrics: pl.DataFrame) -> list[Any]:
    """All that its verdict can depend on: the values of the columns that it and its condition judge; of two
    that it compares, how they compare, and where each has none: to the library null and NaN are none.
    """
    frame = metrics.with_columns(selectors.float().fill_nan(None))
    fields = ("column", "column_A", "column_B")
    columns = [frame[getattr(expectation, one)] for one in fields if hasattr(expectation, one)]
    types = [str(column.dtype) for column in columns]
    if len(columns) > 1:
        first, second = columns
        columns = [first > second, first == second, first.is_null(), second.is_null()]
    condition = getattr(expectation, "row_condition", None)
    columns += [] if condition is None else [frame[condition.column.name]]
    assert columns, "of an expectation about the whole table it is not known what it depends on"
    return [*types, *((str(column.dtype), *column) for column in columns)]
