"""What can be audited: anything that can be run on either side of a pair of neighbours."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource


@dataclass(frozen=True, eq=False)
class Outputs:
    """What many runs released, all that an adversary sees of them.

    numbers: (n_runs, n_numbers), NaN where a run released no such number. answers: (n_runs, n_answers), small
    integers: what a run chose (which steps it sampled, which query came out above).
    """

    numbers: NDArray[np.float64]
    answers: NDArray[np.int64]

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.int64] | NDArray[np.float64]) -> "Outputs":
        """Return the outputs of runs that chose nothing."""
        return cls(np.asarray(numbers, dtype=np.float64), np.empty((len(numbers), 0), dtype=np.int64))

    @classmethod
    def of_answers(cls, answers: NDArray[np.int64]) -> "Outputs":
        """Return the outputs of runs that released choices only."""
        return cls(np.empty((len(answers), 0)), answers)


class Subject(Protocol):
    """A mechanism together with a pair of neighbours."""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        ...

    @property
    def neighbours(self) -> str:
        """The pair of neighbours, by name."""
        ...

    @property
    def claimed(self) -> float:
        """The epsilon that it claims for this pair."""
        ...

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Run it independently on one side of the pair.

        side: 0 or 1. n_runs: how many runs. noise: handed to the mechanism. Returns what an adversary sees of
        each run.
        """
        ...


class BufferedNoise:
    """The same noise drawn in large batches: for many small draws, each number handed out once."""

    def __init__(self, source: NoiseSource, batch: int = 2**14) -> None:
        self.simulated = source.simulated
        self._source = source
        self._batch = batch
        self._stock: dict[float, tuple[NDArray[np.int64], int]] = {}

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return draws as the source returns them, from the buffer. Raises NoiseError as it does."""
        count = int(np.prod(size))
        stock, used = self._stock.get(scale, (np.empty(0, dtype=np.int64), 0))
        if used + count > stock.size:
            stock, used = self._source.discrete_laplace(scale, (max(self._batch, count),)), 0
        self._stock[scale] = stock, used + count
        return stock[used : used + count].reshape(size).copy()

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the source's own, for bounds differ from draw to draw."""
        return self._source.uniform_below(bounds)
