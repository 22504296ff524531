"""Publishing a step only where it lies far from the last release: budget distribution and absorption."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement.sums import measured_of, spent
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, StepSpend
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.rules import PublicationRule
from optstream.stream import Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

Integers = NDArray[np.int64]


def measure_by_distance(
    period: PrivatePeriod,
    last_release: Sequence[int],
    distance: StepSpend,
    publications: CappedSpend,
    rule: PublicationRule,
    noise: NoiseSource,
) -> Measured:
    """Measure the steps that a noisy distance finds far from the last release, for all series at once.

    Noise is drawn in the order of time; a step to which the rule offers nothing is not charged.
    Privacy: Lemma 11 (publications by distance): a distance is one answer, which loses alpha / scale as a
    linear query does; no window pays more than its distances and the rule's budget.
    """
    if len(last_release) != period.n_leaves:
        raise ParameterError(
            f"the state holds a last release of {len(last_release)} series, and this period has "
            f"{period.n_leaves}"
        )
    whole = (period.first_step, period.n_steps)
    if any((spend.first_step, spend.n_steps) != whole for spend in (distance, publications)):
        raise ParameterError("the plan does not price the steps it is for")
    exact = open_private_period(period)
    last: Integers = np.array(last_release, dtype=np.int64)
    offered, paid = [0] * period.n_steps, [Fraction(0)] * period.n_steps
    points, scales = dict[int, Integers](), list[float]()
    for step in range(period.n_steps):
        if not (grains := rule.offer(step)):
            continue
        offered[step] = 1
        weight = Fraction(grains, rule.n_grains)
        scale = round_up_to_float(publications.scale / weight)
        if is_far(exact[:, step], last, scale, float(distance.scale), noise):
            last = points[step] = exact[:, step] + noise.discrete_laplace(scale, last.shape)
            rule.publish(step, grains)
            paid[step] = weight
            scales.append(scale)
    shape = (period.n_leaves, len(points))
    return measured_of(
        period,
        noise,
        (spent(distance, offered), spent(publications, paid)),
        positions=[*points],
        points=np.array([*points.values()], dtype=np.int64).reshape(shape[::-1]).T,
        variances=np.broadcast_to(2.0 * np.array(scales) ** 2, shape),
    )


def is_far(
    exact: Integers, last: Integers, publication_scale: float, distance_scale: float, noise: NoiseSource
) -> bool:
    """Return whether the noisy distance of a step exceeds a publication's error: a noise scale a series.
    Arrays are (n_series,), in units. Privacy: Lemma 11, a single answer; `last` is noisy."""
    away = sum(np.abs(exact - last).tolist()) + int(noise.discrete_laplace(distance_scale, (1,))[0])
    return bool(away > last.size * Fraction(publication_scale))
