"""The papers' experiments, declared: who is compared, at which parameters, on which spans, how often."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from optstream.evaluation.cells import Calibration, Cell, Point, Study
from optstream.evaluation.contenders import (
    CONTENDERS,
    INFORMED,
    INFORMED_BLOCKS,
    LEVELS_APART,
    POINTS_ONLY,
    RAW,
    cell_of,
)
from optstream.evaluation.data import ALL_YEARS, BEGINNING, FEBRUARY, JUNE, OCTOBER, YEAR

EPSILONS = ("1", "0.1", "0.01")
MONTHS = (FEBRUARY.name, JUNE.name, OCTOBER.name)
TRIALS, FORECAST_TRIALS, GRID_TRIALS = 30, 5, 3
INFORMED_TRIALS, STREAM_TRIALS, COUNTED_TRIALS = 10, 2, 3
"""Of what learns from its past, where a trial is a hundred times as dear as another mechanism's; its trials
hardly differ."""
UNUSUAL_DAYS = ("2016-04-13", "2016-11-16")
"""Ordinary Wednesdays, of no month that was looked at when something was chosen."""
SHORT_TRIALS = 3
BLOCK = 3
"""Trials of a cell, at most: what an interrupted run does again is short, and the short form is a part."""

Entry = tuple[str, Calibration]


@dataclass(frozen=True)
class Block:
    """A part of an experiment: every entry at every point on every span."""

    study: Study
    entries: tuple[Entry, ...]
    points: tuple[Point, ...]
    spans: tuple[str, ...] = MONTHS
    trials: int = TRIALS
    in_a_cell: int = BLOCK

    def cells(self) -> list[Cell]:
        """All of them, each trial once."""
        return [
            cell_of(self.study, name, calibration, point, span, trials)
            for name, calibration in self.entries
            for point in self.points
            for span in self.spans
            for trials in _blocks(1 if name == RAW else self.trials, self.in_a_cell)
        ]


@dataclass(frozen=True)
class Experiment:
    """number: as the issue counts them. figures: of the paper that it reruns."""

    number: int
    title: str
    figures: str
    blocks: tuple[Block, ...]

    def cells(self) -> tuple[Cell, ...]:
        """What is to be run, each cell once."""
        return tuple(dict.fromkeys(cell for block in self.blocks for cell in block.cells()))

    def limited(self, trials: int) -> "Experiment":
        """So many trials at most. They are the first ones of the full form, draw for draw."""
        blocks = (replace(block, trials=min(block.trials, trials)) for block in self.blocks)
        return replace(self, blocks=tuple(blocks))

    def short(self) -> "Experiment":
        """February instead of months and year, nine weeks instead of four years, one day instead of two; three
        trials at most, and one of what is dear: forecasts and whatever learns from its past.
        """
        return replace(self, blocks=tuple(_shortened(block) for block in self.blocks))


def _shortened(block: Block) -> Block:
    short = replace(block, trials=min(block.trials, SHORT_TRIALS))
    if block.study == "counts":
        return short
    if block.study == "forecast" or block.entries == both(INFORMED):
        short = replace(short, trials=1)
    if block.study == "stream":
        return replace(short, spans=(BEGINNING.name,))
    if block.study == "unusual":
        return replace(short, spans=block.spans[:1])
    return replace(short, spans=(FEBRUARY.name,))


def _blocks(trials: int, in_a_cell: int) -> list[tuple[int, int]]:
    return [(first, min(first + in_a_cell, trials)) for first in range(0, trials, in_a_cell)]


def both(*names: str) -> tuple[Entry, ...]:
    """Each name under every calibration that it has."""
    return tuple((name, calibration) for name in names for calibration in CONTENDERS[name].calibrations)


def grid(
    epsilons: Sequence[str], alphas: Sequence[str] = ("1",), counts: Sequence[int] = (10,),
    thresholds: Sequence[str] = ("1000",),
) -> tuple[Point, ...]:  # fmt: skip
    """Every combination."""
    return tuple(
        Point(epsilon, alpha, count, threshold)
        for epsilon in epsilons
        for alpha in alphas
        for count in counts
        for threshold in thresholds
    )


def unique_cells(experiments: Iterable[Experiment]) -> list[Cell]:
    """The cells of several experiments; one that several share is there once."""
    return list(dict.fromkeys(cell for experiment in experiments for cell in experiment.cells()))


COUNTED_STEPS = {"flu": 209, "unemployment": 478, "load": 1392}
"""The finite series of FAST's experiment and their lengths: as the paper's, and a region's February."""
SAMPLED_PERCENT = (2, 5, 10, 15, 20, 30, 40)
BOUND_COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48)

_FOUR = both("Laplace", "DFT", "OptStream ES", "OptStream L1")
_OTHERS = both("Sample", "BudgetDistribution", "BudgetAbsorption", "Fast", "Fast, fixed")
_FAST = both("Fast", "Fast, fixed", "Fast, linear", "Fast, fixed, linear")
_PAPERS_WEIGHTS: Entry = ("OptStream ES, paper's weights", "strict")


def _counted(name: str, n_steps: int) -> tuple[Block, ...]:
    """FAST on one series over its number of samples; beside it noise on every step, and blocks of as many."""
    counts = sorted({max(2, n_steps * percent // 100) for percent in SAMPLED_PERCENT})
    epsilons = ("1", "0.1")
    return (
        Block("counts", _FAST, grid(epsilons, counts=counts), (name,)),
        Block("counts", both("Laplace"), grid(epsilons), (name,)),
        Block("counts", both(INFORMED_BLOCKS), grid(epsilons, counts=counts), (name,), COUNTED_TRIALS),
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        1, "Error a step, region by region", "Figures 2 and 3",
        (
            Block(
                "regions", (*_FOUR, _PAPERS_WEIGHTS, *_OTHERS, *both("PeGaSus", RAW)),
                grid(EPSILONS),
            ),
            Block("regions", both(INFORMED), grid(EPSILONS)),
            # decided twelve times, hence twelve times as slow
            Block("regions", both("OptStream L1, each region"), grid(EPSILONS), trials=10),
        ),
    ),
    Experiment(
        2, "A hierarchy of two levels", "Figure 4",
        (
            Block(
                "hierarchy", (*_FOUR, *both(LEVELS_APART)), grid(["1"], ["10", "50", "100"]),
            ),
            Block(
                "hierarchy", both(INFORMED), grid(["1"], ["10", "50", "100"]), trials=INFORMED_TRIALS,
            ),
        ),
    ),
    Experiment(
        3, "Next-day forecasts", "Figures 5 and 6",
        (
            Block(
                "forecast", both(RAW, "Laplace", "DFT", "OptStream ES", "OptStream L1", INFORMED),
                grid(EPSILONS), trials=FORECAST_TRIALS,
            ),
        ),
    ),
    Experiment(
        4, "What each step contributes", "Figures 7 and 8",
        (
            Block(
                "regions",
                both("Laplace", "OptStream, every step", POINTS_ONLY, "OptStream ES"),
                grid(EPSILONS),
            ),
            Block(
                "hierarchy",
                both("Laplace", LEVELS_APART, POINTS_ONLY, "OptStream ES"),
                grid(["1"], ["10"]),
            ),
        ),
    ),
    Experiment(
        5, "How many points, which threshold", "Figure 9 of the journal version",
        (
            Block(
                "regions", both("OptStream ES", "OptStream L1"),
                grid(EPSILONS, counts=(5, 10, 20), thresholds=("500", "1000", "2000", "5000", "10000")),
                (YEAR.name,), GRID_TRIALS,
            ),
        ),
    ),
    Experiment(
        6, "Larger protected changes", "Figures 10 and 11",
        (
            *(
                Block("regions", _FOUR, grid(["1"], [alpha], [count]))
                for alpha, count in (("10", 10), ("50", 10), ("100", 5))
            ),
            Block("regions", both(INFORMED), grid(["1"], ["10", "50", "100"]), trials=INFORMED_TRIALS),
        ),
    ),
    Experiment(
        7, "PeGaSus beside OptStream", "Figure 12",
        (
            Block(
                "regions",
                both("Laplace", "PeGaSus", "PeGaSus, average", "OptStream ES", "OptStream L1"),
                grid(EPSILONS),
            ),
        ),
    ),
    Experiment(
        8, "The bound of Theorem 11 beside the error, over k", "Theorem 11",
        (
            Block(
                "regions", both(POINTS_ONLY), grid(EPSILONS, counts=BOUND_COUNTS),
                trials=10,
            ),
        ),
    ),
    Experiment(
        9, "FAST: how many samples", "FAST, relative error against samples",
        tuple(block for name, n_steps in COUNTED_STEPS.items() for block in _counted(name, n_steps)),
    ),
    Experiment(
        10, "A stream of four years, from its first day", "No figure of the papers",
        (
            Block(
                "stream", both("Laplace", "OptStream ES", INFORMED), grid(EPSILONS), (ALL_YEARS.name,),
                trials=STREAM_TRIALS, in_a_cell=1,
            ),
        ),
    ),
    Experiment(
        11, "Days unlike all others", "No figure of the papers",
        (
            Block(
                "unusual", both("Laplace", "OptStream ES", INFORMED), grid(EPSILONS), UNUSUAL_DAYS,
                trials=INFORMED_TRIALS,
            ),
        ),
    ),
)  # fmt: skip
