"""One page of Great Expectations' Data Docs, that fetches nothing when it is read."""

from collections.abc import Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

MOST_ROWS = 20
"""That a page shows of those for which an expectation does not hold; how many there are is always said."""
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
