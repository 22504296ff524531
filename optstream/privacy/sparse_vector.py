"""What the sparse vector technique costs, and at which scales it must draw."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optstream.privacy.exact import round_up_to_float

Allocation = Literal["even", "optimal"]


@dataclass(frozen=True)
class SparseVectorScales:
    """Noise of the technique, in units of the resolution.

    Attributes:
        threshold: Scale of the one draw on the threshold.
        query: Scale of the draw on each query.
        n_positive: At how many positive answers it stops (c in the papers), at least 1.
    """

    threshold: Fraction
    query: Fraction
    n_positive: int

    def loss(self, change: Fraction) -> Fraction:
        """Return the epsilon that it loses when no query moves by more than `change` units.

        Lemma 5 (docs/privacy.md): a negative answer is paid for by moving the threshold's noise by `change`
        once for all, a positive one by moving its own noise by twice that; so change / threshold + n_positive
        * 2 change / query, with `change` rounded up to an integer as the noise is.
        """
        moved = math.ceil(change)
        return moved * (1 / self.threshold + 2 * self.n_positive / self.query)


def sparse_vector_scales(
    sensitivity: int, n_positive: int, epsilon: Fraction, allocation: Allocation = "even"
) -> SparseVectorScales:
    """Return the scales, floats rounded up, at which queries of this sensitivity (units) cost at most
    epsilon.

    "even": threshold 2 D / epsilon, queries 4 c D / epsilon (OptStream, Algorithm 1). "optimal": epsilon is
    split 1 : (2c)^(2/3) between threshold and queries, which minimises the variance of their difference (Lyu,
    Su and Li 2017, section 4.2). D is the sensitivity, c at how many positive answers it stops. Raises
    ParameterError where a scale is too large for a float.
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
    """Return the most by which an L1 score over a segment moves, in units of alpha.

    The score of [a, b] is the sum, over the steps between a and b, of the distance to the line through both
    ends. n_changed steps change by at most alpha each, and no segment has more than `longest` steps from end
    to end. Lemma 6 (docs/privacy.md): a changed inner step moves it by at most 1, a changed end moves the
    line and so the score by at most (b - a - 1) / 2. With all changed it is 2 (b - a - 1), and that is
    attained. 0 where nothing lies between the ends.
    """
    inner = longest - 1
    if inner < 1:
        return Fraction(0)
    return max(
        ends * Fraction(inner, 2) + min(n_changed - ends, inner) for ends in range(min(2, n_changed) + 1)
    )
