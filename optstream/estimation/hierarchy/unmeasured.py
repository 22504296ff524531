"""Leaves of which a draw measured nothing."""

from dataclasses import replace

import numpy as np

from optstream.estimation.holding import UNKNOWN
from optstream.estimation.reconstruction import seen_points
from optstream.stream import AggregationTree, FeatureSums, Measured


def with_unmeasured_leaves(measured: Measured, tree: AggregationTree) -> Measured:
    """Return the measurements with leaves that have none taken as 0 of `UNKNOWN` variance.

    A level whose windows were full has no point in a period; then what its parents are known to be is shared
    evenly, and nothing stops the period from being published. Where leaves were measured nothing changes.
    Costs no privacy: which steps were measured is public.
    """
    seen = np.array(seen_points(measured).any(axis=-1))
    for sums in measured.answers_of(FeatureSums).variances or ():
        seen |= np.isfinite(sums).any(axis=-1)
    bare = [int(leaf) for leaf in tree.leaf_indices if not seen[leaf]]
    if measured.point_variances is None or not bare:
        return measured
    variances = np.broadcast_to(measured.point_variances, measured.points.shape[-2:]).copy()
    variances[bare] = UNKNOWN
    return replace(measured, point_variances=variances)
