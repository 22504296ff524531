"""What is believed of a series before any of it is measured: sums of kernels over time, relative to its size.

A leaf i is taken for m_i + s_i (f(t) + g_i(t)): f shared by all leaves, g_i its own, both Gaussian processes
with the same components in other strengths. Time is in days, on the public clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Lengths = Sequence[float] | Floats
Kernel = Callable[[Floats, Lengths], Floats]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Linear functions of a series: `worth` times the sum over `lengths` steps from `clock` on.

    clock, lengths, kinds, worth: (n,). kinds: of the day that a block lies in; blocks of other kinds share no
    component that is gated.
    """

    clock: NDArray[np.int64]
    lengths: NDArray[np.int64]
    kinds: NDArray[np.int64]
    worth: Floats


@dataclass(frozen=True)
class Component:
    """One kernel: `kernel(lags in days, lengths)`, 1 at lag 0. by_kind: only between days of one kind.

    shared, own: prior medians of the standard deviations, relative to a series' size. lengths: prior medians
    of the kernel's own parameters, in days, but the first of a periodic one, which is of the sine.
    """

    name: str
    kernel: Kernel
    by_kind: bool
    shared: float
    own: float
    lengths: tuple[float, ...] = ()

    @property
    def n_parameters(self) -> int:
        """Two strengths and the lengths."""
        return 2 + len(self.lengths)


def constant(lags: Floats, lengths: Lengths) -> Floats:
    """The same for ever."""
    return np.ones_like(lags)


def rough(lags: Floats, lengths: Lengths) -> Floats:
    """exp(-|lag| / length): wanders like a random walk that is called back."""
    return np.exp(-np.abs(lags) / lengths[0])


def smooth(lags: Floats, lengths: Lengths) -> Floats:
    """Matern 3/2: has a slope that changes over `length`."""
    scaled = np.sqrt(3.0) * np.abs(lags) / lengths[0]
    return np.asarray((1.0 + scaled) * np.exp(-scaled))


def daily(lags: Floats, lengths: Lengths) -> Floats:
    """A shape of the day, as smooth as `lengths[0]` says, that is another one after `lengths[1]` days."""
    return np.asarray(np.exp(-2.0 * np.sin(np.pi * lags) ** 2 / lengths[0] ** 2 - np.abs(lags) / lengths[1]))


COMPONENTS: tuple[Component, ...] = (
    Component("size", constant, False, 0.3, 0.3),
    Component("drift", smooth, False, 0.10, 0.03, (8.0,)),
    Component("day to day", rough, False, 0.04, 0.015, (1.5,)),
    Component("daily shape", daily, False, 0.15, 0.05, (0.7, 60.0)),
    Component("kind of day", daily, True, 0.06, 0.03, (1.0, 60.0)),
    Component("shape of these days", daily, False, 0.04, 0.015, (0.7, 2.5)),
    Component("short memory", smooth, False, 0.02, 0.012, (0.12,)),
)
"""The parts of a human series; prior medians dimensionless, for any load, count or flow."""

NUGGET = 1e-9
"""Variance, relative, of a part that no two blocks share: keeps matrices well conditioned."""


@dataclass(frozen=True, eq=False)
class TemporalPrior:
    """Covariances of blocks under the components with these parameters.

    logs: logarithms of all components' parameters in a row: shared, own, lengths. steps_per_day: of the
    clock.
    """

    logs: Floats
    steps_per_day: int
    components: tuple[Component, ...] = COMPONENTS

    @classmethod
    def broad(cls, steps_per_day: int, components: tuple[Component, ...] = COMPONENTS) -> "TemporalPrior":
        """At the prior medians: what is used before anything is learned."""
        medians = [value for one in components for value in (one.shared, one.own, *one.lengths)]
        return cls(np.log(np.array(medians)), steps_per_day, components)

    @cached_property
    def parameters(self) -> tuple[tuple[Component, int, float, float, Floats], ...]:
        """For each component: it, its place in `logs`, variances shared and own, lengths."""
        found, at, values = [], 0, np.exp(self.logs)
        for one in self.components:
            lengths = values[at + 2 : at + one.n_parameters]
            found.append((one, at, float(values[at]) ** 2, float(values[at + 1]) ** 2, lengths))
            at += one.n_parameters
        return tuple(found)

    def covariances(self, rows: Blocks, columns: Blocks) -> tuple[Floats, Floats]:
        """The shared and the own part's covariance of two sets of blocks, (n_rows, n_columns) each."""
        lags = LagTables.between(rows, columns, self.steps_per_day)
        parts = []
        for which in (0, 1):
            total = np.zeros((rows.clock.size, columns.clock.size))
            for by_kind in (False, True):
                kernel = sum(
                    (
                        (shared, own)[which] * one.kernel(lags.days, lengths)
                        for one, _, shared, own, lengths in self.parameters
                        if one.by_kind is by_kind
                    ),
                    np.zeros_like(lags.days),
                )
                total += lags.gathered(kernel, by_kind)
            parts.append(total)
        return parts[0], parts[1]

    def variances(self, steps: Blocks) -> tuple[float, float]:
        """Of one step, shared and own part, (the same for all)."""
        shared = sum(one[2] for one in self.parameters)
        return float(shared), float(sum(one[3] for one in self.parameters))


@dataclass(frozen=True, eq=False)
class LagTables:
    """Where in a table of lags each pair of blocks stands: a kernel is computed once for each lag.

    days: the lags of the table, in days. Blocks of `a` and of `b` steps at lag k have covariance
    sum_(i<a, j<b) kernel(k + i - j), a convolution of the table.
    """

    days: Floats
    margin: int
    groups: tuple[tuple[NDArray[np.int64], NDArray[np.int64], int, int, NDArray[np.int64]], ...]
    same_kind: NDArray[np.bool_]
    worth: tuple[Floats, Floats]

    @classmethod
    def between(cls, rows: Blocks, columns: Blocks, steps_per_day: int) -> "LagTables":
        """The tables of two sets of blocks."""
        lags = rows.clock[:, None] - columns.clock[None, :]
        longest = max(int(rows.lengths.max(initial=1)), int(columns.lengths.max(initial=1)))
        least, most = int(lags.min(initial=0)) - longest, int(lags.max(initial=0)) + longest
        groups = []
        for long in np.unique(rows.lengths):
            for wide in np.unique(columns.lengths):
                chosen = np.flatnonzero(rows.lengths == long), np.flatnonzero(columns.lengths == wide)
                # place of lag 0 after a convolution that loses wide - 1 entries before and long - 1 after
                places = lags[np.ix_(*chosen)] - least - (int(wide) - 1)
                groups.append((chosen[0], chosen[1], int(long), int(wide), places))
        return cls(
            np.arange(least, most + 1) / steps_per_day,
            longest,
            tuple(groups),
            rows.kinds[:, None] == columns.kinds[None, :],
            (rows.worth, columns.worth),
        )

    def gathered(self, kernel: Floats, by_kind: bool) -> Floats:
        """The covariance of each pair under a kernel that is given for `days`, (n_rows, n_columns)."""
        found = np.empty(self.same_kind.shape)
        for rows, columns, long, wide, places in self.groups:
            found[np.ix_(rows, columns)] = np.convolve(kernel, _overlaps(long, wide), "valid")[places]
        found *= self.worth[0][:, None] * self.worth[1][None, :]
        return found * self.same_kind if by_kind else found

    def scattered(self, weights: Floats, by_kind: bool) -> Floats:
        """The transpose of `gathered`: how much each lag counts in sum(weights * covariance), as `days`."""
        weighed = weights * (self.worth[0][:, None] * self.worth[1][None, :])
        if by_kind:
            weighed = weighed * self.same_kind
        counts = np.zeros(self.days.size)
        for rows, columns, long, wide, places in self.groups:
            size = self.days.size - (long + wide - 2)
            binned = np.bincount(places.ravel(), weighed[np.ix_(rows, columns)].ravel(), minlength=size)
            counts += np.convolve(binned, _overlaps(long, wide)[::-1])
        return counts


def _overlaps(long: int, wide: int) -> Floats:
    """How many pairs of a step of either block stand at each lag, wide end first."""
    return np.convolve(np.ones(long), np.ones(wide))
