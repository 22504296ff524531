"""How far a bounded estimate may be from the optimum of its program."""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Optimality:
    """The certificate of a quadratic program that was solved numerically.

    Attributes:
        gap: primal less dual objective, at least 0, in the unit of sum(weights * misfit^2) / 2; without unit
            where weights are inverse variances.
        residual: the largest term of the gap: by how many standard deviations of a measurement the optimality
            conditions are missed there.
        rounds: Newton steps that were taken.
        converged: whether `distance` is as small as it was asked to be.
    """

    gap: float
    residual: float
    rounds: int
    converged: bool

    @property
    def distance(self) -> float:
        """Bound how far any linear function of the answer may be from that of the optimum, in standard
        errors.

        Each linear function (a node, a sum over steps) is counted in its own, of the weighted least squares
        without the bound. The objective is strongly convex in the metric of its own Hessian H, so |z -
        z*|_H^2 <= 2 gap, and |c'(z - z*)| <= sqrt(c' H^-1 c) |z - z*|_H.
        """
        return math.sqrt(2.0 * self.gap)


def worst(found: Iterable[Optimality]) -> Optimality | None:
    """Return the largest of each figure of several programs, such as a batch of periods, converged if all
    are; None where there is none.
    """
    every = list(found)
    if not every:
        return None
    return Optimality(
        max(one.gap for one in every),
        max(one.residual for one in every),
        max(one.rounds for one in every),
        all(one.converged for one in every),
    )
