"""The consistency program as the OptStream paper writes it, one variable a node and feature part.

The peer that `benchmarks/release.py` times beside the closed form, and the oracle of the tests.
"""

import cvxpy
import numpy as np


def naive_program(measured, tree, features, weights, lower_bound=0.0, interpolation_weight=0.2, **options):
    """Return (values (n_nodes, n_steps), the cvxpy problem) for one period of public or noisy measurements.

    Variables for every node, feature and part; constraints say that parts and children add up. `weights`
    and the objective are those of `optstream.estimation.weighting`, written out term by term. `options` go
    to the solver.
    """
    n_nodes, n_steps = len(tree.nodes), measured.n_steps
    series = measured.interpolation
    if series is None:
        grid = np.arange(n_steps)
        series = np.array([np.interp(grid, measured.positions, row) for row in measured.point_values])
    steps = [cvxpy.Variable(n_steps) for _ in range(n_nodes)]
    parts = [[cvxpy.Variable(feature.n_parts) for feature in features] for _ in range(n_nodes)]
    terms, constraints = [], []
    for node in range(n_nodes):
        if weights == "paper":
            terms.append(cvxpy.sum_squares(steps[node] - series[node]) / n_steps)
        else:
            variance = np.broadcast_to(measured.point_variances[node], (len(measured.positions),))
            variance = variance * float(measured.resolution) ** 2
            for value, step, own in zip(
                measured.point_values[node], measured.positions, variance, strict=True
            ):
                terms.append(cvxpy.square(steps[node][step] - value) / own)
            share = interpolation_weight * np.mean(1 / variance)
            for step in sorted(set(range(n_steps)) - set(measured.positions)):
                terms.append(share * cvxpy.square(steps[node][step] - series[node][step]))
        for number, feature in enumerate(features):
            seen = measured.feature_sums[number][node]
            if weights == "paper":
                terms.append(cvxpy.sum_squares(parts[node][number] - seen) / feature.n_parts)
            else:
                variance = np.broadcast_to(measured.sum_variances[number][node], (feature.n_parts,))
                variance = variance * float(measured.resolution) ** 2
                terms.append(cvxpy.sum(cvxpy.square(parts[node][number] - seen) / variance))
            for index, part in enumerate(feature.parts):
                constraints.append(
                    parts[node][number][index] == cvxpy.sum(steps[node][part.start : part.stop])
                )
        children = [steps[child] for child, parent in enumerate(tree.parents) if parent == node]
        if children:
            constraints.append(steps[node] == sum(children))
        elif lower_bound is not None:
            constraints.append(steps[node] >= lower_bound)
    program = cvxpy.Problem(cvxpy.Minimize(sum(terms)), constraints)
    program.solve(solver=cvxpy.CLARABEL, **options)
    return np.array([variable.value for variable in steps]), program
