"""The prior of a series: sums of kernels over time, relative to its size. A leaf i is m_i + s_i (f(t) +
g_i(t)): f shared by all leaves, g_i its own, both Gaussian processes with the same components in other
strengths. Time is in days, on the public clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from optstream.history.blocks import Blocks, Gate, LagTables
from optstream.stream.public_days import DAYS_OF_A_WEEK

Floats = NDArray[np.float64]
Lengths = Sequence[float] | Floats
Kernel = Callable[[Floats, Lengths], Floats]


@dataclass(frozen=True)
class Component:
    """One kernel of the prior: `kernel(lags in days, lengths)`, 1 at lag 0. gate: between which days it acts.
    shared, own: prior medians of the parts' standard deviations, relative to a series' size. lengths: prior
    medians in days, but the first of a periodic kernel, which is of the sine. by_hour: whether it is stronger
    at some hours of a day."""

    name: str
    kernel: Kernel
    gate: Gate
    shared: float
    own: float
    lengths: tuple[float, ...] = ()
    by_hour: bool = False

    @property
    def n_parameters(self) -> int:
        return 2 + len(self.lengths)


def constant(lags: Floats, lengths: Lengths) -> Floats:
    return np.ones_like(lags)


def rough(lags: Floats, lengths: Lengths) -> Floats:
    """Return exp(-|lag| / length): wanders like a random walk that is called back."""
    return np.exp(-np.abs(lags) / lengths[0])


def smooth(lags: Floats, lengths: Lengths) -> Floats:
    """Return the Matern 3/2 kernel: has a slope that changes over `length`."""
    scaled = np.sqrt(3.0) * np.abs(lags) / lengths[0]
    return np.asarray((1.0 + scaled) * np.exp(-scaled))


def daily(lags: Floats, lengths: Lengths) -> Floats:
    """Return a shape of the day, of smoothness `lengths[0]`, that changes over `lengths[1]` days."""
    return np.asarray(np.exp(-2.0 * np.sin(np.pi * lags) ** 2 / lengths[0] ** 2 - np.abs(lags) / lengths[1]))


def weekly(lags: Floats, lengths: Lengths) -> Floats:
    """Return a shape of the week, of smoothness `lengths[0]`, that changes over `lengths[1]` days."""
    around = np.sin(np.pi * lags / DAYS_OF_A_WEEK) ** 2
    return np.asarray(np.exp(-2.0 * around / lengths[0] ** 2 - np.abs(lags) / lengths[1]))


COMPONENTS: tuple[Component, ...] = (
    Component("size", constant, "always", 0.3, 0.3),
    Component("drift", smooth, "always", 0.10, 0.02, (6.0,)),
    Component("day to day", rough, "always", 0.02, 0.02, (1.5,), True),
    Component("daily shape", daily, "always", 0.12, 0.04, (0.8, 100.0)),
    Component("edges of the day", daily, "always", 0.03, 0.02, (0.12, 150.0), True),
    Component("kind of day", daily, "kind", 0.06, 0.02, (0.9, 100.0)),
    Component("shape of these days", daily, "always", 0.015, 0.015, (1.0, 3.0), True),
    Component("short memory", smooth, "always", 0.01, 0.012, (0.08,), True),
    Component("event", constant, "event", 0.3, 1.0),
    Component("course of an event", smooth, "event", 0.3, 0.5, (0.12,)),
)
"""The parts of a series that people make, with round prior medians set by hand
(docs/methods/history-informed.md)."""


def _with_strengths(given: Mapping[str, tuple[float, float]]) -> tuple[Component, ...]:
    """Return `COMPONENTS` with other prior medians of some strengths, shared and own, by name."""
    strengths = {one.name: (one.shared, one.own) for one in COMPONENTS} | dict(given)
    return tuple(
        replace(one, shared=strengths[one.name][0], own=strengths[one.name][1]) for one in COMPONENTS
    )


COUNT_COMPONENTS = _with_strengths(
    {"day to day": (0.06, 0.04), "daily shape": (0.55, 0.1), "kind of day": (0.2, 0.05)}
)
"""The same for counts of people, trips or devices, which nearly vanish at night: a day moves them more than a
load. Set by hand, looking at taxi trips of New York in 2024 and at made-up counts of other kinds."""
CUSTOMER_COMPONENTS = _with_strengths(
    {"day to day": (0.06, 0.04), "daily shape": (0.47, 0.1), "kind of day": (0.15, 0.05)}
)
"""The same for sums of customers' readings. Set by hand, looking at 50 real households and made-up ones."""
DAY_OF_THE_WEEK = Component("day of the week", weekly, "kind", 0.06, 0.03, (0.25, 100.0))
"""Of counts whose days have a week, in addition: people go out on Friday nights and rest on Mondays."""

NUGGET = 1e-9  # variance, relative, of a part that no two blocks share: keeps matrices well conditioned


@dataclass(frozen=True, eq=False)
class TemporalPrior:
    """Covariances of blocks. logs: logarithms of all components' shared, own and lengths in a row, the
    likeliest. spread: posterior variances of the logarithms of the shared strengths, whose mean squares
    count. hours: strengths of the parts that are stronger at some hours, for parts of a day in a row. The
    last two are empty before they were learned."""

    logs: Floats
    steps_per_day: int
    components: tuple[Component, ...] = COMPONENTS
    hours: Floats = field(default_factory=lambda: np.ones(0))
    spread: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def broad(cls, steps_per_day: int, components: tuple[Component, ...] = COMPONENTS) -> "TemporalPrior":
        """Return the prior at the medians, which is used before anything is learned."""
        medians = [value for one in components for value in (one.shared, one.own, *one.lengths)]
        return cls(np.log(np.array(medians)), steps_per_day, components)

    @cached_property
    def parameters(self) -> tuple[tuple[Component, int, float, float, Floats], ...]:
        """For each component: it, its place in `logs`, variances shared and own, lengths."""
        found, at, values = [], 0, np.exp(self.logs)
        # E[exp(2 x)] = exp(2 E[x] + 2 Var[x]) of a normal x
        more = np.exp(2.0 * self.spread) if self.spread.size else np.ones(len(self.components))
        for one, times in zip(self.components, more.tolist(), strict=True):
            lengths = values[at + 2 : at + one.n_parameters]
            found.append((one, at, times * float(values[at]) ** 2, float(values[at + 1]) ** 2, lengths))
            at += one.n_parameters
        return tuple(found)

    @property
    def as_components(self) -> tuple[Component, ...]:
        """The components with the likeliest parameters as medians; hours at their root mean square."""
        mean_square = float((self.hours**2).mean()) if self.hours.size else 1.0
        found = []
        for one, _, *variances, lengths in replace(self, spread=np.zeros(0)).parameters:
            shared, own = np.sqrt(np.array(variances) * (mean_square if one.by_hour else 1.0)).tolist()
            found.append(replace(one, shared=shared, own=own, lengths=tuple(lengths.tolist())))
        return tuple(found)

    def strengths(self, blocks: Blocks) -> Floats:
        """Return the strength at the middle of blocks, (n,): between hours their geometric mean."""
        return np.asarray(np.exp(self.parts_of_day(blocks) @ np.log(self.hours)))

    def parts_of_day(self, blocks: Blocks) -> Floats:
        """Return how near the middle of blocks is to the middle of each of `hours`, (n, n_hours)."""
        middle = (blocks.clock + blocks.lengths / 2.0) / self.steps_per_day * self.hours.size - 0.5
        apart = np.abs(middle[:, None] - np.arange(self.hours.size)) % self.hours.size
        return np.asarray(np.maximum(1.0 - np.minimum(apart, self.hours.size - apart), 0.0))

    def covariances(self, rows: Blocks, columns: Blocks) -> tuple[Floats, Floats]:
        """Return the shared and the own part's covariance of two sets of blocks, (n_rows, n_columns) each."""
        lags = LagTables.between(rows, columns, self.steps_per_day)
        parts = np.zeros((2, rows.clock.size, columns.clock.size))
        for (gate, by_hour), some in self.alike.items():
            if gate not in lags.pair_weights:
                continue
            kernels = np.zeros((2, lags.days.size))
            for one, _, shared, own, lengths in some:
                kernels += np.array([[shared], [own]]) * one.kernel(lags.days, lengths)
            strengths = np.outer(*map(self.strengths, (rows, columns))) if by_hour else 1.0
            for part, kernel in zip(parts, kernels, strict=True):
                part += lags.gathered(kernel, gate) * strengths
        return parts[0], parts[1]

    @cached_property
    def alike(self) -> Mapping[tuple[Gate, bool], list[tuple[Component, int, float, float, Floats]]]:
        """The `parameters` by gate and, where hours were learned, by whether these matter."""
        found: dict[tuple[Gate, bool], list[tuple[Component, int, float, float, Floats]]] = {}
        for one in self.parameters:
            found.setdefault((one[0].gate, one[0].by_hour and self.hours.size > 0), []).append(one)
        return found

    def variances(self, steps: Blocks) -> tuple[Floats, Floats]:
        """Return the variances of single steps, shared and own part, (n_steps,) each."""
        inside = steps.events > 0
        found = np.zeros((2, steps.clock.size))
        for (gate, by_hour), some in self.alike.items():
            times = (inside if gate == "event" else 1.0) * (self.strengths(steps) ** 2 if by_hour else 1.0)
            for _, _, shared, own, _ in some:
                found += np.array([[shared], [own]]) * times
        return found[0], found[1]
