"""Noisy answers to linear queries that are neither points nor a feature's sums."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.stream import BlockSums, FourierCoordinates, Measured, PrivatePeriod


def answers_with_noise(
    period: PrivatePeriod,
    kind: type[BlockSums | FourierCoordinates],
    exact: NDArray[np.int64],
    scale: Fraction,
    spend: Spend,
    noise: NoiseSource,
    choices: Mapping[str, Any] | None = None,
) -> Measured:
    """Add noise of this scale to exact answers of one kind, (n_series, n_answers) in units; no points.

    Privacy: Lemma 3 for blocks of steps, Lemma 8 for coordinates: what `spend` says of these answers at this
    scale, of which the caller made it.
    """
    noisy = exact + noise.discrete_laplace(float(scale), exact.shape)
    nothing = (len(noisy), 0)
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=(),
        points=np.zeros(nothing, dtype=np.int64),
        answers=kind((noisy,), (np.full((len(noisy), 1), 2.0 * float(scale) ** 2),)),
        resolution=period.resolution,
        point_variances=np.zeros(nothing),
        spends=(spend,),
        simulated=noise.simulated,
        choices=choices,
    )
