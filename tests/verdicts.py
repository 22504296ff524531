"""Verdicts of Great Expectations that tests of other things share: judging is half of a small day."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import polars as pl
import pytest
from great_expectations.expectations import Expectation

from data_contracts import judge as module


@contextmanager
def kept_verdicts() -> Iterator[None]:
    """Ask the library once for each content of a frame, as far as the suite's expectations see it.

    Only that all is well is kept: a frame of which something is broken is judged each time.
    """
    kept: dict[Any, Any] = {}
    real = module.validated

    def validated(name, suite, metrics, result_format):
        seen = (name, *((id(one), *_seen(one, metrics)) for one in suite))
        if seen not in kept:
            result = real(name, suite, metrics, result_format)
            if not result.success:
                return result
            kept[seen] = result, suite  # which stays, so that no other expectation has its id
        return copy(kept[seen][0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "validated", validated)
        yield


def _seen(expectation: Expectation, metrics: pl.DataFrame) -> list[Any]:
    """The columns that it judges; of two that it compares, how they compare."""
    fields = ("column", "column_A", "column_B")
    columns = [metrics[getattr(expectation, one)] for one in fields if hasattr(expectation, one)]
    if len(columns) > 1:
        first, second = columns
        columns = [first > second, first == second]
    return [(str(column.dtype), *column) for column in columns]
