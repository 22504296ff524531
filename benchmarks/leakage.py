"""How fast the loss function is: precomputed pieces, Algorithm 1, and the programs given to an LP solver.

    python benchmarks/leakage.py [--states 50] [--pairs 2450] [--seed 0]

A random matrix (rows from a flat Dirichlet distribution). All three compute L(a) for the same a, and the last
line says how far apart they are. The solver is HiGHS (scipy) on the Charnes-Cooper form with n inequalities,
the smallest that we know; all pairs of rows are solved unless --pairs says fewer, and then the table says so
and nothing is extrapolated. Its time includes what scipy adds around each program, a millisecond or so. CPU
seconds, best of several runs for what takes less than a second.
"""

import argparse
import sys
import time
from itertools import permutations

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.linear_fractional import loss_by_programs
from optstream.privacy.leakage import LossFunction, backward_leakage, loss_by_row_pairs

AMOUNT = 1.0
YEARS = 10 * 17_520
WIDTH = 110


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=50, help="states of the chain (default: 50)")
    parser.add_argument("--pairs", type=int, help="ordered pairs of rows given to the solver (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    n_states, generator = arguments.states, np.random.default_rng(arguments.seed)
    matrix = generator.dirichlet(np.ones(n_states), n_states)
    pairs = list(permutations(range(n_states), 2))[: arguments.pairs]
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    show(console, matrix, pairs)
    return 0


def show(console: Console, matrix: np.ndarray, pairs: list[tuple[int, int]]) -> None:
    """One table, and the ratios."""
    precomputing, loss = timed(lambda: LossFunction(matrix), 20)
    calling, value = repeated(lambda: loss(AMOUNT), 20_000)
    inside, _ = repeated(lambda: loss.at(AMOUNT), 100_000)
    many = np.linspace(0, 10, 100_000)
    array, _ = timed(lambda: loss(many), 10)
    following, _ = timed(lambda: backward_leakage(np.full(YEARS, 0.01), loss), 3)
    direct, by_pairs = timed(lambda: loss_by_row_pairs(matrix, AMOUNT), 20)
    solving, by_programs = timed(lambda: loss_by_programs(matrix, AMOUNT, pairs), 1)
    n_states, n_pairs = len(matrix), len(matrix) * (len(matrix) - 1)
    solved = f"{len(pairs):,} of {n_pairs:,} pairs" if len(pairs) < n_pairs else f"all {n_pairs:,} pairs"
    table = Table("what", "CPU time", "an L(a)", box=None)
    table.add_row(f"precompute {loss.pieces.q.size} pieces, n = {n_states}", seconds(precomputing), "")
    table.add_row("one L(a), then", "", seconds(calling))
    table.add_row("one L(a) inside a recursion", "", seconds(inside))
    table.add_row(f"an array of {many.size:,}", seconds(array), seconds(array / many.size))
    table.add_row(f"backward leakage of {YEARS:,} steps", seconds(following), seconds(following / YEARS))
    table.add_row("Algorithm 1, nothing precomputed", seconds(direct), seconds(direct))
    table.add_row(f"HiGHS, {solved}", seconds(solving), seconds(solving))
    console.print(table)
    console.print(
        f"precomputing is {solving / precomputing:,.0f} times faster than these programs for one a; "
        f"L({AMOUNT:g}) = {value:.9f}, Algorithm 1 {by_pairs - value:+.1e}, "
        f"programs {by_programs - value:+.1e}"
    )


def timed(work, times):
    """The fewest CPU seconds of so many runs, and what the work returned."""
    best = np.inf
    for _ in range(times):
        started = time.process_time()
        result = work()
        best = min(best, time.process_time() - started)
    return best, result


def repeated(work, times):
    """CPU seconds a call, over so many in a row, for what is shorter than the clock's tick."""

    def row():
        for _ in range(times):
            result = work()
        return result

    best, result = timed(row, 3)
    return best / times, result


def seconds(value: float) -> str:
    """Seconds, or milliseconds or microseconds where they are few."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value * 1e6:.2f} µs"


if __name__ == "__main__":
    sys.exit(main())
