"""Blocks of steps, and tables of lags in which each pair of them has its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Gate = Literal["always", "kind", "event"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Linear functions of a series: `worth` times the sum over `lengths` steps from `clock` on.

    All (n,). kinds: of the day that a block lies in. events: a number for each stretch of days that were
    found unlike all others, 0 outside of them. Blocks that differ in what gates a component do not share it.
    """

    clock: NDArray[np.int64]
    lengths: NDArray[np.int64]
    kinds: NDArray[np.int64]
    events: NDArray[np.int64]
    worth: Floats

    @classmethod
    def at(
        cls,
        clock: NDArray[np.int64],
        lengths: NDArray[np.int64] | None = None,
        *,
        kinds: NDArray[np.int64] | None = None,
        events: NDArray[np.int64] | None = None,
        worth: Floats | None = None,
    ) -> "Blocks":
        """Return single steps of alike days, but for what is given."""
        zeros, ones = np.zeros(clock.size, dtype=np.int64), np.ones(clock.size, dtype=np.int64)
        return cls(
            clock,
            ones if lengths is None else lengths,
            zeros if kinds is None else kinds,
            zeros if events is None else events,
            np.ones(clock.size) if worth is None else worth,
        )

    def between(self, first: int, stop: int) -> "Blocks":
        """Return those from a place on, up to another."""
        part = slice(first, stop)
        return Blocks(
            self.clock[part], self.lengths[part], self.kinds[part], self.events[part], self.worth[part]
        )


@dataclass(frozen=True, eq=False)
class LagTables:
    """The position of each pair of blocks in a table of lags: a kernel is computed once for each lag.

    days: the lags of the table, in days. Blocks of `a` and of `b` steps at lag k have covariance
    sum_(i<a, j<b) kernel(k + i - j), a convolution of the table. groups: for each pair of lengths the rows
    and columns that have them, and their places in the table. worths: of each pair, 0 where a gate is shut.
    """

    days: Floats
    groups: tuple[tuple[NDArray[np.int64], NDArray[np.int64], int, int, NDArray[np.int64]], ...]
    worths: Mapping[Gate, Floats]

    @classmethod
    @lru_cache(maxsize=4)
    def between(cls, rows: Blocks, columns: Blocks, steps_per_day: int) -> "LagTables":
        """Return the tables of two sets of blocks; those of the last sets are kept, for learning asks
        often.
        """
        lags = rows.clock[:, None] - columns.clock[None, :]
        longest = max(int(rows.lengths.max(initial=1)), int(columns.lengths.max(initial=1)))
        least, most = int(lags.min(initial=0)) - longest, int(lags.max(initial=0)) + longest
        groups = []
        for long in np.unique(rows.lengths):
            for wide in np.unique(columns.lengths):
                chosen = np.flatnonzero(rows.lengths == long), np.flatnonzero(columns.lengths == wide)
                # a convolution loses wide - 1 entries before the table's first
                places = lags[np.ix_(*chosen)] - least - (int(wide) - 1)
                groups.append((chosen[0], chosen[1], int(long), int(wide), places))
        worth = rows.worth[:, None] * columns.worth[None, :]
        worths: dict[Gate, Floats] = {
            "always": worth,
            "kind": worth * (rows.kinds[:, None] == columns.kinds[None, :]),
        }
        if rows.events.any() and columns.events.any():
            same = (rows.events[:, None] == columns.events[None, :]) & (rows.events[:, None] > 0)
            worths["event"] = worth * same
        return cls(np.arange(least, most + 1) / steps_per_day, tuple(groups), worths)

    @property
    def open_gates(self) -> tuple[Gate, ...]:
        """Return the gates that some pair passes."""
        return tuple(self.worths)

    def gathered(self, kernel: Floats, gate: Gate) -> Floats:
        """Return the covariance of each pair under a kernel that is given for `days`, (n_rows, n_columns)."""
        worth = self.worths[gate]
        if len(self.groups) == 1:
            _, _, long, wide, places = self.groups[0]
            return np.asarray(np.convolve(kernel, _overlaps(long, wide), "valid")[places] * worth)
        found = np.empty(worth.shape)
        for rows, columns, long, wide, places in self.groups:
            found[np.ix_(rows, columns)] = np.convolve(kernel, _overlaps(long, wide), "valid")[places]
        return np.asarray(found * worth)

    def scattered(self, weights: Floats, gate: Gate) -> Floats:
        """Return the transpose of `gathered`: how much each lag counts in sum(weights * covariance), as
        `days`.
        """
        counts = np.zeros(self.days.size)
        if gate not in self.worths:
            return counts
        weighed = weights * self.worths[gate]
        for rows, columns, long, wide, places in self.groups:
            size = self.days.size - (long + wide - 2)
            own = weighed if len(self.groups) == 1 else weighed[np.ix_(rows, columns)]
            binned = np.bincount(places.ravel(), own.ravel(), minlength=size)
            counts += np.convolve(binned, _overlaps(long, wide)[::-1])
        return counts


def _overlaps(long: int, wide: int) -> Floats:
    """Return how many pairs of a step of either block stand at each lag, wide end first."""
    return np.convolve(np.ones(long), np.ones(wide))
