"""The papers' experiments, declared: who is compared, at which parameters, on which spans, how often."""

from studies.evaluation.contenders import (
    INFORMED,
    INFORMED_BLOCKS,
    INFORMED_JOINT,
    INFORMED_WEATHER,
    JOINT_NOISE,
    LEVELS_APART,
    POINTS_ONLY,
    RAW,
)
from studies.evaluation.data import ALL_YEARS, YEAR
from studies.evaluation.experiment import Block, Entry, Experiment, both, grid

EPSILONS = ("1", "0.1", "0.01")
FORECAST_TRIALS, GRID_TRIALS = 5, 3
UNUSUAL_TRIALS, STREAM_TRIALS, COUNTED_TRIALS = 10, 1, 3
"""Of what looks at long or odd spans, where a trial is a hundred times as dear as others; its trials
hardly differ."""
UNUSUAL_DAYS = ("2016-04-13", "2016-11-16")
"""Ordinary Wednesdays, of no month that was looked at when something was chosen."""

COUNTED_STEPS = {"flu": 209, "unemployment": 478, "load": 1392}
"""The finite series of FAST's experiment and their lengths: as the paper's, and a region's February."""
SAMPLED_PERCENT = (2, 5, 10, 15, 20, 30, 40)
BOUND_COUNTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48)

_FOUR = both("Laplace", "DFT", "OptStream ES", "OptStream L1")
_OTHERS = both("Sample", "BudgetDistribution", "BudgetAbsorption", "Fast", "Fast, fixed")
_FAST = both("Fast", "Fast, fixed", "Fast, linear", "Fast, fixed, linear")
_ONE_GUARANTEE: tuple[Entry, ...] = tuple((name, "strict") for name in ("Laplace", "OptStream ES", INFORMED))
_PAPERS_WEIGHTS: Entry = ("OptStream ES, paper's weights", "strict")


def _counted(name: str, n_steps: int) -> tuple[Block, ...]:
    """Return the cells of FAST on one series over its number of samples; beside it noise on every step, and
    blocks of as many.
    """
    counts = sorted({max(2, n_steps * percent // 100) for percent in SAMPLED_PERCENT})
    epsilons = ("1", "0.1")
    return (
        Block("counts", _FAST, grid(epsilons, counts=counts), (name,)),
        Block("counts", both("Laplace"), grid(epsilons), (name,)),
        Block(
            "counts",
            both(INFORMED_BLOCKS),
            grid(epsilons, counts=counts),
            (name,),
            COUNTED_TRIALS,
            in_short=name != "unemployment",  # month by month it takes as long as all the others together
        ),
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
                "hierarchy", (*_FOUR, *both(LEVELS_APART, INFORMED)), grid(["1"], ["10", "50", "100"]),
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
            Block("regions", both(INFORMED), grid(["1"], ["10", "50", "100"])),
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
                "stream", _ONE_GUARANTEE, grid(EPSILONS), (ALL_YEARS.name,),
                trials=STREAM_TRIALS, in_a_cell=1,
            ),
        ),
    ),
    Experiment(
        11, "Days unlike all others", "No figure of the papers",
        (
            Block(
                "unusual", _ONE_GUARANTEE, grid(EPSILONS), UNUSUAL_DAYS,
                trials=UNUSUAL_TRIALS,
            ),
        ),
    ),
    Experiment(
        12, "Joint noise, the choice of blocks, and weather", "No figure of the papers",
        (
            Block("regions", both("Laplace", JOINT_NOISE), grid(EPSILONS)),
            Block(
                "regions", both(INFORMED_BLOCKS, INFORMED, INFORMED_JOINT, INFORMED_WEATHER), grid(EPSILONS),
            ),
        ),
    ),
)  # fmt: skip
