"""Laplace measurements of linear queries: sums of consecutive steps, at every node of the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy.spends import Spend, StepSpend
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

SAMPLES = "samples"


def feature_stage(feature: Feature) -> str:
    """Return the name under which a feature's spends are booked. Privacy: none."""
    return f"feature {feature.name}"


def query_weights(parts: Sequence[range], n_steps: int) -> tuple[int, ...]:
    """Return how often each step enters disjoint sums: 1 where a part covers it, 0 elsewhere, shape
    (n_steps,).

    Raises ParameterError for parts that overlap or leave the period. Privacy: none; queries are public.
    """
    covered = {step for part in parts for step in part}
    if len(covered) != sum(map(len, parts)) or not covered <= set(range(n_steps)):
        raise ParameterError("the parts of a query must be disjoint and inside the period")
    return tuple(int(step in covered) for step in range(n_steps))


def measure_points_and_sums(
    period: PrivatePeriod,
    tree: AggregationTree,
    *,
    points: Mapping[int, Sequence[int]],
    features: Sequence[Feature],
    spends: Sequence[Spend],
    noise: NoiseSource,
    state: Mapping[str, Any] | None = None,
) -> Measured:
    """Measure single steps and the features' sums at every node of each level that has a spend.

    Privacy: Lemma 3 (linear queries) for each step spend: one changed step moves the level by at most
    leaves_changed * alpha in all, in at most one part of each query, so it loses that over the scale.
    Costs exactly those spends.

    Args:
        period: The leaves' readings.
        tree: Its leaves are the period's.
        points: For each level its sampled steps of the period, rising.
        features: The queries of sums.
        spends: All that the release costs; of each measured level and stage (`SAMPLES`, `feature_stage`) one
            step spend, whose scale is that of the noise that is drawn, so what is priced is what is drawn. A
            level without one is not measured: zeros with infinite variance.
        noise: Where the randomness comes from.
        state: What the mechanism hands to the next period.

    Returns:
        Points and feature sums of every node, in the tree's order.

    Raises:
        ParameterError: The shape or first step do not fit, or a spend does not price its query; then nothing
            was drawn here.
    """
    check_leaves(period, tree)
    positions = tuple(sorted({step for chosen in points.values() for step in chosen}))
    linear = [spend for spend in spends if isinstance(spend, StepSpend)]
    _check_prices(period, points, features, linear)
    totals = tree.add_up(open_private_period(period))
    noisy_points = np.zeros((len(tree.nodes), len(positions)), dtype=np.int64)
    point_variances = np.full(noisy_points.shape, np.inf)
    sums = {
        feature_stage(feature): np.zeros((len(tree.nodes), feature.n_parts), np.int64) for feature in features
    }
    sum_variances = {stage: np.full((len(tree.nodes), 1), np.inf) for stage in sums}
    exact_sums = {feature_stage(feature): feature.sums(totals) for feature in features}
    for spend in linear:
        nodes = slice(tree.levels[spend.level].start, tree.levels[spend.level].stop)
        variance = 2.0 * float(spend.scale) ** 2
        if spend.stage == SAMPLES:
            chosen = list(points[spend.level])
            columns = np.searchsorted(positions, chosen)
            noisy_points[nodes, columns] = _perturb(totals[nodes][:, chosen], spend, noise)
            point_variances[nodes, columns] = variance
        else:
            sums[spend.stage][nodes] = _perturb(exact_sums[spend.stage][nodes], spend, noise)
            sum_variances[spend.stage][nodes] = variance
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=positions,
        points=noisy_points,
        answers=FeatureSums(tuple(sums.values()), tuple(sum_variances.values())),
        resolution=period.resolution,
        point_variances=point_variances,
        spends=tuple(spends),
        simulated=noise.simulated,
        state=state,
    )


def check_leaves(period: PrivatePeriod, tree: AggregationTree) -> None:
    """Raise ParameterError unless the period has the tree's leaves.

    Privacy: none; its shape is public.
    """
    if period.n_leaves != len(tree.leaves):
        raise ParameterError(
            f"values must have {len(tree.leaves)} leaves (rows, in tree.leaves order); got {period.n_leaves}"
        )


def _check_prices(
    period: PrivatePeriod,
    points: Mapping[int, Sequence[int]],
    features: Sequence[Feature],
    spends: Sequence[StepSpend],
) -> None:
    """Raise ParameterError for a spend that prices another query than the one it is for.

    Privacy: none; lengths and choices are public.
    """
    parts = {feature_stage(feature): feature.parts for feature in features}
    for spend in spends:
        own = [range(step, step + 1) for step in points[spend.level]]
        weights = query_weights(own if spend.stage == SAMPLES else parts[spend.stage], period.n_steps)
        if spend.first_step != period.first_step or spend.weights != weights:
            raise ParameterError(f"the spend of stage {spend.stage!r} does not price the query it is for")


def _perturb(exact: NDArray[np.int64], spend: StepSpend, noise: NoiseSource) -> NDArray[np.int64]:
    """Add noise of the spend's own scale.

    Privacy: Lemma 3.
    """
    return exact + noise.discrete_laplace(float(spend.scale), exact.shape)
