"""Judging frames of metrics with Great Expectations, which decides. It takes 2 s to import: only runs do."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import great_expectations as gx
import polars as pl
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.expectations import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView
from polars import selectors
from tqdm.std import tqdm

from data_contracts.metrics import KEYS
from optstream.errors import ContractError

WHOLE = {"result_format": "COMPLETE", "unexpected_index_column_names": KEYS}
"""Every row for which an expectation does not hold, by day and region."""


Identity = tuple[str, tuple[str, ...], bool]
"""Of an expectation: its type, its columns, whether it stops a day."""


@dataclass(frozen=True)
class Contract:
    """A built-in suite."""

    name: str
    suite: tuple[Expectation, ...]

    @cached_property
    def structural(self) -> frozenset[str]:
        """The columns that may stop a day: where one has a gap, nothing is judged."""
        stopping = (one.configuration for one in self.suite if _stops(one.configuration))
        return frozenset(column for one in stopping for column in columns_of(one))

    @cached_property
    def identities(self) -> list[Identity]:
        """Of the suite's expectations: the library builds a configuration at each call."""
        return [_identity(one.configuration) for one in self.suite]


@dataclass(frozen=True)
class Broken:
    """An expectation that does not hold for a row, with the remedy in `says`."""

    day: str
    region: str
    column: str
    value: Any
    says: Any
    about: str
    alarm: bool


def judge(contract: Contract, metrics: pl.DataFrame) -> tuple[ExpectationSuiteValidationResult, list[Broken]]:
    """Return the library's result and the broken rules; ContractError for an unjudged structural column."""
    name = contract.name
    if metrics.is_empty():
        raise ContractError(f"the contract {name!r} was not judged: there is no row of metrics")
    gaps = metrics.with_columns(selectors.float().fill_nan(None)).null_count().row(0, named=True)
    if "file_fault" in gaps:
        gaps["file_fault"] = 0  # null says that there is none
    # a null is no number, and the library would pass it
    empty = [column for column in sorted(contract.structural) if gaps.get(column, 1)]
    if empty:
        raise ContractError(
            f"the contract {name!r} was not judged: no metric in some row of {', '.join(empty)}"
        )
    result = validated(name, contract.suite, metrics, WHOLE)
    _check_evaluated(contract, result)
    failing = sorted(
        (one for one in result.results if not one.success),
        key=lambda one: contract.identities.index(_identity(one.expectation_config)),
    )
    return result, [broken for one in failing for broken in _rows(one)]


def validated(
    name: str, suite: Sequence[Expectation], metrics: pl.DataFrame, result_format: dict[str, Any]
) -> ExpectationSuiteValidationResult:
    """Return the library's own result of a suite on a frame; in the given format where something fails."""
    own = gx.ExpectationSuite(name=name, expectations=list(suite))
    batch = _batches().get_batch({"dataframe": metrics.to_pandas()})
    result = batch.validate(own, result_format="BOOLEAN_ONLY")
    if not result.success:  # which rows is twice the work
        result = batch.validate(own, result_format=result_format)
    return result


def raised(information: Any) -> bool:
    """Return whether exception information, which comes flat or by metric, tells of one."""
    if not isinstance(information, dict) or not information:
        return False
    if "raised_exception" in information:
        return bool(information["raised_exception"])
    return any(raised(entry) for entry in information.values())


def columns_of(configuration: Any) -> tuple[str, ...]:
    """Return the columns of the frame that an expectation is about; none for one about the table."""
    kwargs = configuration.kwargs
    listed = kwargs.get("column_list") or ()
    return (*(kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs), *listed)


def _check_evaluated(contract: Contract, result: ExpectationSuiteValidationResult) -> None:
    """The library drops an expectation that it does not know, and passes an empty suite."""
    failed = f"the contract {contract.name!r} was not judged: "
    results: Sequence[Any] = result.results
    for one in results:
        if raised(one.exception_info) or not isinstance(one.success, bool):
            raise ContractError(f"{failed}{one.expectation_config.type} could not be evaluated")
    if sorted(_identity(one.expectation_config) for one in results) != sorted(contract.identities):
        raise ContractError(f"{failed}its expectations were not all evaluated, each once")


def _rows(failing: Any) -> Iterator[Broken]:
    configuration = failing.expectation_config
    column, *_ = columns_of(configuration)
    for row in failing.result["unexpected_index_list"]:
        yield Broken(
            row["day"],
            row["region"],
            column,
            row[column],
            configuration.meta["says"],
            configuration.meta.get("about", ""),
            not _stops(configuration),
        )


def _identity(configuration: Any) -> Identity:
    return configuration.type, columns_of(configuration), _stops(configuration)


def _stops(configuration: Any) -> bool:
    return FailureSeverity(configuration.severity) is FailureSeverity.CRITICAL


@cache
def _batches() -> BatchDefinition[Any]:
    """Where frames go: a context in memory, silent."""
    # It takes the lock of its progress bars even where they are off. The one that tqdm makes is shared by all
    # processes that are forked from here: one that is killed while it holds it would stop all others.
    tqdm.set_lock(RLock())
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}  # type: ignore[assignment]  # GX types an object where it reads a mapping
    asset = context.data_sources.add_pandas("metrics").add_dataframe_asset("metrics")
    return asset.add_batch_definition_whole_dataframe("all")


# One page of Great Expectations' Data Docs, that fetches nothing when it is read.

MOST_ROWS = 20  # of those for which an expectation does not hold, on a page, which states how many there are
OF_ALL_ROWS = ("unexpected_list", "unexpected_index_list")


class _OfflineView(DefaultJinjaPageView):
    """The library's sections in a page of ours: its own page loads styles and scripts from other hosts."""

    _template = "data_docs.html"  # by its ending the texts in it are escaped


def page_of(result: ExpectationSuiteValidationResult, lines: Sequence[str]) -> bytes:
    """Return the page of a validation result. lines: above it."""
    renderer: Any
    view: Any
    renderer, view = _renderers()
    text: str = view.render(renderer.render(_shortened(result)), lines=lines)
    return text.encode()


def _shortened(result: ExpectationSuiteValidationResult) -> ExpectationSuiteValidationResult:
    """Return the result with the first rows of those that fail: a page does not grow with the leaves."""
    shorter = copy(result)
    shorter.results = [copy(one) for one in result.results]
    every: Any = shorter.results
    for one in every:
        one.result = {
            key: value[:MOST_ROWS] if key in OF_ALL_ROWS else value
            for key, value in one.result.items()
            if key != "unexpected_index_query"  # it names all of them, too
        }
    return shorter


@cache
def _renderers() -> tuple[ValidationResultsPageRenderer, _OfflineView]:
    templates = str(Path(__file__).parent / "templates")
    return ValidationResultsPageRenderer(), _OfflineView(custom_views_directory=templates)
