"""Events: a statistic on one side of a threshold."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.audit.statistics import Statistics, epsilon_bound

Floats = NDArray[np.float64]

_INNER = np.linspace(0.0, 1.0, 129)
_TAIL = np.array([0.0005, 0.001, 0.002, 0.004])
LEVELS = np.sort(np.concatenate([_INNER, _TAIL, 1.0 - _TAIL]))
"""The quantiles of both sides together that are tried as thresholds."""


@dataclass(frozen=True)
class Event:
    """A statistic at or above (or below) a threshold, held to be likelier on one side.

    statistic: column of `Statistics.of`. likelier: the side, 0 or 1.
    """

    family: str
    name: str
    statistic: int
    threshold: float
    above: bool
    likelier: int

    def count(self, statistics: Floats) -> int:
        """Return in how many runs it happened; statistics (n_runs, n_statistics)."""
        reached = statistics[:, self.statistic] >= self.threshold
        return int(np.count_nonzero(reached == self.above))

    @property
    def text(self) -> str:
        """Return the event as text for people."""
        return f"{self.name} {'>=' if self.above else '<'} {self.threshold:.6g}"


def choose_events(
    statistics: Statistics, sides: Sequence[Floats], n_test: int, error: float, delta: float = 0.0
) -> tuple[Event, ...]:
    """Return for each family the one event with the largest expected bound in `n_test` further runs of each
    side.

    sides: the statistics of runs of side 0 and of side 1, equally many, independent of those that will
    test the event.
    """
    best: dict[str, tuple[float, Event]] = {}
    for column, (family, name) in enumerate(zip(statistics.families, statistics.names, strict=True)):
        bound, threshold, above, likelier = _best_threshold(
            [side[:, column] for side in sides], n_test, error, delta
        )
        if family not in best or bound > best[family][0]:
            best[family] = bound, Event(family, name, column, threshold, above, likelier)
    return tuple(event for _, event in best.values())


def _best_threshold(
    sides: Sequence[Floats], n_test: int, error: float, delta: float
) -> tuple[float, float, bool, int]:
    n_runs = len(sides[0])
    pooled = np.sort(np.concatenate(sides))
    thresholds = np.unique(pooled[np.rint(LEVELS * (pooled.size - 1)).astype(int)])
    above = np.stack([n_runs - np.searchsorted(np.sort(side), thresholds) for side in sides])
    # (above or below, side, threshold), as many as the test would count
    hits = np.stack([above, n_runs - above]) * (n_test / n_runs)
    bounds = np.stack(
        [epsilon_bound(hits[:, side], hits[:, 1 - side], n_test, error, delta) for side in (0, 1)]
    )
    likelier, direction, place = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    largest = float(bounds[likelier, direction, place])
    return largest, float(thresholds[place]), bool(direction == 0), int(likelier)
