"""What an experiment is: blocks of entries, points and spans, in full, with fewer trials, or short."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from studies.evaluation.cells import Calibration, Cell, Point, Study
from studies.evaluation.contenders import CONTENDERS, INFORMED, RAW, cell_of
from studies.evaluation.data import BEGINNING, FEBRUARY, JUNE, OCTOBER

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
