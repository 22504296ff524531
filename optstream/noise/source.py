"""Where randomness comes from: the interface of sources, and exact integers of the system's random bytes."""

import math
import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.laplace import RandomBytes, geometric

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


# Noise for publication.

AT_ONCE = 2**14  # samples of one pass, which stay in the processor's cache


class SecureNoise:
    """Exact integers made of the kernel's random bytes, without state that forked processes would share."""

    simulated = False

    def __init__(self, random_bytes: RandomBytes = os.urandom) -> None:
        self._random_bytes = random_bytes

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return differences of two independent geometric integers, with P(k) proportional to q^|k|. q =
        exp(-1 / scale). A draw that leaves the 64-bit integers has a probability below 2^-183."""
        check_scale(scale)
        count = math.prod(size)
        drawn = np.empty(count, dtype=np.int64)
        for first in range(0, count, AT_ONCE):
            part = drawn[first : first + AT_ONCE]
            plus, minus = geometric(scale, 2 * part.size, self._random_bytes).reshape(2, part.size)
            np.subtract(plus, minus, out=part)
        return drawn.reshape(size)

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return random integers of as many bits as n - 1 has, drawn again until they are below n."""
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
    """Return the noise of every publication."""
    return SecureNoise()


# Noise for evaluation and tests: fast, seeded, repeatable, and therefore never private.


class SimulatedNoise:
    """numpy's generator from a seed. With the seed the noise is known: no release of it is private."""

    simulated = True

    def __init__(self, seed: "int | Sequence[int] | np.random.SeedSequence") -> None:
        self._generator = np.random.default_rng(seed)
        self._seeded_in = os.getpid()

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return integers as `NoiseSource` does; refuse a process forked after seeding."""
        self._refuse_forked()
        check_scale(scale)
        stop = -math.expm1(-1.0 / scale)
        # the difference of two geometric draws
        first, second = self._generator.geometric(stop, (2, *size))
        difference: NDArray[np.int64] = first - second
        return difference

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return integers as `NoiseSource` does; refuse a process forked after seeding."""
        self._refuse_forked()
        return self._generator.integers(0, bounds)

    def _refuse_forked(self) -> None:
        if os.getpid() != self._seeded_in:
            raise NoiseError("no fork between seeding and drawing: seed in the process that draws")


def simulated_noise(seed: "int | Sequence[int] | np.random.SeedSequence") -> SimulatedNoise:
    """Return a source seeded by numpy's `default_rng`; its releases say so and the publisher refuses them."""
    return SimulatedNoise(seed)
