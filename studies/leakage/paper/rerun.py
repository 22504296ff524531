"""All figures of the paper in turn, quick ones first."""

from collections.abc import Iterator

import numpy as np

from studies.leakage.paper import budget_figures, leakage_figures
from studies.leakage.paper.figure import Figure
from studies.leakage.paper.run_time_figure import Clock, Sizes, run_times

FORMAT = "optstream.leakage-paper/1"


def paper_figures(sizes: Sizes, random: np.random.Generator, clock: Clock) -> Iterator[Figure]:
    """Yield figures 3, 4, 5, 7, 8, 9 as they are computed, and 6, which takes as long as its programs."""
    yield leakage_figures.leakage_over_time()
    yield leakage_figures.loss_of_three_states()
    yield leakage_figures.suprema()
    yield leakage_figures.strength_of_correlation()
    yield budget_figures.budgets()
    yield budget_figures.noise()
    yield run_times(sizes, random, clock)
