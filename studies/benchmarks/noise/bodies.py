"""Looks for a better body than the cube for joint noise, where sliding windows cut a group of steps.

    python -m studies.benchmarks.noise.bodies [--window 48] [--groups 8 12 16 24] [--samples 2000]

A norm N on the g steps of a group charges a window N of the cube that it meets: the first k steps f(k), the
last k steps h(k). For f(k) = h(k) = (k / g)^p the smallest body is the hull of these cubes, each by its
charge; p = 0 is the cube itself, p = 1 has Laplace noise's charges. A step's variance is
(g + 1)(g + 2) T^2 E u^2, u uniform in the body and T the most that any window is charged; it is printed for
epsilon 1 and alpha 1, beside Laplace noise at each step and the bound below which no norm comes
(docs/decisions/0027-noise-bodies.md). E u^2 by simulation in polar coordinates about the cube, each radius by
a linear program; its standard error beside it.
"""

from math import exp, lgamma, log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from studies.benchmarks.harness.measure import command, parser, show, table

Floats = NDArray[np.float64]
POWERS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
BATCHES = 20
"""Of the samples, for the standard error."""


def gauge(point: Floats, charges: Floats) -> float:
    """Return the norm of a point, (g,), of at least 0: the dual of what each first and last k steps allow."""
    steps = np.arange(len(point))
    first = steps[None] <= steps[:, None]
    sums = np.concatenate([first, first[:, ::-1]]).astype(np.float64)
    found = linprog(-point, A_ub=sums, b_ub=np.tile(charges, 2), bounds=(0, None), method="highs")
    return float(-found.fun)


def most_charged(charges: Floats, window: int) -> float:
    """Return what the worst window is charged, with groups of len(charges) steps one after the other."""
    g, part = len(charges), np.concatenate([[0.0], charges])
    cuts = ((last, (window - last) // g, (window - last) % g) for last in range(min(g, window + 1)))
    return float(max(part[last] + whole + part[first] for last, whole, first in cuts))


def mean_square(charges: Floats, samples: int, generator: np.random.Generator) -> tuple[float, float]:
    """Return E u^2 of one coordinate, u uniform in the body, and its standard error."""
    g = len(charges)
    if (charges == 1).all():
        return 1 / 3, 0.0
    # uniform on the cube's faces, as its cone measure is
    points = generator.uniform(0, 1, (samples, g))
    points[np.arange(samples), generator.integers(g, size=samples)] = 1
    radius = np.array([1 / gauge(point, charges) for point in points])
    above, below = (points**2).sum(1) * radius ** (g + 2), radius**g
    batches = [np.array_split(part, BATCHES) for part in (above, below)]
    each = [a.mean() / b.mean() / (g + 2) for a, b in zip(*batches, strict=True)]
    return float(above.mean() / below.mean() / (g + 2)), float(np.std(each) / BATCHES**0.5)


def least_variance(g: int, window: int) -> float:
    """Return the bound: no body that holds the cube has less moment than the ball of the cube's volume."""
    volume = exp((g / 2) * log(pi) - lgamma(g / 2 + 1))
    return float((g + 1) * (window / g) ** 2 * 4 / volume ** (2 / g))


def main() -> None:
    """Print a row for each size of group."""
    options = parser(__doc__, groups=[4, 8, 10, 12, 16, 24], samples=2000)
    options.add_argument("--window", type=int, default=48, help="steps")
    given = options.parse_args()
    generator = np.random.default_rng(0)
    found = table(["steps a group"], [*(f"p = {power:g}" for power in POWERS), "no norm below"])
    for g in given.groups:
        cells = []
        for power in POWERS:
            charges = (np.arange(1, g + 1) / g) ** power
            square, error = mean_square(charges, given.samples, generator)
            factor = (g + 1) * (g + 2) * most_charged(charges, given.window) ** 2
            cells.append(f"{factor * square:,.0f} ± {factor * error:,.0f}")
        found.add_row(str(g), *cells, f"{least_variance(g, given.window):,.0f}")
    show(f"variance of a step; Laplace noise at each step: {2 * given.window**2:,}", found)


if __name__ == "__main__":
    command(main)
