"""What tests that release days do without, where they are of something else; imported by their conftest.py.

Great Expectations' verdicts were half of what a small day costs, three years of plans seconds for each
configuration. The tests of data_contracts, of documents and canaries take both as they are, those of faults
the verdicts.
"""

from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.expectations import Expectation
from polars import selectors

from data_contracts import judge as module
from optstream.stream import days_from
from tasks.plan import long_spans

SHORT_SPANS: dict[Any, Any] = {}
HOLDS: dict[Any, Any] = {}
"""The library's result of an expectation that holds for what it sees of a frame."""
IDENTITIES: dict[int, Any] = {}
VERDICTS: dict[Any, Any] = {}
PAGES: dict[Any, bytes] = {}
DOCUMENTS: dict[int, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def verdicts_once() -> Iterator[None]:
    """Ask the library once for each expectation and content of a frame, as far as the expectation sees it.

    Only that it holds is kept, and page and document of a frame for which all hold: what is broken is judged
    again.
    """
    kept, pages = VERDICTS, PAGES  # of all modules, but in place only while one that imports this runs
    real, real_page = module.validated, module.page_of
    real_document = ExpectationSuiteValidationResult.to_json_dict

    def validated(name, suite, metrics, result_format):
        seen = [(id(one), *_seen(one, metrics)) for one in suite]
        if (name, *seen) not in kept:
            known = [HOLDS[key][0] for key in seen if key in HOLDS]
            new = {key: one for key, one in zip(seen, suite, strict=True) if key not in HOLDS}
            if not new:  # each holds for something else: asked again, for a result to put them into
                known, new = [], dict(zip(seen, suite, strict=True))
            result = real(name, list(new.values()), metrics, result_format)
            answers = {module._identity(one.expectation_config): one for one in result.results}
            if len(answers) < len(new):  # two are alike
                return real(name, suite, metrics, result_format)
            for key, one in new.items():
                if (found := answers.get(_identity(one))) and found.success:
                    HOLDS[key] = found, suite  # which stays, so that no other expectation has its id
            result.results = [*known, *result.results]
            broken = sum(not one.success for one in result.results)
            result.statistics |= {
                "evaluated_expectations": len(suite),
                "successful_expectations": len(suite) - broken,
                "unsuccessful_expectations": broken,
                "success_percent": 100 * (1 - broken / len(suite)),
            }
            if not result.success:
                return result
            kept[name, *seen] = result, suite
        return copy(kept[name, *seen][0])

    def is_kept(result):
        return any(one.results is result.results for one, _ in kept.values())  # which copies share

    def page_of(result, arguments):
        place = (id(result.results), *arguments)
        if not is_kept(result):
            return real_page(result, arguments)
        if place not in pages:
            pages[place] = real_page(result, arguments)
        return pages[place]

    def to_json_dict(result):
        place = id(result.results)
        if not is_kept(result):
            return real_document(result)
        if place not in DOCUMENTS:
            DOCUMENTS[place] = real_document(result)
        return {**DOCUMENTS[place], "meta": dict(result.meta)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "validated", validated)
        patch.setattr(module, "page_of", page_of)
        patch.setattr(ExpectationSuiteValidationResult, "to_json_dict", to_json_dict)
        yield


@pytest.fixture
def whole_spans() -> None:
    """Plans for a month and a year are made for a month and a year; see `short_spans`."""


@pytest.fixture(autouse=True)
def short_spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements and dry runs tell of two and of five days instead of a month and a year."""
    if "whole_spans" in request.fixturenames:
        return
    monkeypatch.setattr(long_spans, "HORIZONS", (2, 5))
    monkeypatch.setattr(long_spans, "days_from", lambda first, _: days_from(first, first + timedelta(days=9)))
    monkeypatch.setattr(long_spans, "_made", SHORT_SPANS)


def _identity(expectation: Expectation) -> Any:
    if id(expectation) not in IDENTITIES:
        IDENTITIES[id(expectation)] = module._identity(expectation.configuration), expectation
    return IDENTITIES[id(expectation)][0]


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
