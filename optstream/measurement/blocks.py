"""Laplace measurements of sums over blocks of consecutive steps of plain series."""

from collections.abc import Sequence

import numpy as np

from optstream.errors import ParameterError
from optstream.measurement.answers import answers_with_noise
from optstream.measurement.linear import query_weights
from optstream.noise import NoiseSource
from optstream.privacy import StepSpend
from optstream.stream import BlockSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

BLOCKS = BlockSums.stage


def measure_blocks(
    period: PrivatePeriod, parts: Sequence[range], spend: StepSpend, noise: NoiseSource
) -> Measured:
    """Measure the sum of each part at every series with noise of the spend's own scale.

    parts: disjoint, rising, inside the period; may be empty, then the spend's weights are all 0. Returned as
    `BlockSums` of shape (n_series, n_parts), the parts as public choices, no points. Raises ParameterError if
    the spend prices other steps; then nothing was drawn.

    Privacy: Lemma 3 (linear queries): a changed step that a part covers loses at most the spend's charge.
    """
    weights = query_weights(parts, period.n_steps)
    if (spend.first_step, spend.weights) != (period.first_step, weights):
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price the blocks it is for")
    units = open_private_period(period)
    exact = np.zeros((len(units), len(parts)), dtype=np.int64)
    for column, part in enumerate(parts):
        exact[:, column] = units[:, part.start : part.stop].sum(axis=1)
    choices = {"blocks": [[part.start, part.stop] for part in parts]}
    return answers_with_noise(period, BlockSums, exact, spend.scale, spend, noise, choices)
