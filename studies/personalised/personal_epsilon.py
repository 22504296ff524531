"""Customers with epsilons and windows of their own: who is left out, so that one noise does for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache

from optstream.errors import ParameterError
from optstream.privacy.exact import Bounds, Exact, exact, whole

CHANCE_UNITS = 2**62
"""Chances are whole multiples of one part of so many."""
LARGEST_EPSILON = 10**6
"""Of a class: more protects nobody, and its exponential is no number any more."""


@dataclass(frozen=True)
class CustomerClass:
    """Customers who asked for the same privacy guarantee; who is in which class is public.

    Attributes:
        name: Of the class.
        n_customers: How many there are, public; decides how much is left out, never what is guaranteed.
            Counts above it are cut to it.
        epsilon: Exact, in (0, 10^6]; the most that any window of the class may lose.
        window_length: Steps of its windows.

    Raises:
        ParameterError: For a number outside its range.
    """

    name: str
    n_customers: int
    epsilon: Fraction
    window_length: int

    def __init__(self, name: str, n_customers: int, epsilon: Exact, window_length: int) -> None:
        amount = exact(epsilon, "epsilon of CustomerClass")
        if not 0 < amount <= LARGEST_EPSILON:
            raise ParameterError(f"epsilon of CustomerClass must lie in (0, 10^6]; got {epsilon!r}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "epsilon", amount)
        for field, given in (("n_customers", n_customers), ("window_length", window_length)):
            object.__setattr__(self, field, whole(given, f"{field} of CustomerClass", 1))


@lru_cache(maxsize=4096)
def chance_units(epsilon: Fraction, threshold: Fraction) -> int:
    """Return the chance that a customer takes part in an answer, in parts of `CHANCE_UNITS`, rounded down.

    The most parts c with c / CHANCE_UNITS <= (e^epsilon - 1) / (e^threshold - 1); all where the threshold is
    no larger than epsilon. Both are above 0. Privacy: Lemma 22 (docs/privacy.md): whoever takes part with at
    most this chance in an answer that costs `threshold` of one who takes part for certain loses `epsilon`.
    """
    if threshold <= epsilon:
        return CHANCE_UNITS
    low, high = Bounds(ROUND_FLOOR), Bounds(ROUND_CEILING)
    least, most = (
        bound.add(bound.exp(one), Decimal(-1)) for bound, one in ((low, epsilon), (high, threshold))
    )
    chance = low.divide(least, most)
    return max(int(low.multiply(Fraction(chance), Fraction(CHANCE_UNITS))), 0)


def squared_error(offers: Sequence[Fraction], sizes: Sequence[int], threshold: Fraction) -> float:
    """Return what leaving customers out and the noise of the others do to a count, as a mean square; free:
    variance and squared bias of the sample, and 2 / threshold^2.

    The count is taken to hold all customers, as in the paper: with fewer in it, less is lost. offers: what
    each class may lose by the answer. sizes: how many customers each has.
    """
    variance = left_out = 0.0
    for offer, size in zip(offers, sizes, strict=True):
        chance = chance_units(offer, threshold) / CHANCE_UNITS
        variance += size * chance * (1 - chance)
        left_out += size * (1 - chance)
    return variance + left_out**2 + 2 / float(threshold) ** 2


def best_threshold(offers: Sequence[Fraction], sizes: Sequence[int]) -> tuple[Fraction, float]:
    """Return the epsilon at which an answer errs least, of those that are offered, each > 0, and the root of
    its mean square error; free, from public facts. Arguments as `squared_error`.

    Source: Du et al. 2025, optimal budget selection, after Jorgensen, Yu and Cormode 2015.
    """
    found = min((squared_error(offers, sizes, offer), offer) for offer in set(offers))
    return found[1], math.sqrt(found[0])
