"""Times the loss function: precomputed pieces, Algorithm 1, and the programs given to an LP solver.

    python -m benchmarks.leakage [--states 50] [--pairs 2450] [--seed 0]

A random matrix (rows from a flat Dirichlet distribution). All three compute L(a) for the same a, and the last
line says how far apart they are. The solver is HiGHS (scipy) on the Charnes-Cooper form with n inequalities,
the smallest that we know; all pairs of rows are solved unless --pairs says fewer, and then the table says so
and nothing is extrapolated. Its time includes what scipy adds around each program, a millisecond or so. CPU
seconds, the least of several runs for what takes less than a second.
"""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import T, command, fastest, in_words, parser, show, table
from benchmarks.peers.linear_fractional import loss_by_programs
from optstream.privacy.leakage import LossFunction, backward_leakage, loss_by_row_pairs

AMOUNT = 1.0
YEARS = 10 * 17_520


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--states", type=int, default=50, help="states of the chain (default: 50)")
    options.add_argument("--pairs", type=int, help="ordered pairs of rows given to the solver (default: all)")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args(arguments)
    matrix = np.random.default_rng(given.seed).dirichlet(np.ones(given.states), given.states)
    compare(matrix, list(permutations(range(given.states), 2))[: given.pairs])


def compare(matrix: NDArray[np.float64], pairs: Sequence[tuple[int, int]]) -> None:
    """Time each way for one matrix; print a table, and how far apart the ways are."""
    many, budgets = np.linspace(0, 10, 100_000), np.full(YEARS, 0.01)
    precomputing, loss = cost(lambda: LossFunction(matrix), 20)
    calling, value = cost_of_a_call(lambda: loss(AMOUNT), 20_000)
    inside, _ = cost_of_a_call(lambda: loss.at(AMOUNT), 100_000)
    array, _ = cost(lambda: loss(many), 10)
    following, _ = cost(lambda: backward_leakage(budgets, loss), 3)
    direct, by_pairs = cost(lambda: loss_by_row_pairs(matrix, AMOUNT), 20)
    solving, by_programs = cost(lambda: loss_by_programs(matrix, AMOUNT, pairs), 1)
    n_states, n_pairs = len(matrix), len(matrix) * (len(matrix) - 1)
    solved = f"{len(pairs):,} of {n_pairs:,} pairs" if len(pairs) < n_pairs else f"all {n_pairs:,} pairs"
    rows = table(["what"], ["CPU time", "an L(a)"])
    for what, whole, each in (
        (f"precompute {loss.pieces.q.size} pieces, n = {n_states}", precomputing, None),
        ("one L(a), then", None, calling),
        ("one L(a) inside a recursion", None, inside),
        (f"an array of {many.size:,}", array, array / many.size),
        (f"backward leakage of {YEARS:,} steps", following, following / YEARS),
        ("Algorithm 1, nothing precomputed", direct, direct),
        (f"HiGHS, {solved}", solving, solving),
    ):
        rows.add_row(what, *("" if seconds is None else in_words(seconds) for seconds in (whole, each)))
    show(
        rows,
        f"precomputing is {solving / precomputing:,.0f} times faster than these programs for one a; "
        f"L({AMOUNT:g}) = {value:.9f}, Algorithm 1 {by_pairs - value:+.1e}, "
        f"programs {by_programs - value:+.1e}",
    )


def cost(work: Callable[[], T], times: int) -> tuple[float, T]:
    """Return the least CPU seconds of so many runs, and the result."""
    taken, result = fastest(work, times)
    return taken.processor, result


def cost_of_a_call(work: Callable[[], T], times: int) -> tuple[float, T]:
    """Return CPU seconds a call, over so many in a row, for what is shorter than the clock's tick."""

    def row() -> T:
        for _ in range(times - 1):
            work()
        return work()

    seconds, result = cost(row, 3)
    return seconds / times, result


if __name__ == "__main__":
    command(main)
