"""Replicates: versions of an estimate that err as it does, from which the error of any figure follows.
Source: replicate methods of survey statistics (Wolter 2007, "Introduction to Variance Estimation"). Privacy:
none; replicates are made of noisy numbers and public facts."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.estimation.estimate import UNKNOWN
from optstream.stream import Measured

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

MOST_ENTRIES = 2**21  # of a period's replicates: 8 MiB. Of many nodes there are fewer.
FEWEST = 4  # the fewest replicates from which an error is computed


def n_replicates(wanted: int, n_nodes: int, n_steps: int) -> int:
    """Return how many replicates of so many values are made: at most `wanted`, at least `FEWEST` or 0."""
    found = min(wanted, MOST_ENTRIES // (n_nodes * n_steps))
    return found if found >= FEWEST else 0


def keys_of(names: Iterable[str]) -> Keys:
    """Return a number for each name, (n,), that depends on it alone."""
    digests = [blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def uniforms(*keys: ArrayLike) -> Floats:
    """Return numbers between 0 and 1 that depend on their keys alone; integer arrays, broadcast. Not for
    privacy: anyone can compute them. Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
    generators"."""
    found: Keys = np.zeros((), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for key in keys:
            whole = np.asarray(key)
            found = found + (whole if whole.dtype == np.uint64 else whole.astype(np.int64).astype(np.uint64))
            found = found + np.uint64(0x9E3779B97F4A7C15)
            found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found = found ^ (found >> np.uint64(31))
    return np.asarray(((found >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def normals(*keys: ArrayLike) -> Floats:
    """Return standard normal numbers of these keys, as `uniforms`."""
    from scipy.special import ndtri  # which a command's help does not wait for

    return np.asarray(ndtri(uniforms(*keys)))


def noise_replicates(estimate: Callable[[Measured], Floats], measured: Measured, n: int) -> Floats:
    """Return n runs of a linear estimate, before any bound, on fresh noise, less the estimate itself."""
    return estimate(_noisier(measured, n)) - estimate(measured)


def _noisier(measured: Measured, n: int, key: tuple[int, ...] = ()) -> Measured:
    """Return n measurements along a first axis, with fresh noise of the same variances on each number."""
    parts = tuple(_noisier(part, n, (*key, place)) for place, part in enumerate(measured.parts))
    points, answers = measured.point_variances, measured.answers.variances
    if points is None or answers is None:
        return replace(measured, parts=parts)
    arrays, found = (measured.points, *measured.answers.values), list[Floats]()
    for place, (array, variances) in enumerate(zip(arrays, (points, *answers), strict=True)):
        spread = np.broadcast_to(variances, array.shape)
        numbers = np.arange(n).reshape(-1, *(1 for _ in array.shape))
        drawn = normals(
            numbers, *key, measured.first_step, place, np.arange(spread.size).reshape(spread.shape)
        )
        found.append(array + np.sqrt(np.where((spread > 0) & (spread < UNKNOWN), spread, 0.0)) * drawn)
    new = replace(measured.answers, values=tuple(found[1:]))
    return replace(measured, points=found[0], answers=new, parts=parts)
