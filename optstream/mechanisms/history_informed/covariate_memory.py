"""What periods remember of public covariates: the values that a night knew, never those that came after."""

from collections.abc import Mapping, Sequence
from typing import Any

from optstream.stream import Measured
from optstream.stream.covariate import Covariate

MOST_LATE = 3
"""Periods, the last ones, from which a new estimate takes a covariate's values."""
COVARIATES, LATE = "covariates", "late covariates"
"""In a state on its way to a draw, and in `Measured.before`: values that tell the period's own day; those of
others, for new estimates of the days before.
"""


def covariates_of(covariates: Sequence[Covariate], day: int, history_days: int) -> dict[str, Any]:
    """Return what the night that releases a day knows, as a part of its state: covariates that tell the day
    itself, and others apart; nothing where none are public. Free.

    day: on the public clock. history_days: how far back estimates look.
    """
    known = [found for one in covariates if (found := one.public(day, history_days)) is not None]
    parts = {
        COVARIATES: [one.to_document() for one in known if one.tells(day)],
        LATE: [one.to_document() for one in known if not one.tells(day)],
    }
    return {key: documents for key, documents in parts.items() if documents}


def used_covariates(*measured: Measured, day: int | None = None) -> dict[str, Any]:
    """Return the newest values of each covariate that the last of these periods, in order, knew, as a part of
    a state; free.

    Of a covariate that it went without, those that one of the few periods before it knew. day: if given, also
    what was public too late for the periods' own estimates, but tells this day.
    """
    newest: dict[str, Any] = {}
    for period in measured[-MOST_LATE:]:
        before = period.before or {}
        late = before.get(LATE, ())
        told = [one for one in late if day is not None and Covariate.from_document(one).tells(day)]
        newest |= {one["name"]: one for one in (*told, *before.get(COVARIATES, ()))}
    return {COVARIATES: list(newest.values())} if newest else {}


def late_part(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a state holds for new estimates of the days before; free."""
    return {LATE: state[LATE]} if state and LATE in state else {}
