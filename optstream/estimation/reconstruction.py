"""From the measured steps to every step."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.stream import Measured


def reconstruct(measured: Measured) -> NDArray[np.float64]:
    """Return the series (…, n_nodes, n_steps) that passes through the measured points.

    Linear between neighbouring points, held before the first and after the last. A period without any
    point spreads its finest feature evenly, and is 0 without features too. Values given with public
    measurements as their reconstruction are returned as they are. Costs no privacy: it reads noisy
    numbers only. Source: OptStream, section 4.3.
    """
    if measured.interpolation is not None:
        return measured.interpolation
    points = measured.point_values
    if measured.positions:
        return points @ interpolation_matrix(measured.positions, measured.n_steps)
    if not measured.feature_sums:
        return np.zeros((*points.shape[:-1], measured.n_steps))
    finest = max(measured.feature_sums, key=lambda sums: sums.shape[-1])
    return np.repeat(finest.sum(axis=-1, keepdims=True) / measured.n_steps, measured.n_steps, axis=-1)


@lru_cache(maxsize=256)
def interpolation_matrix(positions: tuple[int, ...], n_steps: int) -> NDArray[np.float64]:
    """The map from points to series, (n_points, n_steps): rows are hat functions, flat at both ends."""
    rows = [np.interp(np.arange(n_steps), positions, unit) for unit in np.eye(len(positions))]
    matrix = np.array(rows)
    matrix.setflags(write=False)
    return matrix
