"""Noise for publication: OpenDP's exact discrete Laplace, and uniform integers of the operating system's."""

import math
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from threading import get_ident
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.source import check_scale

_OPENED_IN = os.getpid()
AT_ONCE = 2**14
"""Samples of one call: OpenDP works outside the interpreter's lock, so threads draw beside each other."""


class SecureNoise:
    """OpenDP's sampler for integers (Canonne, Kamath and Steinke 2020): exact, no floating point.

    Uniform integers are `secrets.randbelow`'s: bits of the kernel's generator, refused until one is below.
    Every scale is confirmed by OpenDP's own privacy map before its first use. A process forked after
    this module was loaded may not draw: a copied buffer would give two processes the same noise.
    """

    simulated = False

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return independent integers with P(k) proportional to exp(-|k| / scale).

        Args:
            scale: Of the noise, in units, as `check_scale` takes it.
            size: Shape of what is returned.

        Returns:
            Integers of that shape.

        Raises:
            NoiseError: Another scale, a forked process, or a privacy map that does not confirm the loss
                1 / scale of one unit.
        """
        _refuse_forked()
        count = math.prod(size)
        if not count:
            return np.zeros(size, dtype=np.int64)
        parts = [min(AT_ONCE, count - first) for first in range(0, count, AT_ONCE)]
        if len(parts) == 1:
            return _drawn(scale, count).reshape(size)
        with ThreadPoolExecutor(os.cpu_count(), "noise") as pool:
            return np.concatenate([*pool.map(partial(_drawn, scale), parts)]).reshape(size)

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return for each bound n an independent integer, uniform on 0 .. n - 1, exactly.

        Args:
            bounds: Integers of at least 1, of any shape.

        Returns:
            Integers of that shape.

        Raises:
            NoiseError: A forked process.
        """
        _refuse_forked()
        drawn = [secrets.randbelow(bound) for bound in bounds.ravel().tolist()]
        return np.array(drawn, dtype=np.int64).reshape(bounds.shape)


def _refuse_forked() -> None:
    if os.getpid() != _OPENED_IN:
        raise NoiseError("noise may not be drawn in a process forked after it was opened: start it afresh")


def _drawn(scale: float, count: int) -> NDArray[np.int64]:
    return np.array(_confirmed_mechanism(scale, get_ident())([0] * count), dtype=np.int64)


@lru_cache(maxsize=1024)
def _confirmed_mechanism(scale: float, thread: int) -> Any:
    """Return OpenDP's mechanism at this scale, its map checked to lie within two floats of 1 / scale.

    thread: each has its own.
    """
    check_scale(scale)
    import opendp.prelude as dp  # 0.3 s: only where noise is drawn

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=scale)
    claimed = 1.0 / scale
    confirmed: float = mechanism.map(1)
    if not abs(confirmed - claimed) <= 2 * math.ulp(claimed):
        raise NoiseError(
            f"OpenDP's privacy map does not confirm scale {scale!r}: {confirmed!r} is not {claimed!r}"
        )
    return mechanism


def secure_noise() -> SecureNoise:
    """Return the noise of every publication.

    Returns:
        A source that is not simulated; any number of them draw from the same generator.
    """
    return SecureNoise()
