"""Joint or Laplace noise, compared at an equal price of many days, not of one window: it costs nothing."""

from dataclasses import dataclass
from fractions import Fraction

from optstream.errors import ParameterError
from optstream.privacy.composition import composed
from optstream.privacy.exact import exact, whole
from optstream.privacy.horizon import LARGEST_DELTA, LEAST_DELTA

UNITS = 1000
"""By which an answer moves: so many that integers lose as real numbers do."""


@dataclass(frozen=True)
class Draws:
    """What a plan draws.

    Attributes:
        epsilon: That each draw loses.
        a_step: How many of them a step has, on average.
    """

    epsilon: Fraction
    a_step: Fraction


@dataclass(frozen=True)
class Horizon:
    """The span at whose price kinds of noise are compared. It is no guarantee: a window keeps its epsilon.

    Args:
        n_steps: Of the span, at least 1.
        delta: At which its loss is told, in [1e-10, 1/10].

    Raises:
        ParameterError: Either lies outside its range; it names it, the range and what it got.
    """

    n_steps: int
    delta: Fraction

    def __post_init__(self) -> None:
        whole(self.n_steps, "n_steps of Horizon", 1)
        object.__setattr__(self, "delta", exact(self.delta, "delta of Horizon"))
        if not LEAST_DELTA <= self.delta <= LARGEST_DELTA:
            raise ParameterError(f"delta of Horizon must be a number in [1e-10, 1/10]; got {self.delta}")

    def price(self, draws: Draws, noisier: float = 1.0) -> float:
        """Return what all draws of the span lose together at delta (Lemmas 14 and 17), an epsilon, at most
        the plain sum; free. noisier: by what the scales are multiplied.
        """
        number, scale = round(self.n_steps * draws.a_step), UNITS / draws.epsilon * Fraction(noisier)
        found = composed(frozenset({((UNITS, scale), number)}), frozenset(), float(self.delta))
        return min(found, float(number * UNITS / scale))

    def prefers_joint(self, ratio: float, joint: Draws, laplace: Draws) -> bool:
        """Return whether joint noise errs less than Laplace noise at an equal price of the span; free.

        Asked the other way round, which takes two prices and no search: whether it costs less once its scale
        has grown until both err alike. The price falls and the error rises with the scale. ratio: by what the
        scale of joint noise may grow until it errs as Laplace noise does. joint, laplace: what is drawn of
        either at the epsilon of a window.
        """
        return self.price(joint, ratio) < self.price(laplace)


def errs_less(ratio: float, joint: Draws, laplace: Draws, horizon: Horizon | None) -> bool:
    """Return whether joint noise errs less: at the same epsilon of a window, or, with a horizon, price of a
    span; free. Other arguments as for `Horizon.prefers_joint`.
    """
    return ratio > 1.0 and (horizon is None or horizon.prefers_joint(ratio, joint, laplace))
