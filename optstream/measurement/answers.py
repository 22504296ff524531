"""Noisy numbers of a period as its measurements."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.stream import FeatureSums, Measured, PrivatePeriod, State
from optstream.stream.answers import Answers


def measured_of(
    period: PrivatePeriod,
    noise: NoiseSource,
    spends: Sequence[Spend],
    *,
    positions: Sequence[int] = (),
    points: NDArray[np.int64] | None = None,
    variances: NDArray[np.float64] | None = None,
    answers: Answers | None = None,
    state: State | None = None,
    choices: Mapping[str, Any] | None = None,
) -> Measured:
    """Return what was drawn of a period with this noise, at the cost of these spends.

    Privacy: none; the numbers are noisy already.

    Args:
        period: What was measured.
        noise: What the numbers were drawn with.
        spends: What they cost.
        positions: The measured steps, rising.
        points: (n_series, n_positions), in units; None without.
        variances: Of the points' noise, of the same shape, in units squared.
        answers: To other queries than single steps; None without.
        state: What the mechanism hands to the next period.
        choices: What else the draw decided, public.
    """
    nothing = (period.n_leaves, 0)
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=tuple(positions),
        points=np.zeros(nothing, dtype=np.int64) if points is None else points,
        answers=answers or FeatureSums(),
        resolution=period.resolution,
        point_variances=np.zeros(nothing) if variances is None else variances,
        spends=tuple(spends),
        simulated=noise.simulated,
        state=state,
        choices=choices,
    )
