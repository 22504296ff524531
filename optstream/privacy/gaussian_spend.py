"""What measurements with Gaussian noise cost, in rho: by the squares of what moves each of them."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.joint_spend import Group, part_to_document, parts_from_document
from optstream.privacy.model import Currency


@dataclass(frozen=True)
class GaussianSpend:
    """Sums over disjoint parts of a period, each with discrete Gaussian noise of its own, priced in rho.

    At every node of `level` each part's sum gets independent noise with P(k) proportional to
    exp(-k^2 / (2 scale^2)). A window is charged, in rho of zero-concentrated privacy,

        (leaves_changed * alpha_units)^2 / (2 scale^2) * sum over parts of |part in the window|^2

    (Lemma 20, docs/privacy.md), in whatever leaves the customer is at each step. It holds for any set of
    changed steps, so for windows of any length. Changed steps of one part add up before they are squared: the
    charge of a part is no sum over its steps. Steps count from the stream's origin.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "blocks").
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        parts: Rising and disjoint, all inside the period, counted from its first step; a single step is one.
        scale: The noise's sigma, in units of the model's resolution, greater than 0.
        alpha_units: The most by which one changed reading moves a leaf.
        leaves_changed: The most leaves that one customer changes at a step.

    Raises:
        ParameterError: An empty part, parts that overlap, fall or leave the period, or no scale.
    """

    level: int
    stage: str
    first_step: int
    n_steps: int
    parts: Group
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "rho"

    def __post_init__(self) -> None:
        fits = all(part.step == 1 and 0 <= part.start < part.stop <= self.n_steps for part in self.parts)
        rises = all(before.stop <= part.start for before, part in pairwise(self.parts))
        if not (fits and rises):
            raise ParameterError(
                "the parts of GaussianSpend must rise, not overlap and lie inside the period"
            )
        if self.scale <= 0:
            raise ParameterError(f"the scale of GaussianSpend must be greater than 0; got {self.scale}")

    @property
    def unit_charge(self) -> Fraction:
        """What a part is charged of which one step lies in the window."""
        return (self.leaves_changed * self.alpha_units) ** 2 / (2 * self.scale**2)

    @property
    def weights(self) -> tuple[int, ...]:
        """Whether each step of the period is measured: 1 or 0, shape (n_steps,)."""
        measured = set(chain.from_iterable(self.parts))
        return tuple(int(step in measured) for step in range(self.n_steps))

    @property
    def whole_charge(self) -> Fraction:
        """What all parts are charged if all of their steps change."""
        return sum(len(part) ** 2 for part in self.parts) * self.unit_charge

    def squares_charged(self, window_length: int) -> NDArray[np.int64]:
        """Return how many unit charges each window costs that touches the period, first window first.

        Args:
            window_length: Steps.

        Returns:
            Shape (n_steps + window_length - 1,); entry i is of the window whose last step is step i.
        """
        n_windows = self.n_steps + window_length - 1
        stop = np.arange(1, n_windows + 1)
        single = np.zeros(n_windows + 1, dtype=np.int64)
        total = np.zeros(n_windows, dtype=np.int64)
        for part in self.parts:
            if len(part) == 1:
                single[part.start] += 1
                single[min(part.start + window_length, n_windows)] -= 1
                continue
            inside = np.minimum(stop, part.stop) - np.maximum(stop - window_length, part.start)
            total += np.maximum(inside, 0) ** 2
        return total + np.cumsum(single[:-1])


def parts_to_document(parts: Group) -> list[list[int]]:
    """Return parts JSON-ready: [start, stop] of each."""
    return [part_to_document(part) for part in parts]


def parts_of_document(document: object) -> Group:
    """Return the parts that `parts_to_document` wrote; whether they are legal, `GaussianSpend` says. Raises
    TypeError or ValueError for something else.
    """
    return tuple(parts_from_document(document))
