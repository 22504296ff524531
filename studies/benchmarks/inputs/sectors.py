"""A made-up, deterministic split of a load into three sectors, each with a daily shape of its own."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
SECTORS = ("industry", "households", "services")


def by_sector(load: Values) -> Values:
    """Return the cells of region and sector, sectors of one region in a row; they add up to the load.

    From (n_days, n_regions, n_steps) to (n_days, n_regions * 3, n_steps). Industry is nearly flat, households
    peak in the evening, services fill the working hours; how much of a region each has differs by region.
    """
    n_days, n_regions, n_steps = load.shape
    hours = 24.0 * (np.arange(n_steps) + 0.5) / n_steps
    evening, working = (
        np.exp(-0.5 * ((hours - peak) / wide) ** 2) for peak, wide in ((20.0, 2.5), (13.0, 3.5))
    )
    shapes = np.stack([np.ones(n_steps), 0.6 + 0.9 * evening, 0.3 + 1.2 * working])
    sizes = 1.0 + 0.5 * np.sin(1.0 + np.arange(n_regions)[:, None] + 2.0 * np.arange(3))
    shares = sizes[:, :, None] * shapes
    shares /= shares.sum(axis=1, keepdims=True)
    return np.asarray((load[:, :, None, :] * shares).reshape(n_days, n_regions * 3, n_steps))
