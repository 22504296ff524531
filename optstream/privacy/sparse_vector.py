"""The cost of the sparse vector technique, and its scales of noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optstream.privacy.exact import round_up_to_float

Allocation = Literal["even", "optimal"]


@dataclass(frozen=True)
class SparseVectorScales:
    """Noise scales, in units, of the one draw on the threshold and of that on each query.

    The instance stops at `n_positive` positive answers (c in the papers).
    """

    threshold: Fraction
    query: Fraction
    n_positive: int

    def loss(self, change: Fraction) -> Fraction:
        """Return the epsilon when no query moves by more than `change` units (Lemma 5, docs/privacy.md).

        A negative answer is paid for by moving the threshold's noise by `change` once for all, a positive one
        by moving its own noise by twice that. `change` is rounded up to an integer as the noise is.
        """
        moved = math.ceil(change)
        return moved * (1 / self.threshold + 2 * self.n_positive / self.query)


def sparse_vector_scales(
    sensitivity: int, n_positive: int, epsilon: Fraction, allocation: Allocation = "even"
) -> SparseVectorScales:
    """Return the scales, rounded up, at which queries of sensitivity D (units) cost at most epsilon.

    "even": threshold 2 D / epsilon, queries 4 c D / epsilon (OptStream, Algorithm 1). "optimal": epsilon is
    split 1 : (2c)^(2/3) between threshold and queries, which minimises the variance of their difference (Lyu,
    Su and Li 2017, section 4.2).
    """
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
    """Return the greatest change of an L1 score when n_changed steps change, in units of alpha (Lemma 6).

    The score of [a, b] is the sum, over the steps between a and b, of the distance to the line through both
    ends; no segment has more than `longest` steps. A changed inner step moves it by at most 1, a changed end
    by at most (b - a - 1) / 2; with all changed 2 (b - a - 1) is attained.
    """
    inner = longest - 1
    if inner < 1:
        return Fraction(0)
    return max(
        ends * Fraction(inner, 2) + min(n_changed - ends, inner) for ends in range(min(2, n_changed) + 1)
    )
