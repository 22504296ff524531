"""Figures 3, 4, 5 and 7: leakage over time, the loss function, suprema, the strength of correlation.

Matrices that the text at hand prints are the paper's; those of figure 5 are lost, and chosen here.
"""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from studies.leakage import (
    LossFunction,
    backward_leakage,
    forward_leakage,
    supremum,
    total_leakage,
)
from studies.leakage.paper.figure import Figure, Point

Matrix = NDArray[np.float64]
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
STRENGTHS = ((50, 0.0005), (50, 0.005), (50, 0.05), (50, 1.0), (200, 0.005), (200, 1.0))
"""States and s of figure 7: s from 0.005 to 1 as in the paper, and a tenth of its least."""
LONG = 1_000


def leakage_over_time() -> Figure:
    """Return figure 3: ten releases at 0.1, one chain known backward, forward, or both ways."""
    epsilons = np.full(RELEASES, EPSILON)
    points = []
    for name, known in (("identity", IDENTITY), ("(0.8 0.2; 0 1)", NEVER_LEFT), ("no chain known", None)):
        for panel, series in (
            ("(a) backward", backward_leakage(epsilons, known)),
            ("(b) forward", forward_leakage(epsilons, known)),
            ("(c) total", total_leakage(epsilons, backward=known, forward=known)),
        ):
            points += [Point(panel, "", name, step, y) for step, y in enumerate(series.tolist(), 1)]
    return Figure(3, "leakage of ten releases at ε = 0.1", "step", "leakage", tuple(points))


def loss_of_three_states() -> Figure:
    """Return figure 4: the loss function of example 4's matrix, over those of its pairs of rows."""
    loss = LossFunction(THREE_STATES)
    amounts = np.unique(np.append(np.linspace(0, 6, 25), loss.pieces.starts))
    lines = {"L, the largest": loss(amounts)}
    for i, j in permutations(range(len(THREE_STATES)), 2):
        lines[f"rows {i + 1} and {j + 1}"] = _loss_of_pair(THREE_STATES[i], THREE_STATES[j], amounts)
    points = [
        Point("", "", name, x, y)
        for name, losses in lines.items()
        for x, y in zip(amounts.tolist(), losses.tolist(), strict=True)
    ]
    return Figure(4, "loss function of a matrix of three states", "α", "L(α)", tuple(points))


def _loss_of_pair(q: Matrix, d: Matrix, amounts: Matrix) -> Matrix:
    """Return the best prefix of the columns by falling q / d, at each amount: Theorem 8."""
    order = np.argsort(-q / d)
    sums_q, sums_d = np.append(0, q[order].cumsum())[:, None], np.append(0, d[order].cumsum())[:, None]
    ratios: Matrix = (sums_q * np.expm1(amounts) + 1) / (sums_d * np.expm1(amounts) + 1)
    return np.asarray(np.log(ratios.max(axis=0)))


def suprema() -> Figure:
    """Return figure 5: backward leakage step by step, and where Theorem 11 says that it ends, if at all."""
    points = []
    for panel, matrix, epsilon in SETTINGS:
        leakages = backward_leakage(np.full(FOLLOWED, epsilon), matrix).tolist()
        points += [Point(panel, "", "step by step", step, y) for step, y in enumerate(leakages, 1)]
        end = float(supremum(matrix, epsilon))
        if np.isfinite(end):
            points += [Point(panel, "", "supremum, Theorem 11", step, end) for step in (1, FOLLOWED)]
    return Figure(5, "backward leakage and its supremum", "step", "leakage", tuple(points), shared_y=False)


def smoothed(n_states: int, s: float) -> Matrix:
    """Return the identity with s added to each cell, rows normalised: equation 28.

    The smaller s, at least 0, the stronger the correlation.
    """
    rows = np.eye(n_states) + s
    matrix: Matrix = rows / rows.sum(axis=1, keepdims=True)
    return matrix


def strength_of_correlation() -> Figure:
    """Return figure 7: backward leakage by states and s, at ε = 1 and 0.1; the last point is the supremum."""
    points = []
    steps = np.unique(np.geomspace(1, LONG, 24).astype(int))
    for n, s in STRENGTHS:
        loss = LossFunction(smoothed(n, s))
        for epsilon, panel in ((1.0, "(a) ε = 1"), (0.1, "(b) ε = 0.1")):
            leakages = backward_leakage(np.full(LONG, epsilon), loss)
            name = f"s = {s:g}, n = {n}"
            points += [Point(panel, "", name, int(step), float(leakages[step - 1])) for step in steps]
    return Figure(
        7, "backward leakage by strength of correlation", "step", "leakage", tuple(points),
        log_x=True, log_y=True, shared_y=False,
    )  # fmt: skip
