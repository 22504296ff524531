"""One page of Great Expectations' Data Docs, that fetches nothing when it is read."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView


class _OfflineView(DefaultJinjaPageView):
    """The library's sections in a page of ours: its own page loads styles and scripts from other hosts."""

    _template = "data_docs.html"  # by its ending the texts in it are escaped


def page_of(result: ExpectationSuiteValidationResult, told: Sequence[str]) -> bytes:
    """Return the page of a validation result. told: lines above it."""
    renderer: Any
    view: Any
    renderer, view = _renderers()
    text: str = view.render(renderer.render(result), told=told)
    return text.encode()


@cache
def _renderers() -> tuple[ValidationResultsPageRenderer, _OfflineView]:
    templates = str(Path(__file__).parent / "templates")
    return ValidationResultsPageRenderer(), _OfflineView(custom_views_directory=templates)
