"""Laplace measurements of single steps in the order of time, each chosen from what was measured before."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.answers import measured_of
from optstream.measurement.steps import spent
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.stream import Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period


class Controller(Protocol):
    """What decides which steps are measured, and is told noisy numbers only. Steps are running indices."""

    def due(self, step: int) -> bool:
        """Return whether a step, a running index, should be measured, if there is headroom.

        Privacy: none; a function of what `saw` was told.
        """
        ...

    def saw(self, step: int, noisy: NDArray[np.int64]) -> Any:
        """Take in the noisy values of a measured step, in units, (n_series,).

        Privacy: none; they are noisy.
        """
        ...


def measure_in_turn(
    period: PrivatePeriod, plan: CappedSpend, window_length: int, controller: Controller, noise: NoiseSource
) -> Measured:
    """Measure, at every series, each step that is due and that the plan has headroom for, as time runs.

    Noise is drawn step by step.

    Privacy: Lemma 10 (samples chosen in turn): a changed step that is measured loses at most the plan's unit
    charge. At most `cap` of them lie in any window, and which ones is decided by a controller and a rule that
    know noisy numbers and public facts only, so they compose adaptively.

    Args:
        period: The series.
        plan: What was reserved for the period; its cap, the steps that other periods took and its scale are
            those of the measurements. It is settled to a step spend of the chosen steps.
        window_length: Steps.
        controller: Asked at each step, told of each that is measured.
        noise: Where the randomness comes from.

    Returns:
        The points that were measured.
    """
    exact = open_private_period(period)
    rule = WindowBudget(
        int(plan.cap), window_length, period.first_step, period.n_steps, [(step, 1) for step in plan.taken]
    )
    scale, positions, points = float(plan.scale), [], []
    for step in range(period.n_steps):
        if not controller.due(period.first_step + step) or rule.headroom(step) < 1:
            continue
        noisy = exact[:, step] + noise.discrete_laplace(scale, (len(exact),))
        rule.take(step)
        controller.saw(period.first_step + step, noisy)
        positions.append(step)
        points.append(noisy)
    chosen = np.array(points, dtype=np.int64).reshape(len(positions), len(exact)).T
    variances = np.full(chosen.shape, 2.0 * scale**2)
    weights = [int(step in positions) for step in range(plan.n_steps)]
    spends = (spent(plan, weights),)
    return measured_of(period, noise, spends, positions=positions, points=chosen, variances=variances)
