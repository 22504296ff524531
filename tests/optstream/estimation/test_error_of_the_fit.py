"""OptStream's Theorem 12: how far the fit is from the truth, in the weighted norm."""

import numpy as np
import pytest

from optstream.estimation import make_consistent
from optstream.estimation.problem import least_squares
from optstream.stream import AggregationTree, Feature, Measured

FRANCE = AggregationTree.from_parents({"FR": None} | {f"region {number}": "FR" for number in range(4)})
FEATURES = [Feature((range(0, 3), range(3, 8)), "parts"), Feature((range(0, 8),), "day")]


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["variance", "paper"])
@pytest.mark.parametrize("level", [500.0, 5.0], ids=["free", "at the bound"])
def test_it_is_no_farther_from_the_truth_than_what_was_measured(weights, level):
    """The theorem has twice; a projection on a convex set that holds the truth moves no point away."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = FRANCE.add_up(rng.uniform(0, level, (len(FRANCE.leaves), 8)))
        variances = [rng.uniform(0.5, 4, (len(truth), 1)) for _ in range(3)]
        sums = [truth @ one.matrix.T + rng.normal(0, 25, (len(truth), one.n_parts)) for one in FEATURES]
        steps = truth + rng.normal(0, 10, truth.shape)
        measured = Measured.from_public(steps, sums, variances, range(8))
        problem = least_squares(measured, FRANCE, FEATURES, weights)
        answers, fitted = (
            series @ problem.rows.T
            for series in (truth, make_consistent(measured, FRANCE, FEATURES, weights))
        )

        def norm(queries, problem=problem):
            return np.sqrt((problem.weights * queries**2).sum())

        ratios.append(norm(fitted - answers) / norm(problem.targets - answers))
    assert max(ratios) <= 1 + 1e-6
    assert max(ratios) > 0.3  # control: the measurements are not fitted away
