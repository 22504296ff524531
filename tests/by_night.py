"""Which cases `make test` tries, and on which database; the rest is tried by night."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(cases: Iterable[Any], n: int) -> list[Any]:
    """Return the cases, all but the first n marked to be tried by night."""
    return [
        pytest.param(case, marks=[] if number < n else [pytest.mark.nightly])
        for number, case in enumerate(cases)
    ]


def on_both(cases: Iterable[Any], n_on_sqlite: int, n_on_postgresql: int = 0) -> list[Any]:
    """Return pairs of a database, for the fixture `bench`, and a case; after n of each by night."""
    known = list(cases)
    return [
        pytest.param(database, *case.values, marks=case.marks)
        for database, n in {"sqlite": n_on_sqlite, "postgresql": n_on_postgresql}.items()
        for case in few(known, n)
    ]
