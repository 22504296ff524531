"""Noise of linear queries, drawn by its price: a step, a joint or a Gaussian spend."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.noise import NoiseSource, discrete_gaussian, joint_noise, joint_variance
from optstream.privacy import GaussianSpend, JointSpend, Spend, StepSpend
from optstream.stream import Measured, PrivatePeriod

LinearSpend = StepSpend | JointSpend | GaussianSpend


def query_weights(parts: Sequence[range], n_steps: int) -> tuple[int, ...]:
    """Return 1 for each step that a part covers, else 0; parts are disjoint. Privacy: none; all is public."""
    covered = {step for part in parts for step in part}
    if len(covered) != sum(map(len, parts)) or not covered <= set(range(n_steps)):
        raise ParameterError("the parts of a query must be disjoint and inside the period")
    return tuple(int(step in covered) for step in range(n_steps))


def check_price(
    spend: LinearSpend, parts: Sequence[range], n_series: int, first_step: int, n_steps: int
) -> None:
    """Refuse a spend or scale that prices another query than the sums of these parts, at n_series nodes.

    Privacy: none; choices and lengths are public.
    """
    weights = query_weights(parts, n_steps)
    priced = (spend.first_step, spend.weights) == (first_step, weights)
    priced = priced and Fraction(float(spend.scale)) == spend.scale
    if isinstance(spend, JointSpend):
        priced = priced and (spend.parts, spend.n_nodes) == (tuple(parts), n_series)
    if isinstance(spend, GaussianSpend):
        priced = priced and spend.parts == tuple(parts)
    if not priced:
        raise ParameterError(f"the spend of stage {spend.stage!r} does not price the query it is for")


def linear_noise(spend: LinearSpend, shape: tuple[int, ...], noise: NoiseSource) -> NDArray[np.int64]:
    """Return noise, (n_series, n_answers), of the spend's own scale and groups; series are independent.

    Privacy: none; the answers are charged by Lemma 3, by Lemmas 15 and 16 for a joint spend, by Lemmas 20 and
    20a for a Gaussian one.
    """
    if isinstance(spend, GaussianSpend):
        return discrete_gaussian(noise, float(spend.scale), shape)
    if isinstance(spend, StepSpend):
        return noise.discrete_laplace(float(spend.scale), shape)
    drawn = np.zeros(shape, dtype=np.int64)
    size_of = _sizes(spend)
    # the largest first: what it may not have is refused before anything is drawn
    for size in sorted(set(size_of), reverse=True):
        columns = np.flatnonzero(size_of == size)
        groups = joint_noise(noise, float(spend.scale), int(size), shape[0] * columns.size // int(size))
        drawn[:, columns] = groups.reshape(shape[0], columns.size)
    return drawn


def answer_variances(spend: LinearSpend, n_answers: int) -> NDArray[np.float64]:
    """Return the noise's variance in each answer of a series, in units squared; for Gaussian noise a bound.

    Privacy: none; scales and groups are public.
    """
    scale = float(spend.scale)
    if isinstance(spend, GaussianSpend):
        return np.full(n_answers, scale**2)
    if isinstance(spend, StepSpend):
        return np.full(n_answers, 2.0 * scale**2)
    return np.array([joint_variance(scale, int(size)) for size in _sizes(spend)], dtype=np.float64)


def _sizes(spend: JointSpend) -> NDArray[np.int64]:
    """Return the size of each part's group, shape (n_parts,). Privacy: none; groups are public."""
    sizes = [len(group) for group in spend.groups]
    return np.repeat(np.array(sizes, dtype=np.int64), sizes)


# Noisy numbers of a period as its measurements.


def measured_of(
    period: PrivatePeriod,
    noise: NoiseSource,
    spends: Sequence[Spend],
    *,
    positions: Sequence[int] = (),
    points: NDArray[np.int64] | None = None,
    variances: NDArray[np.float64] | None = None,
    **others: Any,
) -> Measured:
    """Return a period's measurements, at the cost of these spends. Privacy: none; they are noisy."""
    nothing = np.zeros((period.n_leaves, 0), dtype=np.int64)
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=tuple(positions),
        points=nothing if points is None else points,
        resolution=period.resolution,
        spends=tuple(spends),
        simulated=noise.simulated,
        point_variances=nothing.astype(np.float64) if variances is None else variances,
        **others,
    )
