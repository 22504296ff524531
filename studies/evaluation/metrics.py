"""How far a release misses the truth: plain functions of two arrays, as private as both."""

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_terms import BAND
from optstream.stream import AggregationTree

Values = NDArray[np.float64]


def step_errors(released: Values, truth: Values) -> dict[str, float]:
    """Return mean, median and 95th percentile of the absolute error a step, in the unit of the readings.

    released, truth: of one shape; every entry counts alike.
    """
    missed = np.abs(released - truth)
    middle, high = np.percentile(missed, [50, 95])
    return {"mae": float(missed.mean()), "median": float(middle), "p95": float(high)}


def mean_absolute_error(released: Values, truth: Values) -> float:
    """Return the mean absolute error a step, in the unit of the readings."""
    return float(np.abs(released - truth).mean())


def covered(released: Values, truth: Values, errors: Values) -> float:
    """Return the share of values that lie inside their bands of 95 %: 1.96 standard errors to both sides."""
    return float((np.abs(released - truth) <= BAND * errors).mean())


def relative_error(released: Values, truth: Values, floor: float) -> float:
    """Return the mean over steps of |released - truth| / max(|truth|, floor).

    floor: delta, the sanity bound of FAST's Definition 2, whose value its report does not state.
    """
    return float((np.abs(released - truth) / np.maximum(np.abs(truth), floor)).mean())


def violation(series: Values, tree: AggregationTree) -> float:
    """Return the most by which a node differs from the sum of its children, over periods and steps.

    series: (…, n_nodes, n_steps), tree.nodes order.
    """
    parents = np.array(tree.parents)
    gaps = [
        np.abs(series[..., node, :] - series[..., np.flatnonzero(parents == node), :].sum(axis=-2)).max()
        for node in sorted(set(tree.parents) - {-1})
    ]
    return float(max(gaps, default=0.0))
