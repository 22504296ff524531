"""Times the bounded estimate from 1,000 leaves to a million, against solvers of quadratic programs.

Poisson(0.5) at every leaf and step, three levels, 48 steps, ten points and day parts measured as OptStream
does, epsilon 1, equal shares; parents held. Ours: the whole estimate, and rounding to whole numbers next to
it. The peers solve the very same program through cvxpy, written with sparse sums, as far as they go.
Processor seconds of one process each; memory is that process's most.
"""

import json
import resource
from fractions import Fraction
from math import isqrt, log
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sparse
import typer
from numpy.typing import NDArray

from optstream import AggregationTree, simulated_noise
from optstream.estimation.bounded import held_from_above
from optstream.estimation.least_squares import consistent, project
from optstream.estimation.problem import LeastSquares, least_squares
from optstream.estimation.rounding import rounded_units
from optstream.stream import Measured
from studies.benchmarks.measure import STEPS, in_process, optstream, show, table, timed

SEED = 20250115
LEAVES = [1000, 10_000, 100_000]
PEERS = [100, 300]
OURS = "ours"
SOLVERS = {"OSQP": "OSQP", "Clarabel": "CLARABEL"}
TARGETS = {1000: 0.3, 10_000: 1.5, 100_000: 12.0, 1_000_000: 120.0}
"""Seconds that were asked of the estimate."""
Row = dict[str, Any]


def made_up(n_leaves: int) -> tuple[Any, AggregationTree, Measured]:
    """Return a mechanism, its tree of three levels, and one period that it measured."""
    n_regions = isqrt(n_leaves)
    parents: dict[str, str | None] = {"all": None} | {f"r{region}": "all" for region in range(n_regions)}
    tree = AggregationTree.from_parents(parents | {f"l{n}": f"r{n % n_regions}" for n in range(n_leaves)})
    counts = np.random.default_rng(SEED).poisson(0.5, (n_leaves, STEPS)).astype(np.float64)
    mechanism = optstream(tree)
    return mechanism, tree, mechanism.measure(counts, noise=simulated_noise(SEED))


def ours(n_leaves: int) -> Row:
    """Return what our estimate takes, how near the optimum it is, and what rounding takes."""
    mechanism, tree, measured = made_up(n_leaves)
    taken, found = timed(lambda: consistent(measured, tree, mechanism.features))
    rounding, _ = timed(lambda: rounded_units(found.values, tree, Fraction(1), first_step=0, least=0))
    assert found.optimality is not None
    return {
        "seconds": taken.processor,
        "rounding": rounding.processor,
        "rounds": found.optimality.rounds,
        "gap": found.optimality.gap,
        "KKT residual": found.optimality.residual,
    }


def peer(name: str, n_leaves: int) -> Row:
    """Return what a solver takes for the same program, and how far its answer is from ours, in units."""
    mechanism, tree, measured = made_up(n_leaves)
    ours_found = consistent(measured, tree, mechanism.features).values
    problem = least_squares(measured, tree, mechanism.features, "variance")
    held = held_from_above(problem, tree, project(problem, tree))
    taken, values = timed(lambda: solved(name, held, tree))
    return {"seconds": taken.processor, "distance": float(np.abs(values - ours_found).max())}


def solved(name: str, problem: LeastSquares, tree: AggregationTree) -> NDArray[np.float64]:
    """Solve the program by cvxpy: a variable for every node, sparse sums between them."""
    import cvxpy

    n_nodes, parents = len(tree.nodes), np.array(tree.parents)
    below = sparse.csr_array((np.ones(n_nodes - 1), (parents[1:], np.arange(1, n_nodes))), (n_nodes, n_nodes))
    inner = np.setdiff1d(np.arange(n_nodes), tree.leaf_indices)
    series = cvxpy.Variable((n_nodes, STEPS))
    misfit = cvxpy.multiply(np.sqrt(problem.weights), series @ problem.rows.T - problem.targets)
    sums = (sparse.eye_array(n_nodes).tocsr() - below)[inner]
    constraints = [sums @ series == 0, series[tree.leaf_indices] >= 0]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(misfit)), constraints).solve(solver=SOLVERS[name])
    return tree.add_up(np.asarray(series.value)[tree.leaf_indices])


def main(
    leaves: Annotated[list[int], typer.Option(help="Of ours; may be repeated.")] = LEAVES,
    peers: Annotated[list[int], typer.Option(help="Leaves of the peers; may be repeated.")] = PEERS,
    one: Annotated[tuple[str, int] | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure each size in a process of its own, and print the table and the slope."""
    if one:
        row = ours(one[1]) if one[0] == OURS else peer(*one)
        print(json.dumps(row | {"GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
        return
    asked = [(OURS, count) for count in leaves]
    asked += [(name, count) for name in (OURS, *SOLVERS) for count in peers]
    names = ("seconds", "rounding", "rounds", "gap", "KKT residual", "distance", "GiB")
    rows = table(["program", "leaves"], ["limit, s", *names])
    seconds: dict[int, float] = {}
    for program, count in asked:
        row, _ = in_process("-m", "studies", "bounded-program", "--one", program, str(count))
        if program == OURS:
            seconds[count] = row["seconds"]
        figures = (f"{row[name]:.3g}" if name in row else "" for name in names)
        limit = f"{TARGETS[count]:g}" if program == OURS and count in TARGETS else ""
        rows.add_row(program, f"{count:,}", limit, *figures)
    show(rows)
    least, most = min(leaves), max(leaves)
    if most > least:
        slope = log(seconds[most] / seconds[least]) / log(most / least)
        show(f"slope from {least:,} to {most:,} leaves, log-log: {slope:.2f}")
