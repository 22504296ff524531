"""Trees, lattices and bounded programs: random small ones of every shape, and large ones of small counts."""

import itertools
import warnings

import cvxpy
import numpy as np
from numpy.typing import NDArray

from optstream.estimation.problem import LeastSquares
from optstream.stream import AggregationTree, Feature, Lattice

N_STEPS = 48
TOLERANCES = (1e-12, 1e-10, 1e-8)
"""Tight first; what is too tight for one case's numbers is relaxed, never the bound or the sums."""


def product(n_regions: int, n_sectors: int, n_zones: int = 0) -> Lattice:
    parents: dict[str, str | None] = {"all": None}
    parents |= {f"zone {zone}": "all" for zone in range(n_zones)}
    parents |= {f"{one}": f"zone {one % n_zones}" if n_zones else "all" for one in range(n_regions)}
    cells = {f"s{two}": [f"{one}-s{two}" for one in range(n_regions)] for two in range(n_sectors)}
    parents |= {f"{one}-s{two}": f"{one}" for one in range(n_regions) for two in range(n_sectors)}
    return Lattice.of_tree(AggregationTree.from_parents(parents), "sector", cells)


def incomplete(seed: int) -> Lattice:
    """Return cells that are in any region and any sector: several in the same two, and none in others."""
    rng = np.random.default_rng(seed)
    regions = [0, 1, 2, *rng.integers(0, 3, 6).tolist()]
    members = [0, 1, *rng.integers(0, 2, 7).tolist()]
    parents: dict[str, str | None] = {"all": None, **{f"r{one}": "all" for one in range(3)}}
    parents |= {f"c{cell}": f"r{one}" for cell, one in enumerate(regions)}
    cells = {f"s{two}": [f"c{cell}" for cell, own in enumerate(members) if own == two] for two in range(2)}
    return Lattice.of_tree(AggregationTree.from_parents(parents), "sector", cells)


def random_program(seed: int, *, features: bool = False) -> tuple[LeastSquares, Lattice, float]:
    """Return a program of few counts, levels measured or derived, and its bound; features: of sums, too."""
    rng = np.random.default_rng(seed)
    if rng.uniform() < 0.3:
        lattice = incomplete(seed)
    else:
        lattice = product(*(int(rng.integers(1, most)) for most in (5, 4)), int(rng.choice([0, 1])))
    n_steps = 4 if features else int(rng.choice([1, 3]))
    halves = [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    rows = np.array([*np.eye(n_steps), *(halves if features else [])])
    truth = lattice.add_up(rng.poisson(0.5, (len(lattice.leaves), n_steps)).astype(float)) @ rows.T
    by_level = np.exp(rng.normal(0, 1, lattice.n_levels)) / 9
    weights = np.repeat(by_level[lattice.depths][:, None], len(rows), axis=1)
    if seed % 3 == 0:
        weights = weights * np.exp(rng.normal(0, 1, weights.shape))
    if seed % 3 == 1:  # plans that differ between levels
        weights = weights * np.exp(rng.normal(0, 1, (lattice.n_levels, len(rows))))[lattice.depths]
    derived = rng.uniform(size=lattice.n_levels) < 0.3
    derived[lattice.tree.n_levels - 1] = False
    weights[derived[lattice.depths]] = 0.0
    noise = rng.laplace(0, 1, weights.shape) / np.sqrt(2 * np.maximum(weights, 1e-300))
    return LeastSquares(rows, np.where(weights > 0, truth + noise, 0.0), weights), lattice, 0.0


def random_case(seed: int) -> tuple[LeastSquares, AggregationTree, float]:
    """Return a program of any shape: trees, steps, features, levels, weights that separate or not."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    n_steps = int(rng.choice([1, 2, 5, 8, 12]))
    rows = [np.eye(n_steps)]
    for _ in range(int(rng.integers(0, 3))):
        cuts = np.unique(np.concatenate([[0], rng.integers(0, n_steps, int(rng.integers(0, 3)))]))
        spans = list(itertools.pairwise([*cuts.tolist(), n_steps]))
        rows.append(np.array([[float(a <= t < b) for t in range(n_steps)] for a, b in spans]))
    queries = np.concatenate(rows)
    counts = rng.poisson(rng.choice([0.05, 0.5, 3.0]), (len(tree.leaves), n_steps))
    truth = tree.add_up(counts.astype(float))
    shares = np.maximum(rng.dirichlet(np.ones(tree.n_levels)), 0.02)
    measured = rng.uniform(size=tree.n_levels) > 0.3
    parts = len(queries) - n_steps
    scale = np.concatenate([np.full(n_steps, rng.uniform(1, 4)), np.full(parts, rng.uniform(1, 20))])
    kind = rng.integers(0, 3)
    if kind == 0:
        weights = np.outer(shares[tree.depths] ** 2, 1 / scale**2)
    elif kind == 1:
        uneven = np.exp(rng.normal(0, 1, (tree.n_levels, len(queries))))
        weights = shares[tree.depths][:, None] ** 2 / (scale**2 * uneven)[tree.depths]
    else:
        weights = np.exp(rng.normal(0, 2, (len(tree.nodes), len(queries))))
    is_leaf = np.isin(np.arange(len(tree.nodes)), tree.leaf_indices)
    weights = weights * (measured[tree.depths] | is_leaf)[:, None]
    noise = rng.laplace(0, 1, weights.shape) / np.sqrt(2 * np.maximum(weights, 1e-300))
    targets = np.where(weights > 0, truth @ queries.T + noise, 0.0)
    return LeastSquares(queries, targets, weights), tree, float(rng.choice([0.0, 0.0, -0.5, 1.0]))


def random_tree(rng: np.random.Generator) -> AggregationTree:
    n_nodes = int(rng.choice([1, 2, 3, 5, 9, 14]))
    parents: dict[str, str | None] = {"0": None}
    for node in range(1, n_nodes):
        parents[str(node)] = str(int(rng.integers(max(0, node - 5), node)))
    return AggregationTree.from_parents(parents)


def wide_tree(n_leaves: int, width: int = 100) -> AggregationTree:
    """Return a tree of three levels, families of at least `width` leaves."""
    regions = max(1, n_leaves // width)
    above = np.minimum(np.arange(n_leaves) // width, regions - 1) + 1
    names = ("all", *(f"r{number}" for number in range(regions)), *map(str, range(n_leaves)))
    return AggregationTree(names, (-1, *([0] * regions), *above.tolist()))


def counts_problem(n_leaves: int) -> tuple[LeastSquares, AggregationTree]:
    rng, tree = np.random.default_rng(0), wide_tree(n_leaves)
    rows = np.concatenate([np.eye(N_STEPS), *(one.matrix for one in Feature.day_parts(N_STEPS))])
    truth = tree.add_up(rng.poisson(0.5, (n_leaves, N_STEPS)).astype(float)) @ rows.T
    return LeastSquares(rows, truth + rng.laplace(0, 60, truth.shape), np.full(truth.shape, 1 / 7200)), tree


def standard_errors(problem: LeastSquares, tree: AggregationTree) -> NDArray[np.float64]:
    """Return the standard error of every node's value without the bound, by the dense inverse."""
    sums, identity = tree.add_up(np.eye(len(tree.leaves))), np.eye(problem.rows.shape[1])
    seen = np.kron(sums, problem.rows)
    covariance = np.linalg.inv((seen.T * problem.weights.ravel()) @ seen)
    asked = np.kron(sums, identity)
    return np.sqrt(np.einsum("ij,jk,ik->i", asked, covariance, asked)).reshape(len(tree.nodes), -1)


def objective(problem: LeastSquares, series: NDArray[np.float64]) -> float:
    return 0.5 * float((problem.weights * (series @ problem.rows.T - problem.targets) ** 2).sum())


def solve_program(problem: LeastSquares, tree: AggregationTree, lower_bound: float) -> NDArray[np.float64]:
    """Return every node's series (n_nodes, n_steps); fails where the solver does."""
    # Scaled to numbers around 1: interior-point tolerances are absolute in part.
    scale = float(np.sqrt(np.median(problem.weights[problem.weights > 0])))
    sums = tree.add_up(np.eye(len(tree.leaves)))
    leaves = cvxpy.Variable((len(tree.leaves), problem.rows.shape[1]))
    misfit = cvxpy.multiply(
        np.sqrt(problem.weights) / scale, sums @ leaves @ problem.rows.T - problem.targets
    )
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(misfit)), [leaves >= lower_bound])
    for tolerance in TOLERANCES:
        limits = {"tol_gap_abs": tolerance, "tol_gap_rel": tolerance, "tol_feas": tolerance}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inexact answer is not taken
            try:
                program.solve(solver=cvxpy.CLARABEL, **limits)
            except cvxpy.SolverError:
                continue
        if program.status == cvxpy.OPTIMAL:
            return tree.add_up(np.maximum(leaves.value, lower_bound))
    raise AssertionError(f"the oracle has no answer: {program.status}")
