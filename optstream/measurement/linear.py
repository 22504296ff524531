"""Laplace measurements of linear queries: sums of consecutive steps, at every node of the tree."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy.spends import StepSpend
from optstream.stream import AggregationTree, Feature, Measured, PrivatePeriod
from optstream.stream.private_period import open_private_period

SAMPLES = "samples"


def feature_stage(feature: Feature) -> str:
    """The name under which a feature's spends are booked."""
    return f"feature {feature.name}"


def query_weights(parts: Sequence[range], n_steps: int) -> tuple[int, ...]:
    """How often each step enters disjoint sums: 1 where a part covers it, 0 elsewhere, shape (n_steps,)."""
    covered = {step for part in parts for step in part}
    if len(covered) != sum(map(len, parts)) or not covered <= set(range(n_steps)):
        raise ParameterError("the parts of a query must be disjoint and inside the period")
    return tuple(int(step in covered) for step in range(n_steps))


def measure_points_and_sums(
    period: PrivatePeriod,
    tree: AggregationTree,
    *,
    positions: Sequence[int],
    features: Sequence[Feature],
    spends: Sequence[StepSpend],
    noise: NoiseSource,
    state: Mapping[str, Any] | None = None,
) -> Measured:
    """Measure single steps and the features' sums at every node of each level that has a spend.

    positions: sampled steps of the period. spends: one for each measured level and stage (`SAMPLES`,
    `feature_stage`); their scales are those of the noise that is drawn, so what is priced is what is
    drawn. A level without a spend is not measured: zeros with infinite variance.

    Raises ParameterError if the shape, resolution or first step do not fit, or if a spend's weights are
    not those of its query.

    Privacy: Lemma 3 (linear queries) for each spend: one changed step moves one node of the level by at
    most alpha in at most one part of each query, so it loses alpha / scale. Costs exactly `spends`.
    """
    if period.n_leaves != len(tree.leaves):
        raise ParameterError(
            f"values must have {len(tree.leaves)} leaves (rows, in tree.leaves order); got {period.n_leaves}"
        )
    stages = {SAMPLES: tuple(range(step, step + 1) for step in positions)}
    stages |= {feature_stage(feature): feature.parts for feature in features}
    for spend in spends:
        if spend.first_step != period.first_step or spend.weights != query_weights(
            stages[spend.stage], period.n_steps
        ):
            raise ParameterError(f"the spend of stage {spend.stage!r} does not price the query it is for")

    totals = tree.add_up(open_private_period(period))
    answers = {SAMPLES: totals[:, list(positions)]}
    answers |= {feature_stage(feature): feature.sums(totals) for feature in features}
    noisy, variances = {}, {}
    for stage, exact in answers.items():
        at_stage = [spend for spend in spends if spend.stage == stage]
        noisy[stage], variances[stage] = _perturb(exact, tree, at_stage, noise)
    feature_stages = [feature_stage(feature) for feature in features]
    return Measured(
        n_steps=period.n_steps,
        first_step=period.first_step,
        positions=tuple(positions),
        points=noisy[SAMPLES],
        sums=tuple(noisy[stage] for stage in feature_stages),
        resolution=period.resolution,
        point_variances=variances[SAMPLES],
        sum_variances=tuple(variances[stage] for stage in feature_stages),
        spends=tuple(spends),
        simulated=noise.simulated,
        state=state,
    )


def _perturb(
    exact: NDArray[np.int64], tree: AggregationTree, spends: Sequence[StepSpend], noise: NoiseSource
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Add each level's noise; only levels with a spend leave this function with their values.

    Privacy: Lemma 3 with the spend's own scale.
    """
    noisy = np.zeros_like(exact)
    variances = np.full((exact.shape[0], 1), np.inf)
    for spend in spends:
        nodes = slice(tree.levels[spend.level].start, tree.levels[spend.level].stop)
        scale = float(spend.scale)
        noisy[nodes] = exact[nodes] + noise.discrete_laplace(scale, exact[nodes].shape)
        variances[nodes] = 2.0 * scale**2
    return noisy, variances
