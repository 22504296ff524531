"""Exact numbers: budgets are fractions, and a scale that becomes a float is rounded up."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

from optstream.errors import ParameterError

_EXACT = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")
Exact = int | str | Decimal | Fraction


def exact(value: object, name: str) -> Fraction:
    """Return `value` as a Fraction, refusing what is not exact.

    Accepts int, str ("0.1", "1/3"), Decimal and Fraction. A float is refused: 0.1 as a float is not
    one tenth. Raises ParameterError, naming `name`.
    """
    if isinstance(value, bool) or not isinstance(value, (str, Decimal, Rational)):
        raise ParameterError(f'{name} must be exact: an integer, or a string such as "0.1"; got {value!r}')
    try:
        # A long exponent ("1e999999999") would take all memory before any range is checked.
        if isinstance(value, str) and len(value) > 64:
            raise ValueError
        number = Decimal(value) if isinstance(value, str) and "/" not in value else value
        if isinstance(number, Decimal) and (not number.is_finite() or abs(number.adjusted()) > 64):
            raise ValueError
        return Fraction(number)
    except (ValueError, ArithmeticError) as error:
        raise ParameterError(f'{name} must be a number such as "0.1" or "1/3"; got {value!r}') from error


def exact_from_text(text: object) -> Fraction:
    """Return a fraction of at least 0 from its own text; an exponent, which could fill the memory, is
    refused.

    Raises ValueError, or ZeroDivisionError.
    """
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError("an exact number is written as numerator or numerator/denominator")
    return Fraction(text)


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return an integer in [least, most]. Raises ParameterError naming it, its range and what it got."""
    if type(value) is not int or value < least or (most is not None and value > most):
        legal = f"of at least {least}" if most is None else f"in [{least}, {most}]"
        raise ParameterError(f"{name} must be an integer {legal}; got {value!r}")
    return value


def round_up_to_float(value: Fraction) -> float:
    """Return the smallest float that is at least `value`. Raises ParameterError on overflow.

    A noise scale may only grow by rounding: then the loss alpha/scale can only shrink.
    """
    try:
        nearest = float(value)
    except OverflowError as error:
        raise ParameterError("a noise scale is too large for a float; epsilon is too small") from error
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
