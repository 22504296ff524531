"""From noisy Fourier coordinates to every step."""

import numpy as np

from optstream.estimation.estimate import Estimate
from optstream.stream import FourierCoordinates, Measured
from optstream.stream.fourier_basis import fourier_basis


def invert_coordinates(measured: Measured) -> Estimate:
    """Return the series that has the measured coordinates, and 0 for those that were not measured.

    values = C B, (n_series, n_steps), for noisy coordinates C and the orthonormal rows B. variances: what the
    noise puts into each step, sum_j B[j, t]^2 var_j; what the left out frequencies miss is not in it. Costs
    no privacy: it reads noisy numbers only.
    """
    answers = measured.answers_of(FourierCoordinates)
    assert answers.variances is not None
    (coordinates,), (variances,) = answers.values, answers.variances
    basis = fourier_basis(measured.n_steps, coordinates.shape[-1])
    unit = float(measured.resolution)
    of_steps = np.broadcast_to(variances, coordinates.shape) @ basis**2 * unit**2
    return Estimate(coordinates @ basis * unit, of_steps, of_steps)
