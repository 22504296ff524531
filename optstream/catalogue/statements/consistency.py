"""How near a release's values are to the optimum of the bounded program that made them add up."""

import math
from collections.abc import Mapping
from decimal import ROUND_UP, Context, Decimal
from typing import Any

from optstream.estimation.optimality import Optimality

LEAST = 1e-18
"""Figures below it say no more than that the last digits are exact, and differ between processors."""
ONE_DIGIT = Context(prec=1, rounding=ROUND_UP)


def rounded(optimality: Optimality) -> Optimality:
    """Return the certificate of an estimate as a release states it.

    Gap and residual are rounded up to one digit and to `LEAST` or its root at least, so that another
    processor's last bits make no other statement.
    """
    return Optimality(
        _up(max(optimality.gap, LEAST)),
        _up(max(optimality.residual, math.sqrt(LEAST))),
        optimality.rounds,
        optimality.converged,
    )


def consistency_in_words(optimality: Optimality) -> str:
    """Return what the certificate says, in a sentence or two."""
    distance = f"{_up(optimality.distance):g}"
    if optimality.converged:
        return (
            "Values lay below the lower bound, so the program that raises them was solved: every value, and "
            f"every sum of values, is within {distance} of its own standard error of the optimum."
        )
    return (
        "Values lay below the lower bound, and the program that raises them was not solved to the end: nodes "
        f"add up and respect the bound, but a value may be {distance} of its own standard errors from the "
        "optimum."
    )


def to_document(optimality: Optimality) -> dict[str, Any]:
    """Return a JSON-ready document of a certificate that was `rounded`."""
    return {
        "gap": optimality.gap,
        "distance": _up(optimality.distance),
        "residual": optimality.residual,
        "rounds": optimality.rounds,
        "converged": optimality.converged,
        "in_words": consistency_in_words(optimality),
    }


def from_document(document: Mapping[str, Any]) -> Optimality:
    """Read back what `to_document` wrote; its distance and words are not read.

    Raises:
        KeyError, TypeError, ValueError: for anything else.
    """
    gap, residual = float(document["gap"]), float(document["residual"])
    rounds, converged = document["rounds"], document["converged"]
    if not (0 <= gap < math.inf and 0 <= residual < math.inf):
        raise ValueError("gap and residual must be finite and at least 0")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError("rounds must be a number of rounds")
    if not isinstance(converged, bool):
        raise ValueError("converged must be true or false")
    return Optimality(gap, residual, rounds, converged)


def _up(figure: float) -> float:
    return float(ONE_DIGIT.create_decimal(Decimal(repr(figure))))
