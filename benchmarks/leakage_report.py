"""Reruns figures 7 to 9 of the leakage paper: leakage over time, and the noise of Algorithms 7 and 8.

    python -m benchmarks.leakage_report

Chains of n states as in section 6.2: the identity, smoothed by s (equation 28; the smaller s, the stronger
the correlation), known both ways. The noise is the mean of |Lap(1 / epsilon)| over T steps: their epsilons
keep the total leakage at alpha = 2. The paper does not state n of figure 9. Nothing is read or random.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from optstream.privacy.leakage import LossFunction, backward_leakage, constant_budget, exact_budgets, supremum

BACKWARD, FORWARD = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]
"""Of figure 8."""
STATES = (50, 200)
LENGTHS = (2, 5, 10, 50)
LONG = 10_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute and print."""
    parser(__doc__).parse_args(arguments)
    growth = table(["figure 7: n", "s", "epsilon"], ["supremum of BPL", "90 % of it at step"])
    for n in STATES:
        for s in (0.005, 0.05, 1.0):
            for epsilon in (1.0, 0.1):
                end, step = growth_of(n, s, epsilon)
                growth.add_row(str(n), f"{s:g}", f"{epsilon:g}", f"{end:.4g}", str(step))
    show(growth, "backward leakage")
    known = {"backward": BACKWARD, "forward": FORWARD}
    constant, exact = constant_budget(1, **known), exact_budgets(1, **known)
    print(
        f"figure 8, alpha = 1: Algorithm 7 {constant:.4f} a step; "
        f"Algorithm 8 {exact.first:.4f}, {exact.middle:.4f} between, {exact.last:.4f}"
    )
    noise = table(
        ["figure 9: n", "s"], ["Algorithm 7", *(f"Algorithm 8, T = {length}" for length in LENGTHS)]
    )
    for n in (2, 50):
        for s in (0.001, 0.01, 0.1, 1.0):
            constant_noise, *exact_noise = noise_of(n, s, 2.0)
            noise.add_row(str(n), f"{s:g}", f"{constant_noise:.4g}", *(f"{one:.4g}" for one in exact_noise))
    show(noise, "mean |noise| a step; 0.5 if nothing is known")


def smoothed(n_states: int, s: float) -> NDArray[np.float64]:
    """Return the identity with s added to each cell, rows normalised: equation 28."""
    rows = np.eye(n_states) + s
    matrix: NDArray[np.float64] = rows / rows.sum(axis=1, keepdims=True)
    return matrix


@cache
def _loss(n_states: int, s: float) -> LossFunction:
    return LossFunction(smoothed(n_states, s))


def growth_of(n_states: int, s: float, epsilon: float) -> tuple[float, int]:
    """Return where the backward leakage ends, and the first step, from 1, with nine tenths of it."""
    loss = _loss(n_states, s)
    end = float(supremum(loss, epsilon))
    leakages = backward_leakage(np.full(LONG, epsilon), loss)
    return end, int(np.argmax(leakages >= 0.9 * end)) + 1


def noise_of(n_states: int, s: float, alpha: float) -> list[float]:
    """Return the mean absolute noise a step: of Algorithm 7, and of Algorithm 8 for each length."""
    loss = _loss(n_states, s)
    exact = exact_budgets(alpha, backward=loss, forward=loss)
    constant = 1 / constant_budget(alpha, backward=loss, forward=loss)
    return [constant, *(float(np.mean(1 / exact.series(length))) for length in LENGTHS)]


if __name__ == "__main__":
    command(main)
