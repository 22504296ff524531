"""The interface of noise sources."""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError

LARGEST_SCALE = 2.0**56
"""A draw leaves the 64-bit integers, and is refused, with probability below 2^-183, about e^-128."""


class NoiseSource(Protocol):
    """Randomness for noise on integers.

    Attributes:
        simulated: True for seeded noise; a release with it is marked and can never be published.
    """

    simulated: bool

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent integers with P(k) proportional to exp(-|k| / scale). Raises NoiseError: another
        scale, or a draw that cannot be made.

        Args:
            scale: Of the noise, in units, greater than 0 and at most `LARGEST_SCALE`.
            size: Shape of the result.
        """
        ...

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each bound n an independent integer, uniform on 0 .. n - 1, exactly. Raises NoiseError:
        a bound below 1, or a draw that cannot be made.

        Args:
            bounds: Integers of at least 1, of any shape.
        """
        ...


def check_scale(scale: Any) -> None:
    """Raise NoiseError for a scale that hides nothing, or whose draws leave the 64-bit integers."""
    if not (isinstance(scale, float) and math.isfinite(scale) and scale > 0):
        raise NoiseError(f"a noise scale must be a positive finite float; got {scale!r}")
    if scale > LARGEST_SCALE:
        raise NoiseError(
            f"a noise scale must be at most 2^56, or draws would leave the 64-bit integers; got {scale!r}; "
            "choose a larger epsilon or a coarser resolution"
        )
