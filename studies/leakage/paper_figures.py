"""Figures 3 to 9 of the paper on temporal leakage (Cao et al., IEEE TKDE 2018), as points in one table.

Matrices that the text at hand prints are the paper's; those of figure 5 are lost, and chosen here. The noise
of a step is the mean of |Lap(1 / epsilon)|, 1 / epsilon. The paper states neither the number of releases of
figure 8 nor the number of states of figure 9. Figure 6 times HiGHS (scipy) in place of CPLEX, on programs
with n inequalities, the fewest that we know; its time includes what scipy adds around each program, about a
millisecond. Algorithms 2 to 5 are one way here: pieces of all pairs at once, then a search in them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import permutations
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from studies.leakage import (
    LossFunction,
    backward_leakage,
    constant_budget,
    exact_budgets,
    forward_leakage,
    loss_by_row_pairs,
    supremum,
    total_leakage,
)
from studies.leakage.loss import loss_by_programs

Matrix = NDArray[np.float64]


class Point(NamedTuple):
    """A point of a line in a panel; units as the functions of the figures say."""

    figure: int
    panel: str
    row: str
    line: str
    x: float
    y: float


IDENTITY = np.eye(2)
NEVER_LEFT = np.array([[0.8, 0.2], [0.0, 1.0]])
"""Of examples 2 and 3: the second state is never left."""
THREE_STATES = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
"""Of example 4."""
RETURNING = np.array([[0.8, 0.2], [0.1, 0.9]])
RELEASES, EPSILON = 10, 0.1
"""Of examples 2 and 3."""
SETTINGS = (
    # of figure 5, chosen: without a supremum, and with one, as the text says of (a) and (b), (c) and (d)
    ("(a) identity, ε = 0.23", IDENTITY, 0.23),
    ("(b) (0.8 0.2; 0 1), ε = 0.23", NEVER_LEFT, 0.23),
    ("(c) (0.8 0.2; 0.1 0.9), ε = 0.23", RETURNING, 0.23),
    ("(d) (0.8 0.2; 0 1), ε = 0.15", NEVER_LEFT, 0.15),
)
FOLLOWED = 40
"""Steps of figure 5."""
CHAINS = ((50, 0.0005), (50, 0.005), (50, 0.05), (50, 1.0), (200, 0.005), (200, 1.0))
"""States and s of figure 7: s from 0.005 to 1 as in the paper, and a tenth of its least."""
LONG = 1_000


def leakage_over_time() -> list[Point]:
    """Return figure 3: ten releases at 0.1, one chain known backward, forward, or both ways."""
    epsilons = np.full(RELEASES, EPSILON)
    points = []
    for name, known in (("identity", IDENTITY), ("(0.8 0.2; 0 1)", NEVER_LEFT), ("no chain known", None)):
        for panel, series in (
            ("(a) backward", backward_leakage(epsilons, known)),
            ("(b) forward", forward_leakage(epsilons, known)),
            ("(c) total", total_leakage(epsilons, backward=known, forward=known)),
        ):
            points += [Point(3, panel, "", name, step, y) for step, y in enumerate(series.tolist(), 1)]
    return points


def loss_of_three_states() -> list[Point]:
    """Return figure 4: the loss function of example 4's matrix, over those of its pairs of rows."""
    loss = LossFunction(THREE_STATES)
    amounts = np.unique(np.append(np.linspace(0, 6, 25), loss.pieces.starts))
    lines = {"L, the largest": loss(amounts)}
    for i, j in permutations(range(len(THREE_STATES)), 2):
        lines[f"rows {i + 1} and {j + 1}"] = _loss_of_pair(THREE_STATES[i], THREE_STATES[j], amounts)
    points = [
        Point(4, "", "", name, x, y)
        for name, losses in lines.items()
        for x, y in zip(amounts.tolist(), losses.tolist(), strict=True)
    ]
    return points


def _loss_of_pair(q: Matrix, d: Matrix, amounts: Matrix) -> Matrix:
    """Return the best prefix of the columns by falling q / d, at each amount: Theorem 8."""
    order = np.argsort(-q / d)
    sums_q, sums_d = np.append(0, q[order].cumsum())[:, None], np.append(0, d[order].cumsum())[:, None]
    ratios: Matrix = (sums_q * np.expm1(amounts) + 1) / (sums_d * np.expm1(amounts) + 1)
    return np.asarray(np.log(ratios.max(axis=0)))


def suprema() -> list[Point]:
    """Return figure 5: backward leakage step by step, and where Theorem 11 says that it ends, if at all."""
    points = []
    for panel, matrix, epsilon in SETTINGS:
        leakages = backward_leakage(np.full(FOLLOWED, epsilon), matrix).tolist()
        points += [Point(5, panel, "", "step by step", step, y) for step, y in enumerate(leakages, 1)]
        end = float(supremum(matrix, epsilon))
        if np.isfinite(end):
            points += [Point(5, panel, "", "supremum, Theorem 11", step, end) for step in (1, FOLLOWED)]
    return points


def smoothed(n_states: int, s: float) -> Matrix:
    """Return the identity with s added to each cell, rows normalised: equation 28.

    The smaller s, at least 0, the stronger the correlation.
    """
    rows = np.eye(n_states) + s
    matrix: Matrix = rows / rows.sum(axis=1, keepdims=True)
    return matrix


def strength_of_correlation() -> list[Point]:
    """Return figure 7: backward leakage by states and s, at ε = 1 and 0.1; the last point is the supremum."""
    points = []
    steps = np.unique(np.geomspace(1, LONG, 24).astype(int))
    for n, s in CHAINS:
        loss = LossFunction(smoothed(n, s))
        for epsilon, panel in ((1.0, "(a) ε = 1"), (0.1, "(b) ε = 0.1")):
            leakages = backward_leakage(np.full(LONG, epsilon), loss)
            name = f"s = {s:g}, n = {n}"
            points += [Point(7, panel, "", name, int(step), float(leakages[step - 1])) for step in steps]
    return points


BACKWARD = np.array([[0.8, 0.2], [0.2, 0.8]])
"""Of figure 8, whose forward matrix is `RETURNING`."""
BOUND = 2.0
"""Of figure 9: the total leakage that is kept."""
LENGTHS = (2, 3, 5, 10, 20, 50, 100)
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
STATES = (50, 2)
STRONG, SHORT = 0.001, 10
"""s of figure 9 (a), as in the paper, and T of (b), which it does not state."""


def budgets() -> list[Point]:
    """Return figure 8: epsilon of each step for 1-DP_T by either algorithm, and the total leakage."""
    exact = exact_budgets(1, backward=BACKWARD, forward=RETURNING).series(RELEASES)
    constant = np.full(RELEASES, constant_budget(1, backward=BACKWARD, forward=RETURNING))
    points = []
    for name, epsilons in (("Algorithm 7", constant), ("Algorithm 8", exact)):
        total = total_leakage(epsilons, backward=BACKWARD, forward=RETURNING)
        for panel, series in (("epsilon of a step", epsilons), ("total leakage", total)):
            points += [Point(8, panel, "", name, step, y) for step, y in enumerate(series.tolist(), 1)]
    return points


def noise() -> list[Point]:
    """Return figure 9: mean noise a step for 2-DP_T, by the length of the release and by the strength."""
    points = []
    for n in STATES:
        row = f"{n} states"
        by_length = [(length, noise_of(n, STRONG, length)) for length in LENGTHS]
        by_strength = [(s, noise_of(n, s, SHORT)) for s in STRENGTHS]
        panels = ((f"(a) s = {STRONG:g}, by T", by_length), (f"(b) T = {SHORT}, by s", by_strength))
        for panel, cases in panels:
            for x, (constant, exact) in cases:
                points += [
                    Point(9, panel, row, "Algorithm 7", x, constant),
                    Point(9, panel, row, "Algorithm 8", x, exact),
                    Point(9, panel, row, "no correlation", x, 1 / BOUND),
                ]
    return points


@cache
def _loss(n_states: int, s: float) -> LossFunction:
    return LossFunction(smoothed(n_states, s))


def noise_of(n_states: int, s: float, n_releases: int) -> tuple[float, float]:
    """Return the mean absolute noise a step of Algorithms 7 and 8 for total leakage `BOUND`, T at least two.

    The chain is that of `smoothed`, known both ways.
    """
    loss = _loss(n_states, s)
    exact = exact_budgets(BOUND, backward=loss, forward=loss).series(n_releases)
    return 1 / constant_budget(BOUND, backward=loss, forward=loss), float(np.mean(1 / exact))


Clock = Callable[[], float]
PROGRAMS, PAIRS = "HiGHS, all programs", "Algorithm 1"
PRECOMPUTED, LOOKED_UP, BOTH = "pieces", "L from pieces", "pieces and L"
AMOUNTS = (0.001, 0.01, 0.1, 1.0, 10.0, 20.0)
AMOUNT = 0.1
"""As in figure 6 (a); there, epsilon of each step in (c)."""
RUN_LENGTHS = (1, 5, 20, 100, 300, 1_000, 10_000)


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


def run_times(sizes: Sizes, random: np.random.Generator, clock: Clock) -> list[Point]:
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
                Point(6, panel, "", PROGRAMS, x, once(partial(loss_by_programs, matrix, a))),
                Point(6, panel, "", PAIRS, x, least(partial(loss_by_row_pairs, matrix, a), 1)),
                Point(6, panel, "", LOOKED_UP, x, least(partial(loss, a), 1_000)),
            )
        )

    for n in sizes.states:
        matrix = random_matrix(n, random)
        each_way(f"(a) one L({AMOUNT:g}), by n", n, matrix, AMOUNT)
        seconds = least(partial(LossFunction, matrix), 1)
        points.append(Point(6, "(b) precomputation, by n", "", PRECOMPUTED, n, seconds))
    large = random_matrix(sizes.n_steps_states, random)
    one = least(partial(loss_by_row_pairs, large, AMOUNT), 1)
    panel = f"(c) T steps, n = {sizes.n_steps_states}, by T"
    for length in RUN_LENGTHS:
        epsilons = np.full(length, AMOUNT)
        both = least(partial(backward_leakage, epsilons, large), 1)
        points += [
            Point(6, panel, "", PAIRS, length, length * one),
            Point(6, panel, "", BOTH, length, both),
        ]
    matrix = random_matrix(sizes.amounts_states, random)
    for a in AMOUNTS:
        each_way(f"(d) one L(α), n = {sizes.amounts_states}, by α", a, matrix, a)
    return points


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


def paper_figures(sizes: Sizes, random: np.random.Generator, clock: Clock) -> pl.DataFrame:
    """Return all points, quick figures first; 6 takes as long as its programs."""
    points = [
        *leakage_over_time(), *loss_of_three_states(), *suprema(), *strength_of_correlation(), *budgets(),
        *noise(), *run_times(sizes, random, clock),
    ]  # fmt: skip
    return pl.DataFrame(points, schema=list(Point._fields), orient="row")
