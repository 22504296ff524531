"""What every noise source gives."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class NoiseSource(Protocol):
    """Discrete Laplace noise on integers.

    simulated: True for seeded noise; what it touches is marked and can never be published.
    """

    simulated: bool

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Independent integers with P(k) proportional to exp(-|k| / scale), scale > 0."""
        ...
