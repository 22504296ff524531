"""A hierarchy with a margin: levels and margin are charged alike, and mistakes that would not be."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from optstream.measurement import EquallySpaced
from optstream.mechanisms import Hierarchical, Laplace, OptStream
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Feature, Lattice
from optstream.stream.tree import Number

_SECTORS = ("s", "t", "u", "v", "w", "x", "y", "z")
_CELLS = {sector: [f"A-{sector}", f"B-{sector}"] for sector in _SECTORS}
_TREE = AggregationTree.from_parents(
    {"all": None, "A": "all", "B": "all", **{cell: cell[0] for cells in _CELLS.values() for cell in cells}}
)
CELLS = Lattice.of_tree(_TREE, "sector", _CELLS)
"""Two regions times eight sectors."""
SHARES = ("0", "0", "1/10", "9/10")
"""Nearly all of epsilon at the margin, where a mistake shows."""
CLAIMED = 2
UNCHARGED = ("0", "0", "1/5", "4/5")
"""Of five times as much: cells have all that is claimed, and the margin four times as much beside it."""


class Overlapping(Lattice):
    """BROKEN ON PURPOSE: each node of its margin has every cell, so that one cell moves them all."""

    def add_up(self, leaf_values: NDArray[Number]) -> NDArray[Number]:
        """Return every node's values, the margin's too large."""
        found = super().add_up(leaf_values)
        found[..., self.margin_nodes.start :, :] = leaf_values.sum(axis=-2, keepdims=True)
        return np.asarray(found)


def beside_a_margin(n_steps: int) -> Hierarchical:
    """Return Laplace over a window of 1, epsilon 2 over cells and margin together."""
    return Hierarchical(Laplace(PrivacyModel(CLAIMED, 1, 1)), CELLS, SHARES)


def uncharged_margin(n_steps: int) -> Hierarchical:
    """Return a margin that is not charged: cells have all of epsilon, and the margin four times as much."""
    return Hierarchical(Laplace(PrivacyModel(5 * CLAIMED, 1, 1)), CELLS, UNCHARGED)


def overlapping_margin(n_steps: int) -> Hierarchical:
    """Return the mistake of a margin that is no partition, charged as if it were one."""
    lattice = Overlapping.of_tree(_TREE, "sector", _CELLS)
    return Hierarchical(Laplace(PrivacyModel(CLAIMED, 1, 1)), lattice, SHARES)


BROKEN: dict[str, Callable[[int], Hierarchical]] = {
    "a margin that is not charged": uncharged_margin,
    "a margin whose nodes overlap": overlapping_margin,
}


def sums_beside_a_margin(n_steps: int) -> OptStream:
    """Return OptStream with nearly all of epsilon 2 on sums of a period of 4, which all its steps move."""
    return _sums(n_steps, CLAIMED, SHARES)


def uncharged_sums(n_steps: int) -> OptStream:
    """Return a margin whose sums are not charged: cells have all of epsilon, the margin four times as
    much.
    """
    return _sums(n_steps, 5 * CLAIMED, UNCHARGED)


def _sums(n_steps: int, epsilon: int, shares: Sequence[str]) -> OptStream:
    whole = Feature((range(n_steps),), "whole")
    return OptStream(
        PrivacyModel(epsilon, 4, 1), CELLS, sampling=EquallySpaced(2), features=[whole], level_shares=shares,
        stage_shares=["1/10", "9/10"],
    )  # fmt: skip
