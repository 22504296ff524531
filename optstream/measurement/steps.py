"""Laplace measurements of single steps of plain series, chosen by a public rule."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement.linear import query_weights
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, Spend, StepSpend
from optstream.stream import FeatureSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period


def measure_steps(
    period: PrivatePeriod, positions: Sequence[int], spend: StepSpend, noise: NoiseSource
) -> Measured:
    """Measure these steps of every series, rising, with noise of the spend's own scale.

    positions: may be empty; then the spend's weights are all 0. Raises ParameterError if the spend prices
    other steps; then nothing was drawn.

    Privacy: Lemma 3 (linear queries): a changed step that is measured loses at most the spend's charge.
    """
    weights = query_weights([range(step, step + 1) for step in positions], period.n_steps)
    if (spend.first_step, spend.weights) != (period.first_step, weights):
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price the steps it is for")
    exact = open_private_period(period)[:, list(positions)]
    noisy = exact + noise.discrete_laplace(float(spend.scale), exact.shape)
    variances = np.full(noisy.shape, 2.0 * float(spend.scale) ** 2)
    return measured_points(period, positions, noisy, variances, (spend,), noise)


def measured_points(
    period: PrivatePeriod,
    positions: Sequence[int],
    noisy: NDArray[np.int64],
    variances: NDArray[np.float64],
    spends: Sequence[Spend],
    noise: NoiseSource,
) -> Measured:
    """Return noisy points of a period as its measurements. noisy, variances: (n_series, n_positions), in
    units.

    Privacy: none; the points are noisy already.
    """
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=tuple(positions),
        points=noisy,
        answers=FeatureSums(),
        resolution=period.resolution,
        point_variances=variances,
        spends=tuple(spends),
        simulated=noise.simulated,
    )


def spent(plan: StepSpend | CappedSpend, weights: Sequence[int | Fraction]) -> StepSpend:
    """Return the plan's own price at the steps that were chosen. Privacy: none; the choice was paid for."""
    return StepSpend(
        plan.level, plan.stage, plan.first_step, tuple(weights),
        plan.scale, plan.alpha_units, plan.leaves_changed,
    )  # fmt: skip
