"""Exact composition of known draws at a delta, by dp_accounting's privacy loss distributions (Lemma 14)."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

LARGEST_SHIFT = 10_000
FINEST, COARSEST = 1e-6, 1e-3
LARGEST_LOSS = 600
"""Of one draw. A float holds no e^epsilon beyond some 700; then nothing is gained on the plain sum either."""
KEPT = 1e-3
"""Of delta, for what floats round: the library's transforms err by about 1e-15, which is far less."""

Draw = tuple[int, Fraction]
"""By how many units one customer moves an answer at most, and the scale of its noise in units."""

Compose = Callable[[frozenset[tuple[Draw, int]], frozenset[tuple[Fraction, int]], float], float]
"""`composed`, or what remembers its results."""


@lru_cache(maxsize=64)
def composed(
    draws: frozenset[tuple[Draw, int]], pure: frozenset[tuple[Fraction, int]], delta: float
) -> float:
    """Return the epsilon of so many of each at this delta, by dp_accounting's pessimistic distributions.

    draws, pure: each with its number; of `pure` the epsilons of measurements at delta 0. delta: of the whole.
    Never less than what they lose; infinity where that is beyond what a float holds.
    """
    from dp_accounting.pld import common  # 1 s: only where it is asked for
    from dp_accounting.pld import privacy_loss_distribution as library

    counts = [(float(shift / scale), count) for (shift, scale), count in draws]
    counts += [(float(epsilon), count) for epsilon, count in pure]
    if not any(count for _, count in counts):
        return 0.0
    if max(epsilon for epsilon, _ in counts) > LARGEST_LOSS:
        return inf
    finest = max(min(epsilon for epsilon, _ in counts) / 20, sum(e * n for e, n in counts) / 10**6, FINEST)
    given: dict[str, Any] = {"value_discretization_interval": min(finest, COARSEST)}
    known = [(_of_draw(library, shift, scale, given), count) for (shift, scale), count in draws]
    for epsilon, count in pure:
        alone = common.DifferentialPrivacyParameters(float(epsilon), 0.0)
        known.append((library.from_privacy_parameters(alone, **given), count))
    # where the sum is beyond what a float holds: infinity, and the plain sum is less
    with np.errstate(all="ignore"):
        whole = library.identity(**given)
        for one, count in known:
            whole = whole.compose(one.self_compose(count))
        return float(whole.get_epsilon_for_delta(delta * (1 - KEPT)))


def _of_draw(library: Any, shift: int, scale: Fraction, given: dict[str, Any]) -> Any:
    """Return the privacy loss of discrete Laplace noise, never less (Lemma 14)."""
    if shift <= LARGEST_SHIFT:
        return library.from_discrete_laplace_mechanism(
            float(1 / scale), sensitivity=shift, use_connect_dots=True, **given
        )
    # the library would list every integer: continuous noise and two units more lose no less
    return library.from_laplace_mechanism(1.0, sensitivity=float((shift + 2) / scale), **given)
