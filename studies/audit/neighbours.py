"""Pairs of neighbours: made-up readings that differ as much as the privacy model protects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree

Floats = NDArray[np.float64]
Leaves = Callable[[int], tuple[int, ...]]
Sign = Callable[[int], int]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two streams of leaf values, (n_leaves, n_steps) for each period, from a running first step on."""

    name: str
    first_step: int
    one: tuple[Floats, ...]
    other: tuple[Floats, ...]

    @property
    def sides(self) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """The two neighbouring streams."""
        return self.one, self.other

    @property
    def lengths(self) -> tuple[int, ...]:
        """Steps of each period."""
        return tuple(period.shape[1] for period in self.one)

    @property
    def first_steps(self) -> tuple[int, ...]:
        """Running index of each period's first step."""
        return tuple(accumulate(self.lengths[:-1], initial=self.first_step))

    @property
    def changed(self) -> tuple[int, ...]:
        """The running steps at which the streams differ, rising."""
        gap = np.concatenate(self.other, axis=1) != np.concatenate(self.one, axis=1)
        return tuple(int(step) + self.first_step for step in np.flatnonzero(gap.any(axis=0)))

    @property
    def span(self) -> int:
        """Steps from the first that differs to the last, both included."""
        return self.changed[-1] - self.changed[0] + 1

    def check(self, model: PrivacyModel) -> None:
        """Raise ParameterError unless they differ, by no more than window, alpha and leaves at a step."""
        gap = np.abs(np.concatenate(self.other, axis=1) - np.concatenate(self.one, axis=1))
        tolerance = 1e-9 * float(model.alpha)
        problem = None
        if not self.changed:
            problem = "they do not differ"
        elif self.span > model.window_length:
            problem = f"they differ over {self.span} steps, a window has {model.window_length}"
        elif gap.max() > float(model.alpha) + tolerance:
            problem = "a reading differs by more than alpha"
        elif np.count_nonzero(gap, axis=0).max() > model.leaves_per_step:
            problem = f"more than {model.leaves_per_step} leaves differ at a step"
        if problem:
            raise ParameterError(f"{self.name!r} are no neighbours under the model: {problem}")


def make_neighbours(
    name: str,
    model: PrivacyModel,
    *,
    n_leaves: int,
    lengths: Sequence[int],
    steps: Sequence[int],
    leaves: Leaves | None = None,
    sign: Sign | None = None,
    first_step: int = 0,
    base: ArrayLike = 0.0,
) -> Neighbours:
    """Return two streams that differ by alpha in some leaves at some steps of the whole."""
    overhang = (model.alpha / model.resolution) % 1
    nudge = float(model.resolution) * (0.5 - float(overhang) / 2) if overhang else 0.0
    resolution = float(model.resolution)
    grid = np.rint(np.asarray(base, dtype=np.float64) / resolution) * resolution
    one = np.broadcast_to(grid, (n_leaves, sum(lengths))).copy()
    other = one.copy()
    for step in steps:
        direction = sign(step) if sign else 1
        for leaf in leaves(step) if leaves else (0,):
            # Up from just below the rounding border, or down from just above it.
            one[leaf, step] += direction * nudge
            other[leaf, step] = one[leaf, step] + direction * float(model.alpha)
    cuts = list(accumulate(lengths))[:-1]
    pair = Neighbours(name, first_step, *(tuple(np.split(side, cuts, axis=1)) for side in (one, other)))
    pair.check(model)
    return pair


def worst_cases(
    model: PrivacyModel,
    tree: AggregationTree,
    lengths: Sequence[int],
    first_step: int = 0,
    base: ArrayLike = 0.0,
) -> tuple[Neighbours, ...]:
    """Return the pairs that every mechanism must survive, over periods of these lengths released in a row."""
    n_leaves, n_steps = len(tree.leaves), sum(lengths)
    window = min(model.window_length, n_steps)
    deepest = int(np.argmax(tree.depths[tree.leaf_indices]))
    at_once = range(min(model.leaves_per_step, n_leaves))

    def deep(step: int) -> tuple[int, ...]:
        return tuple((deepest + shift) % n_leaves for shift in at_once)

    def moving(step: int) -> tuple[int, ...]:
        return tuple((step + shift) % n_leaves for shift in at_once)

    def hump(step: int) -> int:
        return -1 if step in (0, window - 1) else 1

    def pair(name: str, steps: Sequence[int], leaves: Leaves = deep, sign: Sign | None = None) -> Neighbours:
        return make_neighbours(
            name, model, n_leaves=n_leaves, lengths=lengths, steps=steps, leaves=leaves, sign=sign,
            first_step=first_step, base=base,
        )  # fmt: skip

    pairs = [
        pair("all steps of a window", range(window)),
        pair("all steps, signs alternating", range(window), sign=lambda step: 1 - 2 * (step % 2)),
        pair("all steps, ends against the middle", range(window), sign=hump),
        pair("all steps, another leaf at each", range(window), moving),
        pair("both ends of a window", sorted({0, window - 1})),
        pair("one step", [0]),
    ]
    for border in list(accumulate(lengths))[:-1]:
        start = min(max(0, border - (window + 1) // 2), n_steps - window)
        pairs.append(pair(f"a window across the border at {border}", range(start, start + window)))
    return tuple(pairs)
