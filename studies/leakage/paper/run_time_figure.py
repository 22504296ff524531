"""Figure 6 and section 6.1: what the loss function costs beside an LP solver, and that they agree.

The solver is HiGHS (scipy) in place of CPLEX, on programs with n inequalities, the fewest that we know; its
time includes what scipy adds around each program, about a millisecond. Algorithms 2 to 5 are one way here:
pieces of all pairs at once, then a search in them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from studies.leakage import LossFunction, backward_leakage, loss_by_row_pairs
from studies.leakage.paper.figure import Figure, Point
from studies.leakage.paper.leakage_figures import Matrix
from studies.leakage.paper.programs import loss_by_programs

Clock = Callable[[], float]
PROGRAMS, PAIRS = "HiGHS, all programs", "Algorithm 1"
PRECOMPUTED, LOOKED_UP, FOLLOWED = "pieces", "L from pieces", "pieces and L"
AMOUNTS = (0.001, 0.01, 0.1, 1.0, 10.0, 20.0)
AMOUNT = 0.1
"""As in figure 6 (a); there, epsilon of each step in (c)."""
LENGTHS = (1, 5, 20, 100, 300, 1_000, 10_000)


@dataclass(frozen=True)
class Sizes:
    """How much is timed and compared.

    states: n of (a) and (b). n_steps_states: n of (c). amounts_states: n of (d). n_matrices: random matrices
    of section 6.1 whose loss is compared with the programs', of `matrices_states`. runs: of what takes less
    than a second; the least counts.
    """

    states: tuple[int, ...] = (10, 20, 30, 40, 50)
    n_steps_states: int = 100
    amounts_states: int = 30
    n_matrices: int = 100
    matrices_states: int = 30
    runs: int = 5


def random_matrix(n_states: int, random: np.random.Generator) -> Matrix:
    """Return a matrix whose rows are drawn from a flat Dirichlet distribution."""
    return random.dirichlet(np.ones(n_states), n_states)


def run_times(sizes: Sizes, random: np.random.Generator, clock: Clock) -> Figure:
    """Return figure 6: seconds of one loss by n (a), of precomputation (b), of T steps (c), by α (d).

    clock: says seconds; of this process's processor, they hold on a busy machine too. Every point is a time
    that was measured, none extrapolated but T steps of Algorithm 1: T times one.
    """

    def least(work: Callable[[], object], times: int) -> float:
        """Return the fewest seconds of `sizes.runs` runs, each of so many calls, by the call."""
        seconds = []
        for _ in range(sizes.runs):
            began = clock()
            for _ in range(times):
                work()
            seconds.append((clock() - began) / times)
        return min(seconds)

    def once(work: Callable[[], object]) -> float:
        began = clock()
        work()
        return clock() - began

    points: list[Point] = []

    def each_way(panel: str, x: float, matrix: Matrix, a: float) -> None:
        loss = LossFunction(matrix)
        points.extend(
            (
                Point(panel, "", PROGRAMS, x, once(partial(loss_by_programs, matrix, a))),
                Point(panel, "", PAIRS, x, least(partial(loss_by_row_pairs, matrix, a), 1)),
                Point(panel, "", LOOKED_UP, x, least(partial(loss, a), 1_000)),
            )
        )

    for n in sizes.states:
        matrix = random_matrix(n, random)
        each_way(f"(a) one L({AMOUNT:g}), by n", n, matrix, AMOUNT)
        seconds = least(partial(LossFunction, matrix), 1)
        points.append(Point("(b) precomputation, by n", "", PRECOMPUTED, n, seconds))
    large = random_matrix(sizes.n_steps_states, random)
    one = least(partial(loss_by_row_pairs, large, AMOUNT), 1)
    panel = f"(c) T steps, n = {sizes.n_steps_states}, by T"
    for length in LENGTHS:
        epsilons = np.full(length, AMOUNT)
        both = least(partial(backward_leakage, epsilons, large), 1)
        points += [Point(panel, "", PAIRS, length, length * one), Point(panel, "", FOLLOWED, length, both)]
    matrix = random_matrix(sizes.amounts_states, random)
    for a in AMOUNTS:
        each_way(f"(d) one L(α), n = {sizes.amounts_states}, by α", a, matrix, a)
    return Figure(
        6, "run time", "(a, b) states n, (c) steps T, (d) α", "CPU seconds", tuple(points),
        log_x=True, log_y=True, shared_y=False,
    )  # fmt: skip


def largest_difference(sizes: Sizes, random: np.random.Generator) -> float:
    """Return how far Algorithm 1 and the pieces are from the programs at `AMOUNT`: section 6.1, correctness.

    The largest of all matrices, of both.
    """
    found = 0.0
    for _ in range(sizes.n_matrices):
        matrix = random_matrix(sizes.matrices_states, random)
        expected = loss_by_programs(matrix, AMOUNT)
        for loss in (LossFunction(matrix)(AMOUNT), loss_by_row_pairs(matrix, AMOUNT)):
            found = max(found, abs(float(loss) - expected))
    return found
