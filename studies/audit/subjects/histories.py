"""Mechanisms of ours over consecutive periods: how they are released in a row, and what an adversary sees."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource
from optstream.stream import Measured, PrivatePeriod, State
from studies.audit.subjects.subject import BufferedNoise, Outputs

HandOn = Callable[[Mechanism, State | None, int], State | None]
"""From a period's mechanism, the state before and the period's first step to the state that it is given."""
History = Sequence[tuple[Mechanism, PrivatePeriod]]
"""Periods in the order of their release, each with the mechanism that measures it."""


@dataclass(frozen=True, eq=False)
class HistorySubject:
    """Two whole histories that neighbours lead to, whatever stands between a change and what is measured.

    `MechanismSubject` gives a mechanism two streams of sums. Here the sums themselves, the periods that are
    released and their mechanisms come from elsewhere: from rows that are ingested, or from a ledger that
    makes a day wait.

    Args:
        name: Of the mechanism.
        neighbours: The pair's name.
        claimed: Epsilon by docs/privacy.md, section 1, for this change.
        make: Both histories, asked for at the first run.
        hand_on: What a period's mechanism is given of the state that the one before left; None for all of it.
    """

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
        """Return what an adversary sees of independent runs of one side.

        side: 0 or 1. n_runs: how many runs. noise: handed to the mechanisms. Returns all measurements of each
        run, in units of the resolution, and which steps were measured.
        """
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
    """Return what was seen in each run, its periods side by side."""
    listed = list(runs)
    return Outputs(
        numbers=np.array([np.concatenate([numbers for numbers, _ in run]) for run in listed]),
        answers=np.array([np.concatenate([answers for _, answers in run]) for run in listed]),
    )


def seen(measured: Measured) -> Seen:
    """Return a period's numbers, then whether each step was measured at each node and what else was decided.

    A point stands at its step, so that runs that measured other steps compare.
    """
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
