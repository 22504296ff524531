"""What an experiment is made of: cells, each a mechanism with its parameters on one span for some trials."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

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
