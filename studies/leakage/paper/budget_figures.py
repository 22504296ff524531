"""Figures 8 and 9: the budgets of Algorithms 7 and 8, and the noise that they ask for.

The noise of a step is the mean of |Lap(1 / epsilon)|, 1 / epsilon. The paper states neither the number of
releases of figure 8 nor the number of states of figure 9.
"""

from functools import cache

import numpy as np

from studies.leakage import LossFunction, constant_budget, exact_budgets, total_leakage
from studies.leakage.paper.figure import Figure, Point
from studies.leakage.paper.leakage_figures import RETURNING, smoothed

BACKWARD = np.array([[0.8, 0.2], [0.2, 0.8]])
"""Of figure 8, whose forward matrix is `RETURNING`."""
RELEASES = 10
BOUND = 2.0
"""Of figure 9: the total leakage that is kept."""
LENGTHS = (2, 3, 5, 10, 20, 50, 100)
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
STATES = (50, 2)
STRONG, SHORT = 0.001, 10
"""s of figure 9 (a), as in the paper, and T of (b), which it does not state."""


def budgets() -> Figure:
    """Return figure 8: epsilon of each step for 1-DP_T by either algorithm, and the total leakage."""
    exact = exact_budgets(1, backward=BACKWARD, forward=RETURNING).series(RELEASES)
    constant = np.full(RELEASES, constant_budget(1, backward=BACKWARD, forward=RETURNING))
    points = []
    for name, epsilons in (("Algorithm 7", constant), ("Algorithm 8", exact)):
        total = total_leakage(epsilons, backward=BACKWARD, forward=RETURNING)
        for panel, series in (("epsilon of a step", epsilons), ("total leakage", total)):
            points += [Point(panel, "", name, step, y) for step, y in enumerate(series.tolist(), 1)]
    return Figure(8, "budgets that keep total leakage at 1", "step", "nats", tuple(points))


def noise() -> Figure:
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
                    Point(panel, row, "Algorithm 7", x, constant),
                    Point(panel, row, "Algorithm 8", x, exact),
                    Point(panel, row, "no correlation", x, 1 / BOUND),
                ]
    return Figure(
        9, "noise that keeps total leakage at 2", "(a) releases T, (b) s", "mean |noise| a step",
        tuple(points), log_x=True, log_y=True, shared_y=False,
    )  # fmt: skip


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
