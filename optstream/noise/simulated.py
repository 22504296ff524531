"""Noise for evaluation and tests: fast, seeded, repeatable, and therefore never private."""

import math
import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.source import check_scale


class SimulatedNoise:
    """numpy's generator from a seed. Whoever knows the seed knows the noise: no release of it is private.

    Args:
        seed: What numpy's `default_rng` takes.
    """

    simulated = True

    def __init__(self, seed: int | Sequence[int] | np.random.SeedSequence) -> None:
        self._generator = np.random.default_rng(seed)
        self._seeded_in = os.getpid()

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent integers as `NoiseSource` says. Raises NoiseError for another scale than
        `check_scale` takes, or in a process forked after seeding.
        """
        self._refuse_forked()
        check_scale(scale)
        stop = -math.expm1(-1.0 / scale)
        # the difference of two geometric draws
        first, second = self._generator.geometric(stop, (2, *size))
        difference: NDArray[np.int64] = first - second
        return difference

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return independent integers as `NoiseSource` says. Raises NoiseError in a process forked after
        seeding.
        """
        self._refuse_forked()
        return self._generator.integers(0, bounds)

    def _refuse_forked(self) -> None:
        if os.getpid() != self._seeded_in:
            raise NoiseError("no fork between seeding and drawing: seed in the process that draws")


def simulated_noise(seed: int | Sequence[int] | np.random.SeedSequence) -> SimulatedNoise:
    """Return a seeded source. Releases made with it say so and are refused by the publisher.

    Args:
        seed: What numpy's `default_rng` takes; the same one gives the same noise.

    Returns:
        A source that is simulated.
    """
    return SimulatedNoise(seed)
