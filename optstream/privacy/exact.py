"""Exact numbers: budgets are fractions, and a scale that becomes a float is rounded up."""

import math
import re
from collections.abc import Sequence
from dataclasses import fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any

import numpy as np

from optstream.errors import ParameterError

LONGEST_NUMBER, LONGEST_FRACTION, LARGEST_EXPONENT = 64, 200, 64
"""Most characters of a decimal, and of its exact form: an integer or a fraction."""
DIGITS = frozenset("+-/0123456789")
SIZES = (
    f"of at most {LONGEST_NUMBER} characters, {LONGEST_FRACTION} as a fraction, "
    f"0 or from 1e-{LARGEST_EXPONENT} to below 1e{LARGEST_EXPONENT + 1} in size"
)
_EXACT = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")
_NOT_EXACT = "an exact number is written as numerator or numerator/denominator"
Exact = int | str | Decimal | Fraction


class NumberSizeError(ParameterError):
    """A number's text or exponent is so long that it could fill the memory."""


def exact(value: object, name: str) -> Fraction:
    """Return a number as a Fraction, refusing floats (0.1 is not one tenth) and texts of unbounded size."""
    if isinstance(value, bool) or not isinstance(value, (str, Decimal, Rational)):
        raise ParameterError(f'{name} must be exact: an integer, or a string such as "0.1"; got {value!r}')
    try:
        # A long exponent ("1e999999999") would take all memory before any range is checked.
        if isinstance(value, str) and len(value) > (
            LONGEST_NUMBER if set(value) - DIGITS else LONGEST_FRACTION
        ):
            raise NumberSizeError(f"{name} must be a number {SIZES}; got {value!r:.80}")
        number = Decimal(value) if isinstance(value, str) and "/" not in value else plain(value)
        if isinstance(number, Decimal) and not number.is_finite():
            raise ValueError
        if isinstance(number, Decimal) and abs(number.adjusted()) > LARGEST_EXPONENT:
            raise NumberSizeError(f"{name} must be a number {SIZES}; got {value!r:.80}")
        return Fraction(number)
    except NumberSizeError:
        raise
    except (ValueError, ArithmeticError) as error:
        raise ParameterError(f'{name} must be a number such as "0.1" or "1/3"; got {value!r}') from error


def exact_from_text(text: object) -> Fraction:
    """Return a fraction of at least 0 from numerator or numerator/denominator; exponents are refused."""
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError(_NOT_EXACT)
    return _fraction(text)


# a year of hours says the same few numbers tens of thousands of times
_fraction = lru_cache(2**12)(Fraction)


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return an integer of a range, which has no upper bound where `most` is None."""
    value = plain(value)
    if type(value) is not int or value < least or (most is not None and value > most):
        legal = f"of at least {least}" if most is None else f"in [{least}, {most}]"
        raise ParameterError(f"{name} must be an integer {legal}; got {value!r}")
    return value


def one_of(value: object, name: str, legal: Sequence[str]) -> None:
    """Raise ParameterError, with the parameter's name, for anything but one of these texts."""
    if not isinstance(value, str) or value not in legal:
        listed = " or ".join(f'"{one}"' for one in legal)
        raise ParameterError(f"{name} must be {listed}; got {value!r}")


def plain(value: Any) -> Any:
    """Return Python's number for numpy's, which overflows in sums and which JSON lacks; also in tuples."""
    if type(value) is tuple:
        return tuple(plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


def make_plain(parameters: Any) -> None:
    """Put Python's own numbers in place of numpy's in the fields of a frozen dataclass that is being made."""
    for field in fields(parameters):
        object.__setattr__(parameters, field.name, plain(getattr(parameters, field.name)))


def round_up_to_float(value: Fraction) -> float:
    """Return the smallest float that is at least a noise scale: the loss alpha/scale can only shrink."""
    try:
        nearest = float(value)
    except OverflowError as error:
        raise ParameterError("a noise scale is too large for a float; epsilon is too small") from error
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def root_above(value: Fraction) -> float:
    """Return the smallest float whose square is at least a number above 0, or one of the two after it."""
    root = math.sqrt(round_up_to_float(value))
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


class Bounds:
    """Decimal arithmetic whose results are bounds from below (ROUND_FLOOR) or above (ROUND_CEILING)."""

    def __init__(self, rounding: str, n_digits: int = 60) -> None:
        self._context = Context(n_digits, rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)

    def decimal(self, value: Fraction) -> Decimal:
        return self._context.divide(Decimal(value.numerator), Decimal(value.denominator))

    def ln(self, value: Fraction) -> Decimal:
        return self._outward(self._context.ln(self.decimal(value)))

    def exp(self, value: Fraction) -> Decimal:
        return self._outward(self._context.exp(self.decimal(value)))

    def add(self, one: Decimal, other: Decimal) -> Decimal:
        return self._context.add(one, other)

    def divide(self, one: Decimal, other: Decimal) -> Decimal:
        return self._context.divide(one, other)

    def rounded(self, value: Decimal, n_digits: int) -> Decimal:
        return Context(n_digits, self._context.rounding, Emin=MIN_EMIN, Emax=MAX_EMAX).plus(value)

    def _outward(self, found: Decimal) -> Decimal:
        """Return a neighbour: decimal rounds logarithm and exponential to the nearest."""
        is_below = self._context.rounding == ROUND_FLOOR
        return self._context.next_minus(found) if is_below else self._context.next_plus(found)
