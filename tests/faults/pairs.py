"""Which cases are tried on which database: all on SQLite, a few on PostgreSQL, the rest there by night."""

from collections.abc import Iterable
from typing import Any

import pytest


def on_both(cases: Iterable[Any], n_on_postgresql: int = 1) -> list[Any]:
    """Return pairs of a database, for the fixture `bench`, and a case."""
    cases = list(cases)
    pairs = [pytest.param("sqlite", case) for case in cases]
    for number, case in enumerate(cases):
        marks = [] if number < n_on_postgresql else [pytest.mark.nightly]
        pairs.append(pytest.param("postgresql", case, marks=marks))
    return pairs
