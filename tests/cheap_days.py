"""What tests that release days do without where they are of something else; warm libraries."""

import re
import tempfile
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
from tasks.release import mechanism

SHORT_SPANS: dict[Any, Any] = {}
VERDICTS: dict[Any, Any] = {}
PAGES: dict[Any, bytes] = {}
DOCUMENTS: dict[int, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def verdicts_once() -> Iterator[None]:
    """Judge a frame once, as far as its expectations see it; keep result, page and document if all hold."""
    kept, pages = VERDICTS, PAGES  # of all modules, but in place only while one that imports this runs
    real, real_page = module.validated, module.page_of
    real_document = ExpectationSuiteValidationResult.to_json_dict

    def validated(name, suite, metrics, result_format):
        seen = [(id(one), *_seen(one, metrics)) for one in suite]
        if (name, *seen) not in kept:
            result = real(name, suite, metrics, result_format)
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
    """Statements and dry runs tell of one and of two days instead of a month and a year."""
    if "whole_spans" in request.fixturenames:
        return
    monkeypatch.setattr(mechanism, "HORIZONS", (1, 2))
    monkeypatch.setattr(mechanism, "days_from", lambda first, _: days_from(first, first + timedelta(days=3)))
    monkeypatch.setattr(mechanism, "_made", SHORT_SPANS)


def _seen(expectation: Expectation, metrics: pl.DataFrame) -> list[Any]:
    """What its verdict depends on: values of its columns and condition; of two columns how they compare."""
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


def warm_libraries() -> None:
    """Judge, open a ledger and read the pages' templates. Begins none of polars' threads."""
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401
    import great_expectations as gx
    import pandas

    from data_contracts.judge import _batches, page_of
    from optstream.catalogue import metadata, statement
    from optstream.ledger import open_ledger
    from tasks.pages import render

    # the library imports and compiles much only when it first judges
    kept_in_range = gx.expectations.ExpectColumnValuesToBeBetween(column="a", min_value=0)
    batch = _batches().get_batch({"dataframe": pandas.DataFrame({"a": [0]})})
    result = batch.validate(
        gx.ExpectationSuite(name="warm", expectations=[kept_in_range]), result_format="BOOLEAN_ONLY"
    )
    page_of(result, ())
    statement._sentences()
    with tempfile.TemporaryDirectory() as folder:
        open_ledger(f"sqlite:///{folder}/ledger.sqlite").close()
    for environment in (render._environment(), metadata._environment()):
        for template in environment.list_templates(filter_func=re.compile(r".*\.\w+\.jinja").match):
            environment.get_template(template)


def plan_few_days() -> None:
    """In this process, plan for days where a month and a year are planned for."""
    mechanism.HORIZONS = (2, 5)
    mechanism.days_from = lambda first, _: days_from(first, first + timedelta(days=9))
