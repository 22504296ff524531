"""Noisy answers to linear queries other than single steps, by what was asked: no kind passes for another."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers at every node; a subclass says to which queries.

    Attributes:
        values: Arrays (…, n_nodes, n_answers), in units of the resolution.
        variances: Of each array, (n_nodes, 1) or a node's answers each, in units squared; inf where a node
            was not measured; None where unknown.
        stage: Under which the spends of a kind are booked; feature sums have a stage for each feature.
    """

    values: tuple[NDArray[Any], ...] = ()
    variances: tuple[NDArray[np.float64], ...] | None = ()
    stage: ClassVar[str | None] = None

    def to_document(self) -> dict[str, Any]:
        """Return them JSON-ready.

        Returns:
            Values and variances, infinity as null; the kind is not in it, for the spends say it.
        """
        return {
            "sums": [entry.tolist() for entry in self.values],
            "sum_variances": None if self.variances is None else [listed(entry) for entry in self.variances],
        }


class FeatureSums(Answers):
    """For each feature an array with the sums of its parts; none where no feature was measured."""


class BlockSums(Answers):
    """One array: sums over the blocks of steps that the measurement's `choices` name."""

    stage: ClassVar[str] = "blocks"


class FourierCoordinates(Answers):
    """One array: the first coordinates of the period in the Fourier basis."""

    stage: ClassVar[str] = "coordinates"


def answers_from(document: Mapping[str, Any], stages: Set[str]) -> Answers:
    """Return the answers of a document, of the kind that was paid for under one of these stages."""
    values = tuple(np.array(entry) for entry in document["sums"])
    given = document["sum_variances"]
    variances = None if given is None else tuple(map(_numbers, given))
    kinds = (kind for kind in (BlockSums, FourierCoordinates) if values and kind.stage in stages)
    return next(kinds, FeatureSums)(values, variances)


def listed(values: NDArray[np.float64] | None) -> list[Any] | None:
    """Return floats as their shortest text; infinity, which JSON lacks, as null."""
    if values is None:
        return None
    nested: list[Any] = np.where(np.isfinite(values), values, None).tolist()  # type: ignore[call-overload]  # numpy's stubs know no None
    return nested


def arrayed(nested: list[Any] | None) -> NDArray[np.float64] | None:
    """Return the array that `listed` wrote."""
    return None if nested is None else _numbers(nested)


def _numbers(nested: list[Any]) -> NDArray[np.float64]:
    numbers = np.array(nested, dtype=np.float64)  # null as nan
    numbers[np.isnan(numbers)] = np.inf
    return numbers
