"""What can be audited: mechanisms over consecutive periods, on either side of a pair of neighbours."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource, simulated_noise
from optstream.privacy import Spend, worst_window
from optstream.stream import Measured, PrivatePeriod, State
from studies.audit.neighbours import Neighbours


@dataclass(frozen=True, eq=False)
class Outputs:
    """What many runs released: numbers (n_runs, n_numbers), NaN where there was none, and answers, what a run
    chose (which steps it sampled, which query came out above), (n_runs, n_answers).
    """

    numbers: NDArray[np.float64]
    answers: NDArray[np.int64]

    @classmethod
    def of_numbers(cls, numbers: NDArray[np.int64] | NDArray[np.float64]) -> "Outputs":
        """Return the outputs of runs that chose nothing."""
        return cls(np.asarray(numbers, dtype=np.float64), np.empty((len(numbers), 0), dtype=np.int64))


class Subject(Protocol):
    """A mechanism together with a pair of neighbours."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def neighbours(self) -> str:
        """The pair of neighbours, by name."""

    @property
    def claimed(self) -> float:
        """The epsilon that it claims for this pair."""

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Run it independently on side 0 or 1 of the pair; return what an adversary sees."""
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


HandOn = Callable[[Mechanism, State | None, int], State | None]
"""From a period's mechanism, the state before and the period's first step to the state that it is given."""
History = Sequence[tuple[Mechanism, PrivatePeriod]]
"""Periods in the order of their release, each with the mechanism that measures it."""


@dataclass(frozen=True, eq=False)
class HistorySubject:
    """Two whole histories that neighbours lead to: from rows that are ingested, or from a ledger."""

    name: str
    neighbours: str
    claimed: float
    make: Callable[[], tuple[History, History]]
    hand_on: HandOn | None = None

    @cached_property
    def histories(self) -> tuple[History, History]:
        """The histories of both sides, made once."""
        return self.make()

    @property
    def accountant(self) -> float:
        """What the accountant says that a window of the mechanisms loses, each by itself."""
        return float(max(mechanism.epsilon for side in self.histories for mechanism, _ in side))

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return the measurements of independent runs of side 0 or 1, and which steps were measured."""
        return sampled(self.histories[side], n_runs, noise, self.hand_on)


def sampled(history: History, n_runs: int, noise: NoiseSource, hand_on: HandOn | None = None) -> Outputs:
    """Return all measurements of so many independent runs, as `HistorySubject.sample` does."""
    noises = [BufferedNoise(noise)] * len(history)
    return outputs_of(
        [seen(measured) for measured in release(history, noises, hand_on)] for _ in range(n_runs)
    )


def release(history: History, noises: Sequence[NoiseSource], hand_on: HandOn | None = None) -> list[Measured]:
    """Measure the periods in a row, each with its own noise source and what is handed on of the state that
    the one before left.
    """
    state: State | None = None
    released: list[Measured] = []
    for (mechanism, period), noise in zip(history, noises, strict=True):
        if released and hand_on:
            state = hand_on(mechanism, state, period.first_step)
        released.append(mechanism.measure(period, noise=noise, first_step=period.first_step, state=state))
        state = released[-1].state
    return released


Seen = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Numbers and answers of one period."""


def outputs_of(runs: Iterable[Sequence[Seen]]) -> Outputs:
    """Return the outputs of each run, its periods side by side."""
    listed = list(runs)
    return Outputs(
        numbers=np.array([np.concatenate([numbers for numbers, _ in run]) for run in listed]),
        answers=np.array([np.concatenate([answers for _, answers in run]) for run in listed]),
    )


def seen(measured: Measured) -> Seen:
    """Return a period's numbers, whether each step was measured at each node, and what else was decided."""
    levels = [_seen_at_once(part) for part in measured.parts or (measured,)]
    numbers, answers = zip(*levels, strict=True)
    return np.concatenate(numbers), np.concatenate(answers)


def _seen_at_once(measured: Measured) -> Seen:
    points = np.full((len(measured.points), measured.n_steps), np.nan)
    drawn = np.ones(measured.points.shape, dtype=bool)
    if measured.point_variances is not None:
        drawn &= np.isfinite(measured.point_variances)
    points[:, list(measured.positions)] = np.where(drawn, measured.points, np.nan)
    numbers = np.concatenate([points.ravel(), *(sums.ravel() for sums in measured.answers.values)])
    decided = [np.ravel(choice).astype(np.int64) for choice in (measured.choices or {}).values()]
    return numbers, np.concatenate([(~np.isnan(points)).astype(np.int64).ravel(), *decided])


PRICED_RUNS = 3


@dataclass(frozen=True, eq=False)
class MechanismSubject:
    """One of our mechanisms, one for each period, on a pair of neighbours."""

    name: str
    mechanisms: Sequence[Mechanism]
    pair: Neighbours
    claims: float | None = None

    def __post_init__(self) -> None:
        for mechanism in self.mechanisms:
            self.pair.check(mechanism.model)

    @property
    def neighbours(self) -> str:
        """The pair's neighbouring streams."""
        return self.pair.name

    @property
    def accountant(self) -> float:
        """What the accountant says that any window loses: epsilon, at `delta`."""
        return float(max(one.model.to_epsilon(one.epsilon) for one in self.mechanisms))

    @property
    def delta(self) -> float:
        """At which the mechanism is held to its epsilon."""
        return float(self.mechanisms[0].model.delta)

    @property
    def claimed(self) -> float:
        """What the mechanism is held to."""
        return self.accountant if self.claims is None else self.claims

    @property
    def charged(self) -> float | None:
        """What the accountant charges a window as short as this change; None where the outcome decides."""
        model, noise = self.mechanisms[0].model, simulated_noise(0)
        charges = {
            model.to_epsilon(worst_window(spends, self.pair.span).epsilon)
            for spends in (self._spends(side, noise) for side in (0, 1) for _ in range(PRICED_RUNS))
        }
        return float(charges.pop()) if len(charges) == 1 else None

    def sample(self, side: int, n_runs: int, noise: NoiseSource) -> Outputs:
        """Return the measurements of independent runs of side 0 or 1, and which steps were measured."""
        return sampled(self._history(side), n_runs, noise)

    def _history(self, side: int) -> History:
        resolution = self.mechanisms[0].model.resolution
        return [
            (mechanism, PrivatePeriod.from_values(values, resolution=resolution, first_step=first_step))
            for mechanism, values, first_step in zip(
                self.mechanisms, self.pair.sides[side], self.pair.first_steps, strict=True
            )
        ]

    def _spends(self, side: int, noise: NoiseSource) -> list[Spend]:
        history = self._history(side)
        return [spend for measured in release(history, [noise] * len(history)) for spend in measured.spends]
