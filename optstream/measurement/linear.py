"""Laplace measurements of linear queries: sums of consecutive steps, at every node of the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.measurement.answers import measured_of
from optstream.measurement.priced import LinearSpend, answer_variances, check_price, linear_noise
from optstream.noise import NoiseSource
from optstream.privacy import JointSpend, Spend
from optstream.stream import AggregationTree, Feature, FeatureSums, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

SAMPLES = "samples"


def feature_stage(feature: Feature) -> str:
    """Return the stage under which a feature's spends are booked. Privacy: none."""
    return f"feature {feature.name}"


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
    leaves_changed * alpha in all, in at most one part of each query, so it loses that over the scale. Lemma
    16 for each joint spend. Costs exactly those spends.

    Args:
        period: The leaves' readings.
        tree: Its leaves are the period's.
        points: For each level its sampled steps of the period, rising.
        features: The queries of sums.
        spends: All that the release costs; of each measured level and stage (`SAMPLES`, `feature_stage`) one
            step spend, or joint spend of samples, whose scale and groups are those of the noise that is
            drawn, so what is priced is what is drawn. A level without one is not measured: zeros with
            infinite variance.
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
    linear = [spend for spend in spends if isinstance(spend, LinearSpend)]
    _check_prices(period, tree, points, features, linear)
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
        if spend.stage == SAMPLES:
            chosen = list(points[spend.level])
            columns = np.searchsorted(positions, chosen)
            exact = totals[nodes][:, chosen]
            noisy_points[nodes, columns] = exact + linear_noise(spend, exact.shape, noise)
            point_variances[nodes, columns] = answer_variances(spend, len(chosen))
        else:
            exact = exact_sums[spend.stage][nodes]
            sums[spend.stage][nodes] = exact + linear_noise(spend, exact.shape, noise)
            sum_variances[spend.stage][nodes] = answer_variances(spend, 1)
    return measured_of(
        period,
        noise,
        spends,
        positions=positions,
        points=noisy_points,
        variances=point_variances,
        answers=FeatureSums(tuple(sums.values()), tuple(sum_variances.values())),
        state=state,
    )


def check_leaves(period: PrivatePeriod, tree: AggregationTree) -> None:
    """Raise ParameterError for a period that has other leaves than the tree. Privacy: none; its shape is
    public.
    """
    if period.n_leaves != len(tree.leaves):
        raise ParameterError(
            f"values must have {len(tree.leaves)} leaves (rows, in tree.leaves order); got {period.n_leaves}"
        )


def _check_prices(
    period: PrivatePeriod,
    tree: AggregationTree,
    points: Mapping[int, Sequence[int]],
    features: Sequence[Feature],
    spends: Sequence[LinearSpend],
) -> None:
    """Raise ParameterError for a spend that prices another query than the one it is for.

    Privacy: none; lengths and choices are public.
    """
    parts = {feature_stage(feature): feature.parts for feature in features}
    for spend in spends:
        own = [range(step, step + 1) for step in points[spend.level]]
        query = own if spend.stage == SAMPLES else parts[spend.stage]
        if spend.stage != SAMPLES and isinstance(spend, JointSpend):
            raise ParameterError(
                f"the sums of stage {spend.stage!r} have noise of their own, never joint noise"
            )
        check_price(spend, query, len(tree.levels[spend.level]), period.first_step, period.n_steps)
