"""How the errors of a period hang together, as estimates tell it: by weighted sums of leaves and of times."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optstream.estimation.error_products import ErrorProducts
from optstream.stream.public_days import PublicDays

Floats = NDArray[np.float64]
MOST_EARLIER = 34
"""Days before a day with which its errors are said to hang together, where the estimate looks at them."""


class CovarianceOfSums(Protocol):
    """What tells how the errors of leaves hang together: by weighted sums of leaves and of times.

    Times are the steps of a period, then the sums over each of `n_earlier` days before it, the nearest first.
    Where levels of a tree are trusted differently it tells of nodes in the place of leaves (`of_nodes`).
    """

    @property
    def n_earlier(self) -> int:
        """Days before; 0 where errors of days are independent."""

    @property
    def of_nodes(self) -> bool:
        """Whether weights are of all nodes of the tree, and not of its leaves."""

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of p times q sums adds up from, by weights (p, n_leaves), or (p,
        n_nodes) where it is of nodes, and (q, n_times).
        """


@dataclass(frozen=True, eq=False)
class SumsOfTimes:
    """What another covariance says of sums of its times.

    Attributes:
        inner: The other.
        times: (n_times, n_inner), weights: of a period's steps, then of the days before it.
        n_earlier: Of these days.
        factor: What variances are multiplied with.
    """

    inner: CovarianceOfSums
    times: Floats
    n_earlier: int
    factor: float

    @property
    def of_nodes(self) -> bool:
        """As the other says."""
        return self.inner.of_nodes

    def products(self, leaves: Floats, times: Floats) -> ErrorProducts:
        """Return what the covariance of sums adds up from."""
        return self.inner.products(leaves, times @ self.times).scaled(self.factor)


@dataclass(frozen=True, eq=False)
class AskedTimes:
    """What the errors of a period hang together with, as sums of runs of steps.

    Attributes:
        weights: (n_times, n_runs): of the period's steps, then of the days before it.
        starts: (n_runs,), running index of each run's first step.
        lengths: (n_runs,), steps that follow each other on the public clock, within one day.
    """

    weights: Floats
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def of_steps(self) -> Floats:
        """The weights of single steps, (n_times, n_asked), from the first that is asked for to the last."""
        first = int(self.starts.min())
        found = np.zeros((len(self.weights), int((self.starts + self.lengths).max()) - first))
        for weights, start, length in zip(self.weights.T, self.starts - first, self.lengths, strict=True):
            found[:, start : start + length] = weights[:, None]
        return found


def times_before(days: PublicDays, steps: range, earliest: int, is_first: bool) -> AskedTimes:
    """Return what the errors of a period hang together with: each of its steps, then all steps of each whole
    day before it, the nearest first, up to `MOST_EARLIER`. A day is one run, or a few where clocks change.

    earliest: the first step that the estimate looks at. is_first: whether nothing was measured before that
    step: then its day counts as a whole one.
    """
    while is_first and days.day_of(earliest - 1) == days.day_of(earliest):
        earliest -= 1
    longest = MOST_EARLIER * (days.steps_per_day + 4)  # some days are longer
    before = np.arange(max(earliest, steps.start - longest), steps.start)
    clock = days.clock(before)
    of_days = clock // days.steps_per_day
    numbers = np.unique(of_days)[::-1]
    if numbers.size and days.day_of(int(before[0]) - 1) == numbers[-1]:
        numbers = numbers[:-1]  # of that day only the last steps are looked at
    asked = numbers[:MOST_EARLIER]
    is_first_of_run = np.ones(before.size, dtype=np.bool_)
    is_first_of_run[1:] = (np.diff(clock) != 1) | (np.diff(of_days) != 0)
    begins = np.flatnonzero(is_first_of_run)
    lengths = np.diff(begins, append=before.size)
    chosen = np.isin(of_days[begins], asked)
    begins, lengths = begins[chosen], lengths[chosen]
    n_steps, n_runs = len(steps), begins.size
    weights = np.zeros((n_steps + asked.size, n_steps + n_runs))
    weights[:n_steps, :n_steps] = np.eye(n_steps)
    weights[n_steps:, n_steps:] = of_days[begins] == asked[:, None]
    return AskedTimes(
        weights,
        np.concatenate([np.arange(steps.start, steps.stop), before[begins]]),
        np.concatenate([np.ones(n_steps, dtype=np.int64), lengths]),
    )
