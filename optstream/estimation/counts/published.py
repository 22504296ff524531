"""From what is known of counts to what is published: series that add up, errors, bands of whole numbers."""

import numpy as np

from optstream.estimation.counts.bands import above_zero, count_bands
from optstream.estimation.counts.tree_counts import LEAST_DOUBT, CountsFit
from optstream.estimation.estimate import Estimate
from optstream.estimation.hierarchy.solve import consistent
from optstream.estimation.holding import UNKNOWN
from optstream.stream import AggregationTree, Measured


def published_counts(
    fit: CountsFit, measured: Measured, tree: AggregationTree, lower_bound: float | None
) -> Estimate:
    """Return the counts that add up and respect the bound, nearest to what is known of each node: values,
    variances and bands, (n_nodes, n_steps) each.

    The plain bounded program ("joint" in `consistent`): leaves are posterior means and not below 0 before it,
    so their sums tell of their parents. Standard errors and bands are of the counts themselves: what is not
    known of their expectation, and what they vary around it. measured: of resolution 1. Costs no privacy.
    """
    merged = measured.seen_as(fit.means, fit.given)
    found = consistent(merged, tree, [], "variance", lower_bound, "joint")
    bounded = lower_bound is not None
    free = consistent(merged, tree, [], "variance", None, "joint").values if bounded else found.values
    expected = np.maximum(found.values, 0.0)
    known = fit.variances < UNKNOWN * (1.0 - 1e-9)
    variances = np.where(known, fit.variances + fit.count_variances * expected, UNKNOWN)
    doubt = np.where(known, fit.variances, 0.0)
    # shares of a parent are expectations of what is not below 0; a normal posterior may be
    normal = np.arange(len(expected)) < fit.n_normal
    below = np.where(fit.means < 0.0, fit.means, expected)
    mean, rest = above_zero(below[normal], np.maximum(doubt[normal], LEAST_DOUBT))
    low, high = count_bands(
        np.vstack([mean, expected[~normal]]), np.vstack([rest, doubt[~normal]]), fit.count_variances
    )
    bands = np.where(known, low, np.nan), np.where(known, high, np.nan)
    return Estimate(found.values, variances, optimality=found.optimality, bands=bands, unbounded=free)
