"""What noise leaves in the estimate of a lattice: the dense covariance, whatever it was weighed by."""

from fractions import Fraction

import numpy as np
import pytest

from optstream.estimation.lattice import noise_of_columns
from tests.optstream.estimation.lattices import product


@pytest.mark.parametrize("ratio", [1e4, 1e8, 2.0**36])
@pytest.mark.parametrize("derived", [(), (1,)], ids=["all measured", "regions derived"])
def test_errors_hold_where_cells_are_hardly_known(ratio, derived):
    """Against fractions: with a difference of squares they were a quarter off at 10^10, and 0 beyond."""
    lattice = product(3, 2)
    own = np.ones(len(lattice.nodes))
    own[lattice.leaf_indices] = ratio
    weights = 1.0 / own
    for level in derived:
        weights[list(lattice.levels[level])] = 0.0
    found = noise_of_columns(weights[:, None], own[:, None], lattice)[:, 0]
    exact = [[Fraction(int(one)) for one in row] for row in lattice.add_up(np.eye(len(lattice.leaves)))]
    normal = [
        [sum(Fraction(w) * row[i] * row[j] for w, row in zip(weights, exact, strict=True)) for j in range(6)]
        for i in range(6)
    ]
    inverse = inverted(normal)
    wanted = [
        float(sum(row[i] * inverse[i][j] * row[j] for i in range(6) for j in range(6))) for row in exact
    ]
    assert found == pytest.approx(wanted, rel=1e-4)


def inverted(matrix):
    """The inverse, by elimination."""
    n = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for i in range(n):
        rows[i] = [one / rows[i][i] for one in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]
