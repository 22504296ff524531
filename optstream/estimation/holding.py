"""From measured steps to every step by holding the last value."""

import numpy as np

from optstream.estimation.estimate import Estimate
from optstream.stream import Measured

UNKNOWN = 2.0**100
"""Variance, in units squared, of a value that nothing is known of: finite, so that sums with it are."""


def hold(measured: Measured) -> Estimate:
    """Return the series that keeps each measured value until the next one.

    The period begins with the value that was held before it (`before["held"]`, a number of units for each
    series, and `before["held_variance"]`); where nothing was ever measured, with the period's own first
    value, and with 0 without one. Costs no privacy: it reads noisy numbers only.
    """
    assert measured.point_variances is not None
    before, shape = measured.before or {}, measured.points.shape
    values, starts = measured.points.T.astype(np.float64), list(measured.positions)
    variances = np.broadcast_to(measured.point_variances, shape).T
    if before.get("held") is not None:
        values = np.vstack([before["held"], values])
        variances = np.vstack([np.full(shape[-2], float(before["held_variance"])), variances])
        starts = [0, *starts]
    elif not starts:
        values, variances, starts = np.zeros((1, shape[-2])), np.full((1, shape[-2]), UNKNOWN), [0]
    which = np.maximum(np.searchsorted(starts, np.arange(measured.n_steps), side="right") - 1, 0)
    unit = float(measured.resolution)
    held = variances[which].T * unit**2
    # what nothing is known of is a constant: no noise is in it
    noise = np.where(variances[which].T < UNKNOWN, held, 0.0)
    return Estimate(values[which].T * unit, held, noise)
