"""Zero-concentrated privacy, rho, and its (epsilon, delta): exact, rounded to the safe side."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from functools import lru_cache

from optstream.errors import ParameterError
from optstream.privacy.exact import Bounds

LARGEST_DELTA = Fraction(1, 1000)
"""A larger one would allow that the readings of one customer in a thousand are published as they are."""
LEAST_DELTA = Fraction(1, 10**15)
LARGEST_EPSILON = 10**6
KEPT = 15  # digits of a result
# the order of the Renyi divergence, less 1, is looked for among powers of e
LEAST_ORDER, LARGEST_ORDER = -12.0, 80.0
GOLDEN = (math.sqrt(5) - 1) / 2


@lru_cache(maxsize=256)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho, almost the largest, such that any rho-zCDP release is (epsilon, delta)-private: Lemma 19
    (ii), solved for rho in decimals, rounded downwards to 15 digits, at an order found with floats. Source:
    Canonne, Kamath and Steinke 2020, Proposition 7; Bun and Steinke 2016, Definition 1.1 (rho-zCDP)."""
    check_delta(delta, "delta")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ParameterError(f"epsilon with a delta must be in (0, {LARGEST_EPSILON}]; got {epsilon}")
    target, log_delta = float(epsilon), math.log(delta)

    def negative_rho(log_order: float) -> float:
        below = math.exp(log_order)
        spread = (log_delta + math.log1p(below)) / below
        return -(target + math.log1p(1 / below) + spread) / (1 + below)

    # a has few digits: it and a - 1 are exact in decimals
    a = _order(negative_rho)
    low = Bounds(ROUND_FLOOR)
    spread = low.divide(low.add(low.ln(delta), low.ln(a)), low.decimal(a - 1))
    numerator = low.add(low.add(low.decimal(epsilon), low.ln(a / (a - 1))), spread)
    rho = Fraction(low.rounded(low.divide(numerator, low.decimal(a)), KEPT))
    if rho <= 0:
        raise ParameterError(
            f"epsilon {epsilon} is too small for delta {float(delta):g}: choose a larger one of either"
        )
    return rho


@lru_cache(maxsize=1024)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon, almost the least, such that any rho-zCDP release is (epsilon, delta)-private,
    rounded upwards to 15 digits. Delta may be up to 1/10, for spans longer than a window."""
    check_delta(delta, "delta", Fraction(1, 10))
    if rho < 0:
        raise ParameterError(f"rho must be at least 0; got {rho}")
    if rho == 0:
        return Fraction(0)
    amount, log_delta = float(rho), math.log(delta)

    def epsilon(log_order: float) -> float:
        below = math.exp(log_order)
        spread = (log_delta + math.log1p(below)) / below
        return (1 + below) * amount - math.log1p(1 / below) - spread

    a = _order(epsilon)
    high, low = Bounds(ROUND_CEILING), Bounds(ROUND_FLOOR)
    logarithms = low.add(low.ln(delta), low.ln(a))
    # not -logarithms, which Python would round to the digits of another context
    spread = high.divide(logarithms.copy_negate(), high.decimal(a - 1))
    found = high.add(high.add(high.decimal(a * rho), high.ln((a - 1) / a)), spread)
    return max(Fraction(high.rounded(found, KEPT)), Fraction(0))


def check_delta(delta: Fraction, name: str, largest: Fraction = LARGEST_DELTA) -> None:
    """Raise ParameterError, with the parameter's name, for a delta outside [1e-15, largest]."""
    if not LEAST_DELTA <= delta <= largest:
        raise ParameterError(
            f"{name} must be 0 for noise without one, or in [1e-15, {largest}], far less than 1 / the number "
            f"of customers; got {delta}"
        )


def _order(function: Callable[[float], float]) -> Fraction:
    """Return an order that nearly minimises a function of ln(order - 1): a grid, then golden sections."""
    points = [LEAST_ORDER + step / 4 for step in range(int(4 * (LARGEST_ORDER - LEAST_ORDER)) + 1)]
    best = min(points, key=function)
    low, high = best - 0.25, best + 0.25
    for _ in range(40):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    # few digits: the last ones of a machine's logarithm move nothing
    return 1 + Fraction(f"{math.exp((low + high) / 2):.6g}")
