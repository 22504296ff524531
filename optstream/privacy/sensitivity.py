"""How far a query moves when one customer's readings do."""

from fractions import Fraction


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
