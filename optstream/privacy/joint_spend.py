"""What measurements cost that share joint noise: by groups, each at its most."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import whole
from optstream.privacy.model import Currency

Group = tuple[range, ...]
"""The parts of one group: steps of a period, counted from its first one. A part is a sum that is measured."""


@dataclass(frozen=True)
class JointSpend:
    """Sums over disjoint parts of a period, measured with joint noise, a group of parts at a time.

    At every node of `level`, and for each group by itself, the parts' sums get `joint_noise` of scale `scale`
    (Lemma 15). A window is charged, for each group, the most of its steps that lie in one part of the group:

        leaves_changed * alpha_units / scale * max over parts of |part in the window|

    (Lemma 16). That holds where all that one customer changes in a period moves one node of the level: the
    level has one node, or unit is "customer" and the readings of a period lie in one leaf
    (`groups.may_be_joint`). A spend of several nodes is never one of unit "roaming": `measurement` draws for
    as many nodes as it says, and the ledger refuses it there. Steps count from the stream's origin.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "blocks").
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        groups: Of parts, rising and disjoint, all inside the period.
        scale: In units of the model's resolution, greater than 0.
        alpha_units: The most by which one changed reading moves a leaf.
        n_nodes: Of the level, at least 1.
        leaves_changed: The most leaves that one customer changes at a step.

    Raises:
        ParameterError: An empty group or part, parts that overlap, fall or leave the period, no scale or no
            node.
    """

    level: int
    stage: str
    first_step: int
    n_steps: int
    groups: tuple[Group, ...]
    scale: Fraction
    alpha_units: int
    n_nodes: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "epsilon"

    def __post_init__(self) -> None:
        parts = self.parts
        fits = all(part.step == 1 and 0 <= part.start < part.stop <= self.n_steps for part in parts)
        rises = all(before.stop <= part.start for before, part in pairwise(parts))
        if not (fits and rises and all(self.groups)):
            raise ParameterError(
                "the groups of JointSpend must have parts that rise, do not overlap and lie inside the period"
            )
        if self.scale <= 0:
            raise ParameterError(f"the scale of JointSpend must be greater than 0; got {self.scale}")
        whole(self.n_nodes, "n_nodes of JointSpend", 1)

    @property
    def parts(self) -> Group:
        """All parts, in order of time."""
        return tuple(chain.from_iterable(self.groups))

    @property
    def unit_charge(self) -> Fraction:
        """What a group is charged for each step of the part that has the most of them in the window."""
        return self.leaves_changed * self.alpha_units / self.scale

    @property
    def weights(self) -> tuple[int, ...]:
        """Whether each step of the period is measured: 1 or 0, shape (n_steps,)."""
        measured = set(chain.from_iterable(self.parts))
        return tuple(int(step in measured) for step in range(self.n_steps))

    @property
    def largest_parts(self) -> tuple[int, ...]:
        """The steps of each group's largest part: its charge if all of it changes, in unit charges."""
        return tuple(max(map(len, group)) for group in self.groups)

    def steps_charged(self, window_length: int) -> NDArray[np.int64]:
        """Return how many unit charges each window costs that touches the period, first window first.

        Args:
            window_length: Steps.

        Returns:
            Shape (n_steps + window_length - 1,); entry i is of the window whose last step is step i.
        """
        charged = np.zeros(self.n_steps + window_length - 1, dtype=np.int64)
        for group in self.groups:
            charged += _most_of_one_part(group, charged.size, window_length)
        return charged


def _most_of_one_part(group: Group, n_windows: int, window_length: int) -> NDArray[np.int64]:
    """Return the most steps of one part that each window holds, shape (n_windows,); as `steps_charged`."""
    if all(len(part) == 1 for part in group):
        # many parts, as on every step of a day in minutes: windows end at a step and w - 1 steps after it
        steps, entered = np.array([part.start for part in group]), np.zeros(n_windows + 1, dtype=np.int64)
        entered[steps] += 1
        entered[steps + window_length] -= 1
        return (np.cumsum(entered[:-1]) > 0).astype(np.int64)
    last = np.arange(n_windows)
    inside = (
        np.minimum(last + 1, part.stop) - np.maximum(last + 1 - window_length, part.start) for part in group
    )
    most: NDArray[np.int64] = np.maximum.reduce([np.zeros_like(last), *inside])
    return most


def groups_to_document(groups: tuple[Group, ...]) -> list[list[list[int]]]:
    """Return groups JSON-ready: [start, stop] of each part, a list for each group."""
    return [[part_to_document(part) for part in group] for group in groups]


def part_to_document(part: range) -> list[int]:
    """Return a part JSON-ready: its start and stop."""
    return [part.start, part.stop]


def groups_from_document(document: object) -> tuple[Group, ...]:
    """Return the groups that `groups_to_document` wrote; whether they are legal, `JointSpend` says. Raises
    TypeError or ValueError for something else.
    """
    return tuple(tuple(parts_from_document(group)) for group in _listed(document))


def parts_from_document(group: object) -> Iterator[range]:
    """Yield the parts of a list of `part_to_document`. Raises TypeError or ValueError for other things."""
    for part in _listed(group):
        start, stop = _listed(part)
        if type(start) is not int or type(stop) is not int:
            raise TypeError("a part is two integers")
        yield range(start, stop)


def _listed(document: object) -> list[object]:
    if not isinstance(document, list):
        raise TypeError("groups are lists of parts")
    return document
