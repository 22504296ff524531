"""The real orthonormal Fourier basis of a period, as floats and as integers. Public; no reading enters."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.coordinates import BASIS_BITS

LONGEST_PERIOD = 2**20
"""Steps. Up to here floats hold the basis far more exactly than its integers need."""


@lru_cache(maxsize=64)
def fourier_basis(n_steps: int, n_coordinates: int) -> NDArray[np.float64]:
    """Return the first basis rows, (min(n_coordinates, n_steps), n_steps), read-only; B B' = 1.

    In the order mean, sqrt(2) Re and sqrt(2) Im of the first frequency, of the second, …: what
    numpy.fft.rfft(series, norm="ortho") gives, each frequency as two real numbers of which an orthonormal map
    makes no more than there is. The last row of an even number of steps is the Nyquist frequency, one number.
    Raises ParameterError for a period of more than 2^20 steps.
    """
    if n_steps > LONGEST_PERIOD:
        raise ParameterError(f"a period of Fourier must have at most {LONGEST_PERIOD} steps; got {n_steps}")
    kept = min(n_coordinates, n_steps)
    steps = np.arange(n_steps, dtype=np.int64)
    rows = np.empty((kept, n_steps))
    for row in range(kept):
        frequency = (row + 1) // 2
        # reduced as integers, so that the angle is as exact at the last step as at the first
        angle = 2 * np.pi * (frequency * steps % n_steps) / n_steps
        alone = 2 * frequency in (0, n_steps)
        wave = np.cos(angle) if alone or row % 2 else -np.sin(angle)
        rows[row] = wave * np.sqrt((1 if alone else 2) / n_steps)
    rows.setflags(write=False)
    return rows


def integer_bits(n_steps: int) -> int:
    """Return the binary places of `integer_basis`: 30 for a day of 48 steps.

    Each of its entries is off by less than 2^-bits, half for rounding and far less than half for the float
    that is rounded; so the whole matrix, in Frobenius and hence in operator norm, by less than
    n_steps * 2^-bits < 2^-24.
    """
    return BASIS_BITS + n_steps.bit_length()


@lru_cache(maxsize=64)
def integer_basis(n_steps: int, n_coordinates: int) -> NDArray[np.int64]:
    """Return the basis times 2^integer_bits(n_steps), rounded to integers, read-only. Raises as it does."""
    rounded = np.rint(np.ldexp(fourier_basis(n_steps, n_coordinates), integer_bits(n_steps)))
    rows = rounded.astype(np.int64)
    rows.setflags(write=False)
    return rows
