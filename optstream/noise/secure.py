"""Noise for publication: exact integers made of the operating system's random bytes."""

import math
import os

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.geometric import RandomBytes, geometric
from optstream.noise.source import check_scale

AT_ONCE = 2**14
"""Samples of one pass: what it works on stays in the processor's cache."""


class SecureNoise:
    """Exact integers made of the kernel's random bytes, which are asked for anew at each draw.

    Nothing is kept from draw to draw, so a forked process shares none with the one that it came from.

    Args:
        random_bytes: Returns so many independent uniform bytes; anything but the default is for tests.
    """

    simulated = False

    def __init__(self, random_bytes: RandomBytes = os.urandom) -> None:
        self._random_bytes = random_bytes

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent integers as `NoiseSource` says, exactly.

        Each is the difference of two independent geometric integers: with q = exp(-1 / scale) the chance of k
        is the sum over m >= 0 of (1 - q)^2 q^(m + |k|) q^m, which is proportional to q^|k|. Raises NoiseError
        for another scale than `check_scale` takes, or a draw that leaves the 64-bit integers, each with a
        probability that is below 2^-183 and depends on nothing but the scale.
        """
        check_scale(scale)
        count = math.prod(size)
        drawn = np.empty(count, dtype=np.int64)
        for first in range(0, count, AT_ONCE):
            part = drawn[first : first + AT_ONCE]
            plus, minus = geometric(scale, 2 * part.size, self._random_bytes).reshape(2, part.size)
            np.subtract(plus, minus, out=part)
        return drawn.reshape(size)

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return independent integers as `NoiseSource` says: as many random bits as n - 1 has, drawn anew
        until they are below n. Raises NoiseError for a bound below 1.
        """
        if bounds.size and bounds.min() < 1:
            raise NoiseError("a uniform integer needs a bound of at least 1")
        limits = bounds.ravel().astype(np.uint64)
        masks = limits - np.uint64(1)
        for shift in (1, 2, 4, 8, 16, 32):
            masks |= masks >> np.uint64(shift)
        drawn = np.zeros(limits.size, dtype=np.uint64)
        waiting = np.arange(limits.size)
        while waiting.size:
            words = np.frombuffer(self._random_bytes(8 * waiting.size), dtype=np.uint64)
            drawn[waiting] = words & masks[waiting]
            waiting = waiting[drawn[waiting] >= limits[waiting]]
        return drawn.astype(np.int64).reshape(bounds.shape)


def secure_noise() -> SecureNoise:
    """Return the noise of every publication.

    Returns:
        A source that is not simulated; any number of them draw from the same generator.
    """
    return SecureNoise()
