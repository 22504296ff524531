"""The cost of the sparse vector technique, and its scales of noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optstream.privacy.exact import round_up_to_float

Allocation = Literal["even", "optimal"]


@dataclass(frozen=True)
class SparseVectorScales:
    """Noise scales, in units, of the one draw on the threshold and of that on each query. The instance stops
    at `n_positive` positive answers (c in the papers)."""

    threshold: Fraction
    query: Fraction
    n_positive: int

    def loss(self, change: Fraction) -> Fraction:
        """Return the epsilon when no query moves by more than `change` units, rounded up (Lemma 5)."""
        moved = math.ceil(change)
        return moved * (1 / self.threshold + 2 * self.n_positive / self.query)


def sparse_vector_scales(
    sensitivity: int, n_positive: int, epsilon: Fraction, allocation: Allocation = "even"
) -> SparseVectorScales:
    """Return the scales, rounded up, at which queries of sensitivity D (units) cost at most epsilon. "even":
    threshold 2 D / epsilon, queries 4 c D / epsilon (OptStream, Algorithm 1). "optimal": epsilon is split 1 :
    (2c)^(2/3) (Lyu, Su and Li 2017, section 4.2)."""
    ratio = Fraction(1)
    if allocation == "optimal":
        ratio = Fraction((2 * n_positive) ** (2 / 3)).limit_denominator(10**6)
    of_threshold = epsilon / (1 + ratio)
    of_queries = epsilon - of_threshold
    return SparseVectorScales(
        threshold=Fraction(round_up_to_float(sensitivity / of_threshold)),
        query=Fraction(round_up_to_float(2 * n_positive * sensitivity / of_queries)),
        n_positive=n_positive,
    )


def l1_score_change(n_changed: int, longest: int) -> Fraction:
    """Return the greatest change of an L1 score when n_changed steps change, in units of alpha (Lemma 6); no
    segment has more than `longest` steps."""
    inner = longest - 1
    if inner < 1:
        return Fraction(0)
    return max(
        ends * Fraction(inner, 2) + min(n_changed - ends, inner) for ends in range(min(2, n_changed) + 1)
    )
