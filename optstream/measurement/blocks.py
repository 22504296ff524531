"""Measurements of sums over blocks of consecutive steps of plain series, with Laplace or joint noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from optstream.measurement.answers import measured_of
from optstream.measurement.priced import LinearSpend, answer_variances, check_price, linear_noise
from optstream.noise import NoiseSource
from optstream.privacy import JointSpend
from optstream.stream import BlockSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

BLOCKS = BlockSums.stage


def measure_blocks(
    period: PrivatePeriod, parts: Sequence[range], spend: LinearSpend, noise: NoiseSource
) -> Measured:
    """Measure the sum of each part at every series with noise of the spend's own scale and groups.

    Privacy: Lemma 3 (linear queries): a changed step that a part covers loses at most the spend's charge;
    Lemma 16 (joint noise) for a joint spend; Lemma 20 (Gaussian noise) for a Gaussian one, in rho.

    Args:
        period: The series.
        parts: Disjoint, rising, inside the period; may be empty, then the spend covers no step.
        spend: What they cost.
        noise: Where the randomness comes from.

    Returns:
        `BlockSums` of shape (n_series, n_parts), with one variance a series, or one an answer for joint
        noise; the parts, and the sizes of their groups, as public choices; no points.

    Raises:
        ParameterError: The spend prices other steps, or groups other parts; then nothing was drawn.
    """
    check_price(spend, parts, period.n_leaves, period.first_step, period.n_steps)
    units = open_private_period(period)
    exact = np.zeros((len(units), len(parts)), dtype=np.int64)
    for column, part in enumerate(parts):
        exact[:, column] = units[:, part.start : part.stop].sum(axis=1)
    variances = np.tile(answer_variances(spend, 1), (len(units), 1))
    choices: dict[str, Any] = {"blocks": [[part.start, part.stop] for part in parts]}
    if isinstance(spend, JointSpend):
        choices["group_sizes"] = [len(group) for group in spend.groups]
    noisy = exact + linear_noise(spend, exact.shape, noise)
    return measured_of(period, noise, (spend,), answers=BlockSums((noisy,), (variances,)), choices=choices)
