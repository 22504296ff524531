"""Amounts of privacy as the functions of this package take them: scalars or arrays, and the same out."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError

Floats = NDArray[np.float64]
Amounts = TypeVar("Amounts", float, Floats)
"""A float or an array of floats; a list or an exact number is taken too, and comes out as its like."""


def checked(amounts: ArrayLike, name: str) -> Floats:
    """Return the amounts as floats of their own shape. Raises ParameterError where one is not finite or below
    0. name: of the parameter, for the error.
    """
    try:
        given = np.asarray(amounts, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, at least 0") from None
    wrong = ~(np.isfinite(given) & (given >= 0))
    if wrong.any():
        raise ParameterError(f"{name} must be finite and at least 0; got {float(given[wrong].flat[0])}")
    return given


def checked_series(epsilons: ArrayLike) -> Floats:
    """Return the same, one a step, (n_steps,): a scalar is a series of one. Raises ParameterError as
    `checked`, and for more dimensions.
    """
    given = checked(epsilons, "epsilons")
    if given.ndim > 1:
        raise ParameterError(f"epsilons must be a number or have one dimension, steps; got {given.ndim}")
    return np.atleast_1d(given)


def checked_number(amount: ArrayLike, name: str) -> float:
    """Return one amount as a float. Raises ParameterError for an array, or as `checked`."""
    given = checked(amount, name)
    if given.ndim:
        raise ParameterError(f"{name} must be one number; got an array")
    return float(given)


def shaped_as(result: Floats, given: Amounts) -> Amounts:
    """Return the result as a float where the amounts that it was computed from were a scalar, else as the
    array that it is.
    """
    if isinstance(given, np.ndarray) or np.ndim(given):
        return result  # type: ignore[return-value]  # mypy: no type variable says list in, array out
    return float(result.reshape(-1)[0])
