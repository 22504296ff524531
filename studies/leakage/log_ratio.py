"""log((q (e^a - 1) + 1) / (d (e^a - 1) + 1)): one piece of a loss function, safe for every finite a."""

import math

import numpy as np

from studies.leakage.amounts import Floats

LARGEST_EXPONENT = 700.0
"""Up to here e^a is far from overflow, and the form with log1p and expm1 holds its precision at both ends."""


def log_ratio(q: Floats, d: Floats, a: Floats) -> Floats:
    """Return the logarithm elementwise, for q of at most 1, d in 0 .. q, and a at least 0 and finite;
    broadcast.

    Up to 700 as log1p((q - d)(e^a - 1) / (1 + d (e^a - 1))), which is also exact for small a; beyond it both
    sides are divided by e^a, and d = 0 leaves a + log q: no overflow, and nothing that silently becomes 0.
    """
    rise = np.expm1(np.minimum(a, LARGEST_EXPONENT))
    common = np.log1p((q - d) * rise / (1 + d * rise))
    if not (np.asarray(a) > LARGEST_EXPONENT).any():
        return np.asarray(common)
    decay = np.exp(-a)
    with np.errstate(divide="ignore"):
        above = np.log(q + (1 - q) * decay)
        below = np.where(d > 0, np.log(d + (1 - d) * decay), -a)
        far = np.where(q > 0, above - below, 0.0)
    return np.where(a > LARGEST_EXPONENT, far, common)


def log_ratio_of_numbers(q: float, d: float, a: float) -> float:
    """Return the same for three floats, without numpy's overhead: time series are followed step by step."""
    if a <= LARGEST_EXPONENT:
        rise = math.expm1(a)
        return math.log1p((q - d) * rise / (1 + d * rise))
    if q <= 0:
        return 0.0
    decay = math.exp(-a)
    below = math.log(d + (1 - d) * decay) if d > 0 else -a
    return math.log(q + (1 - q) * decay) - below
