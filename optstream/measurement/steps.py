"""Measurements of single steps of plain series, chosen by a public rule, with Laplace, joint or Gaussian
noise.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optstream.measurement.answers import measured_of
from optstream.measurement.priced import LinearSpend, answer_variances, check_price, linear_noise
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, StepSpend
from optstream.stream import Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period


def measure_steps(
    period: PrivatePeriod, positions: Sequence[int], spend: LinearSpend, noise: NoiseSource
) -> Measured:
    """Measure these steps of every series, (n_series, n_positions), with noise of the spend's own scale and
    groups.

    Privacy: Lemma 3 (linear queries): a changed step that is measured loses at most the spend's charge; Lemma
    16 (joint noise) for a joint spend; Lemma 20 (Gaussian noise) for a Gaussian one, in rho.

    positions: rising, counted from the period's first step; may be empty, then the spend covers no step.
    Raises ParameterError where the spend prices other steps, or groups other ones; then nothing was drawn.
    """
    parts = [range(step, step + 1) for step in positions]
    check_price(spend, parts, period.n_leaves, period.first_step, period.n_steps)
    exact = open_private_period(period)[:, list(positions)]
    noisy = exact + linear_noise(spend, exact.shape, noise)
    variances = np.tile(answer_variances(spend, len(parts)), (len(exact), 1))
    return measured_of(period, noise, (spend,), positions=positions, points=noisy, variances=variances)


def spent(plan: StepSpend | CappedSpend, weights: Sequence[int | Fraction]) -> StepSpend:
    """Return the plan's own price at the steps that were chosen; weights: of each step of the period.

    Privacy: none; the choice was paid for.
    """
    return StepSpend(
        plan.level, plan.stage, plan.first_step, tuple(weights),
        plan.scale, plan.alpha_units, plan.leaves_changed,
    )  # fmt: skip
