"""Noisy answers to linear queries that are neither points nor a feature's sums."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.privacy import Spend
from optstream.stream import BlockSums, FourierCoordinates, Measured, PrivatePeriod


def answers_with_noise(
    period: PrivatePeriod,
    kind: type[BlockSums | FourierCoordinates],
    exact: NDArray[np.int64],
    drawn: NDArray[np.int64],
    variances: NDArray[np.float64],
    spend: Spend,
    simulated: bool,
    choices: Mapping[str, Any] | None = None,
) -> Measured:
    """Return exact answers of one kind with their noise; no points.

    Privacy: Lemma 3 for blocks of steps, Lemma 16 for blocks in groups, Lemma 8 for coordinates: what `spend`
    says of these answers with this noise, of which the caller drew it.

    Args:
        period: What was measured.
        kind: Of the answers.
        exact: In units, (n_series, n_answers).
        drawn: Their noise, of the same shape.
        variances: Of the noise, in units squared, (n_series, 1) or the answers' shape.
        spend: What the answers cost.
        simulated: Whether the noise was seeded.
        choices: What else the draw decided, public.

    Returns:
        The measurements of the period.
    """
    noisy = exact + drawn
    nothing = (len(noisy), 0)
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=(),
        points=np.zeros(nothing, dtype=np.int64),
        answers=kind((noisy,), (variances,)),
        resolution=period.resolution,
        point_variances=np.zeros(nothing),
        spends=(spend,),
        simulated=simulated,
        choices=choices,
    )
