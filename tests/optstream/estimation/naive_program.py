"""Solves the consistency program as the OptStream paper writes it, one variable a node and feature part.

The oracle of the tests of the closed form.
"""

from collections.abc import Sequence
from typing import Any, Literal

import cvxpy
import numpy as np
from numpy.typing import NDArray

from optstream.stream import AggregationTree, Feature, Measured

Values = NDArray[np.float64]


def naive_program(
    measured: Measured,
    tree: AggregationTree,
    features: Sequence[Feature],
    weights: Literal["paper", "variance"],
    lower_bound: float | None = 0.0,
    interpolation_weight: float = 0.2,
    **options: Any,
) -> tuple[Values, Any]:
    """Return (values (n_nodes, n_steps), the cvxpy problem) for one period of public or noisy measurements.

    Variables for every node, feature and part; constraints say that parts and children add up. `weights`
    and the objective are those of `optstream.estimation.problem`, written out term by term.
    `options` go to the solver.
    """
    n_nodes, n_steps = len(tree.nodes), measured.n_steps
    grid = np.arange(n_steps)
    series = measured.interpolation
    if series is None:
        series = np.array([np.interp(grid, measured.positions, row) for row in measured.point_values])
    steps = [cvxpy.Variable(n_steps) for _ in range(n_nodes)]
    parts = [[cvxpy.Variable(feature.n_parts) for feature in features] for _ in range(n_nodes)]
    terms, constraints = [], []
    for node in range(n_nodes):
        if weights == "paper":
            terms.append(cvxpy.sum_squares(steps[node] - series[node]) / n_steps)
        else:
            assert measured.point_variances is not None
            chosen = list(measured.positions)
            own = _worth(measured.point_variances[node], len(chosen), measured)
            share = np.full(n_steps, interpolation_weight * np.mean(own))
            share[chosen] = own
            terms.append(cvxpy.sum_squares(cvxpy.multiply(np.sqrt(share), steps[node] - series[node])))
        for number, feature in enumerate(features):
            misfit = parts[node][number] - measured.feature_sums[number][node]
            if weights == "paper":
                terms.append(cvxpy.sum_squares(misfit) / feature.n_parts)
            else:
                assert measured.answers.variances is not None
                own = _worth(measured.answers.variances[number][node], feature.n_parts, measured)
                terms.append(cvxpy.sum_squares(cvxpy.multiply(np.sqrt(own), misfit)))
            constraints.append(parts[node][number] == feature.matrix @ steps[node])
        children = [steps[child] for child, parent in enumerate(tree.parents) if parent == node]
        if children:
            constraints.append(steps[node] == sum(children))
        elif lower_bound is not None:
            constraints.append(steps[node] >= lower_bound)
    program = cvxpy.Problem(cvxpy.Minimize(sum(terms)), constraints)
    program.solve(solver=cvxpy.CLARABEL, **options)
    return np.array([variable.value for variable in steps]), program


def _worth(variances: Values, n_columns: int, measured: Measured) -> Values:
    return np.broadcast_to(1 / (variances * float(measured.resolution) ** 2), (n_columns,))
