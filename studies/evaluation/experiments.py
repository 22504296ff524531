"""The papers' experiments, declared: who is compared, at which parameters, on which spans, how often."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from optstream.errors import ParameterError
from studies.evaluation.data import ALL_YEARS, BEGINNING, FEBRUARY, JUNE, OCTOBER, YEAR

# What an experiment is made of: cells, each a mechanism with its parameters on one span for some trials.

Calibration = Literal["strict", "paper", "none"]
Study = Literal["regions", "hierarchy", "forecast", "counts", "stream", "unusual"]


@dataclass(frozen=True)
class Point:
    """One point of a grid.

    Args:
        epsilon: Exact decimal.
        alpha: Exact decimal, in the data's unit.
        n_samples: k of OptStream and DFT, M of FAST, blocks in a window of HistoryInformed where they are
            given.
        threshold: Of L1 sampling, exact decimal, in the data's unit times steps.
    """

    epsilon: str
    alpha: str = "1"
    n_samples: int | None = 10
    threshold: str | None = "1000"


@dataclass(frozen=True)
class Cell:
    """What is run at once: nothing smaller is resumed, nothing larger is one draw of the pool.

    Args:
        study: What is done with the releases.
        mechanism: A name of `contenders`.
        calibration: Under which scales it runs.
        point: Its parameters.
        span: A month, a year, several, a day, or the name of a series of counts.
        trials: First and stop.
    """

    study: Study
    mechanism: str
    calibration: Calibration
    point: Point
    span: str
    trials: tuple[int, int]

    @property
    def key(self) -> str:
        """A name for the cell that says everything about it: 20 hexadecimal digits."""
        return hashlib.sha256(_text(asdict(self))).hexdigest()[:20]

    def entropy(self, seed: int, trial: int) -> list[int]:
        """Return what one trial's noise is seeded with: a function of what is run, not of blocks or order.

        seed: of the evaluation. trial: number of the trial.
        """
        what = asdict(replace(self, trials=(0, 0)))
        words = np.frombuffer(hashlib.sha256(_text(what)).digest()[:16], dtype="<u4")
        return [seed, *(int(word) for word in words), trial]


@dataclass(frozen=True)
class TrialResult:
    """One trial: metrics by name, and what the accountant says of what it drew.

    drawn: the worst window of this very history, drawn_aligned: of windows inside one period; None for what
    has no guarantee. A metric that ends in `_nation` is of the root, any other of the regions or the series.
    """

    trial: int
    metrics: Mapping[str, float]
    drawn: Fraction | None
    drawn_aligned: Fraction | None


Trial = tuple[TrialResult, Fraction | None]
"""One trial, and what the mechanism's plan costs any window."""


@dataclass(frozen=True)
class CellResult:
    """A finished cell.

    Attributes:
        cell: What was run.
        epsilon_plan: What its plan, repeated without end, costs any window; None for what has no guarantee.
        trials: The result of each trial.
        seconds: Of the run, the only thing here that another run does not repeat.
    """

    cell: Cell
    epsilon_plan: Fraction | None
    trials: tuple[TrialResult, ...]
    seconds: float


def _text(what: Mapping[str, Any]) -> bytes:
    return json.dumps(what, sort_keys=True, separators=(",", ":")).encode()


# Who is compared: each contender's name, what it takes from a grid point, and under which scales it runs.

RAW = "no noise"
"""The real values as they are: what a forecast or last week's figures would be without privacy."""
JOINT_NOISE = "Laplace, joint noise"
"""Noise drawn together for groups of steps, by customers of whom each is in one region all day."""
LEVELS_APART = "Laplace, levels apart"
"""Every level released by itself, not made consistent."""
POINTS_ONLY = "OptStream ES, no optimisation"
"""Sampled points, perturbed and reconstructed."""
INFORMED = "HistoryInformed"
"""As all others, with noise of its own for each measurement."""
INFORMED_JOINT = "HistoryInformed, joint noise"
INFORMED_WEATHER = "HistoryInformed, joint noise, temperature"
"""It knows each region's mean temperature of the day, too."""
INFORMED_BLOCKS = "HistoryInformed, blocks given"
"""As many in a window as FAST has samples."""
LEAD_DAYS = 7
HISTORY_DAYS = 28
"""Before a month, for what learns from its own past releases; they are paid for like any other."""
Uses = Literal["n_samples", "threshold"]


@dataclass(frozen=True)
class Contender:
    """What is compared, beside its name.

    Args:
        uses: What of a grid point the mechanism depends on.
        each_region: Decided for every region by itself, not once for all.
        calibrations: Those under which its noise differs.
        lead_days: Days before a month that are released too and not compared: at least a week, so that last
            week's release is there on its first day.
    """

    uses: frozenset[Uses] = frozenset()
    each_region: bool = False
    calibrations: tuple[Calibration, ...] = ("strict",)
    lead_days: int = LEAD_DAYS


_BOTH: tuple[Calibration, ...] = ("strict", "paper")
_K, _K_THETA = frozenset[Uses](["n_samples"]), frozenset[Uses](["n_samples", "threshold"])

CONTENDERS: dict[str, Contender] = {
    RAW: Contender(calibrations=("none",)),
    "Laplace": Contender(),
    JOINT_NOISE: Contender(),
    LEVELS_APART: Contender(),
    "DFT": Contender(_K, calibrations=_BOTH),
    "OptStream ES": Contender(_K, calibrations=_BOTH),
    "OptStream ES, paper's weights": Contender(_K),
    POINTS_ONLY: Contender(_K),
    "OptStream, every step": Contender(calibrations=_BOTH),
    "OptStream L1": Contender(_K_THETA, calibrations=_BOTH),
    "OptStream L1, each region": Contender(_K_THETA, each_region=True, calibrations=_BOTH),
    "Sample": Contender(),
    "BudgetDistribution": Contender(),
    "BudgetAbsorption": Contender(),
    "PeGaSus": Contender(calibrations=_BOTH),
    "PeGaSus, average": Contender(calibrations=_BOTH),
    "Fast": Contender(_K),
    "Fast, fixed": Contender(_K),
    "Fast, linear": Contender(_K),
    "Fast, fixed, linear": Contender(_K),
    INFORMED: Contender(lead_days=HISTORY_DAYS),
    INFORMED_JOINT: Contender(lead_days=HISTORY_DAYS),
    INFORMED_WEATHER: Contender(lead_days=HISTORY_DAYS),
    INFORMED_BLOCKS: Contender(_K, lead_days=HISTORY_DAYS),
}


def cell_of(
    study: Study, mechanism: str, calibration: Calibration, point: Point, span: str, trials: tuple[int, int]
) -> Cell:
    """Return a cell that names only what its mechanism depends on, so that equal work is the same cell.

    Raises ParameterError for an unknown mechanism, or a calibration that it does not have.
    """
    contender = CONTENDERS.get(mechanism)
    if contender is None:
        raise ParameterError(f"mechanism must be one of {', '.join(CONTENDERS)}; got {mechanism!r}")
    if calibration not in contender.calibrations:
        raise ParameterError(
            f"{mechanism} has {' and '.join(contender.calibrations)} calibration; got {calibration!r}"
        )
    if "n_samples" not in contender.uses:
        point = replace(point, n_samples=None)
    if "threshold" not in contender.uses:
        point = replace(point, threshold=None)
    if mechanism == RAW:
        point = Point("inf", "0", None, None)
    return Cell(study, mechanism, calibration, point, span, trials)


# What an experiment is: blocks of entries, points and spans, in full, with fewer trials, or short.

MONTHS = (FEBRUARY.name, JUNE.name, OCTOBER.name)
TRIALS, SHORT_TRIALS = 30, 3
BLOCK = 3
"""Trials of a cell, at most: what an interrupted run does again is short, and the short form is a part."""

Entry = tuple[str, Calibration]


@dataclass(frozen=True)
class Block:
    """A part of an experiment: every entry at every point on every span. in_a_cell: trials, at most.
    in_short: whether the short form has it.
    """

    study: Study
    entries: tuple[Entry, ...]
    points: tuple[Point, ...]
    spans: tuple[str, ...] = MONTHS
    trials: int = TRIALS
    in_a_cell: int = BLOCK
    in_short: bool = True

    def cells(self) -> list[Cell]:
        """Return all of them, each trial once."""
        return [
            cell_of(self.study, name, calibration, point, span, trials)
            for name, calibration in self.entries
            for point in self.points
            for span in self.spans
            for trials in _blocks(1 if name == RAW else self.trials, self.in_a_cell)
        ]


@dataclass(frozen=True)
class Experiment:
    """An experiment: what it shows, and the cells that it runs.

    Args:
        number: As the evaluation counts them.
        title: Of its part of the page.
        figures: Of the paper that it reruns.
        blocks: Its cells, by entries, points and spans.
    """

    number: int
    title: str
    figures: str
    blocks: tuple[Block, ...]

    def cells(self) -> tuple[Cell, ...]:
        """Return what is to be run, each cell once."""
        return tuple(dict.fromkeys(cell for block in self.blocks for cell in block.cells()))

    def limited(self, trials: int) -> "Experiment":
        """Return the experiment with fewer trials.

        trials: at most so many of each cell. They are the first ones of the full form, draw for draw.
        """
        blocks = (replace(block, trials=min(block.trials, trials)) for block in self.blocks)
        return replace(self, blocks=tuple(blocks))

    def short(self) -> "Experiment":
        """Return a short version, for a first look.

        Returns february instead of months and year, nine weeks instead of four years, one day instead of two;
        three trials at most, and one of what takes long: forecasts and whatever learns from its past.
        """
        return replace(self, blocks=tuple(_shortened(block) for block in self.blocks if block.in_short))


def _shortened(block: Block) -> Block:
    learns = any(name.startswith(INFORMED) for name, _ in block.entries)
    most = 1 if learns or block.study == "forecast" else SHORT_TRIALS
    short = replace(block, trials=min(block.trials, most))
    if block.study == "counts":
        return short
    if block.study == "stream":
        return replace(short, spans=(BEGINNING.name,))
    if block.study == "unusual":
        return replace(short, spans=block.spans[:1])
    return replace(short, spans=(FEBRUARY.name,))


def _blocks(trials: int, in_a_cell: int) -> list[tuple[int, int]]:
    return [(first, min(first + in_a_cell, trials)) for first in range(0, trials, in_a_cell)]


def both(*names: str) -> tuple[Entry, ...]:
    """Return each name under every calibration that it has."""
    return tuple((name, calibration) for name in names for calibration in CONTENDERS[name].calibrations)


def grid(
    epsilons: Sequence[str], alphas: Sequence[str] = ("1",), counts: Sequence[int] = (10,),
    thresholds: Sequence[str] = ("1000",),
) -> tuple[Point, ...]:  # fmt: skip
    """Return every combination."""
    return tuple(
        Point(epsilon, alpha, count, threshold)
        for epsilon in epsilons
        for alpha in alphas
        for count in counts
        for threshold in thresholds
    )


def unique_cells(experiments: Iterable[Experiment]) -> list[Cell]:
    """Return the cells of several experiments; one that several share is there once.

    Returns the cells, in the order in which they are first met.
    """
    return list(dict.fromkeys(cell for experiment in experiments for cell in experiment.cells()))


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
