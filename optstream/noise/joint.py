"""Joint noise for a group of measurements: exact integers whose odds fall with the largest of them alone."""

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.source import NoiseSource, check_scale

LARGEST_GROUP = 2**9
LARGEST_JOINT_SCALE = 2.0**44
LARGEST_DRAW = 2**52
"""A group's draws reach it with chance below 2^-359; twice a smaller radius (< 513 * 2^52) fits in int64."""


def joint_noise(source: NoiseSource, scale: float, size: int, count: int) -> NDArray[np.int64]:
    """Return independent groups, (count, size), with P(x) proportional to exp(-max|x_i| / scale), x integers.

    The coordinates of a group are uncorrelated and dependent: one radius bounds them all. Drawn exactly, from
    discrete Laplace integers and uniform integers alone:

    1. size + 1 discrete Laplace integers; y >= 0 stays, y < 0 becomes -y - 1, which makes each geometric.
       Their sum R has weight C(R + size, size) q^R, with q = exp(-1 / scale).
    2. R is kept with probability (2R + 1) / (2R + 2i), for each i of 1 .. size, else drawn again: the weight
       is then (2R + 1)^size q^R, where (2R + 1)^size is the number of points with |x_i| <= R.
    3. A uniform one of these points.

    A scale outside [size / 4, 2^44] or a size above 512 raises NoiseError; so does, with a probability below
    2^-350 that depends on the noise alone, a draw that is too large for the integers.

    Privacy: Lemma 15 (docs/privacy.md): if each answer of a group moves by at most D, it loses at most
    D / scale. Source: the K-norm mechanism (Hardt and Talwar 2010) of the cube, on the integer grid; the
    sampler is ours.
    """
    check_joint(scale, size)
    radii, waiting = np.zeros(count, dtype=np.int64), np.arange(count)
    while waiting.size:
        tried, kept = _tried(source, scale, size, waiting.size)
        radii[waiting[kept]] = tried[kept]
        waiting = waiting[~kept]
    reach = np.repeat(radii[:, None], size, axis=1)
    return source.uniform_below(2 * reach + 1) - reach


def check_joint(scale: float, size: int) -> None:
    """Raise NoiseError unless the size is in 1 .. 512 and the scale in size / 4 .. 2^44."""
    check_scale(scale)
    if not 1 <= size <= LARGEST_GROUP:
        raise NoiseError(f"a group of joint noise has 1 .. {LARGEST_GROUP} measurements; got {size}")
    if scale > LARGEST_JOINT_SCALE:
        raise NoiseError(
            f"the scale of joint noise must be at most 2^44, or draws would leave the 64-bit integers; got "
            f"{scale!r}; choose a larger epsilon or a coarser resolution"
        )
    if 4 * scale < size:
        raise NoiseError(
            f"joint noise of scale {scale!r} for {size} measurements would reject most radii: use "
            "groups of at most four times the scale"
        )


def joint_variance(scale: float, size: int) -> float:
    """Return the variance of each coordinate of joint noise, in units squared, to within 1/6."""
    return scale**2 * (size + 1) * (size + 2) / 3


def _tried(
    source: NoiseSource, scale: float, size: int, count: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return one attempt at each radius, and which of them are kept."""
    drawn = source.discrete_laplace(scale, (count, size + 1))
    if drawn.max() >= LARGEST_DRAW or drawn.min() < -LARGEST_DRAW:
        raise NoiseError("a draw of joint noise left the 64-bit integers")
    radii = np.where(drawn < 0, -drawn - 1, drawn).sum(axis=1)
    bounds = 2 * (radii[:, None] + np.arange(1, size + 1))
    kept = source.uniform_below(bounds) < 2 * radii[:, None] + 1
    return radii, kept.all(axis=1)
