"""Measurements: noisy numbers with their meaning and their cost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import Spend, spend_from_document, spend_to_document
from optstream.stream.private_period import State, public_part

# Noisy answers to linear queries other than single steps, a class for each kind of query.


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers at every node; a subclass defines the queries. values: arrays (…, n_nodes, n_answers), in units
    of the resolution. variances: of each array, (n_nodes, 1) or a node's answers each, in units squared; inf
    where a node was not measured; None where unknown. stage: of the spends of a kind; feature sums have one
    for each feature."""

    values: tuple[NDArray[Any], ...] = ()
    variances: tuple[NDArray[np.float64], ...] | None = ()
    stage: ClassVar[str | None] = None


class FeatureSums(Answers):
    """For each feature an array with the sums of its parts; none where no feature was measured."""


class BlockSums(Answers):
    """One array: sums over the blocks of steps that the measurement's `choices` name."""

    stage: ClassVar[str] = "blocks"


class FourierCoordinates(Answers):
    """One array: the first coordinates of the period in the Fourier basis."""

    stage: ClassVar[str] = "coordinates"


def _listed(values: NDArray[np.float64] | None) -> list[Any] | None:
    """Return floats as their shortest text; infinity, which JSON lacks, as null."""
    if values is None:
        return None
    nested: list[Any] = np.where(np.isfinite(values), values, None).tolist()  # type: ignore[call-overload]  # numpy's stubs know no None
    return nested


def _arrayed(nested: list[Any] | None) -> Any:
    """Return the array that `_listed` wrote."""
    if nested is None:
        return None
    numbers = np.array(nested, dtype=np.float64)  # null as nan
    numbers[np.isnan(numbers)] = np.inf
    return numbers


Kind = TypeVar("Kind", bound=Answers)
NO_ANSWERS = FeatureSums()
FORMAT = "optstream.measured/2"


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of one period (or a batch of them), at every node of the tree.

    Only `optstream.measurement` draws one; `from_public` makes one of values that were public all along.

    Attributes:
        n_steps: Steps of the period.
        first_step: Running index of its first step.
        positions: The measured steps, counted from the period's start, rising.
        points: The values at the measured steps, (…, n_nodes, n_points), in units of `resolution`.
        resolution: The unit in which readings are counted as integers.
        spends: The cost of the draw; empty for public values.
        simulated: Drawn with seeded noise.
        point_variances: (n_nodes, 1) or (n_nodes, n_points), in units squared; inf where a node was not
            measured; None where unknown.
        answers: To the other queries: `FeatureSums`, `BlockSums` or `FourierCoordinates`.
        interpolation: (…, n_nodes, n_steps), a reconstruction given with public values; else None.
        state: The mechanism's state for the next period.
        before: The mechanism's state before, without raw entries.
        choices: Other decisions of the draw, public, JSON-ready (PeGaSus' groups).
        parts: Of a tree whose levels were measured each by itself, the levels' own measurements; the arrays
            here are then empty.
        customers: Noisy numbers of customers, (n_leaves,), in whole customers; None where none were measured.
    """

    n_steps: int
    first_step: int
    positions: tuple[int, ...]
    points: NDArray[Any]
    resolution: Fraction
    spends: tuple[Spend, ...] = ()
    simulated: bool = False
    point_variances: NDArray[np.float64] | None = None
    answers: Answers = NO_ANSWERS
    interpolation: NDArray[np.float64] | None = None
    state: State | None = None
    before: State | None = None
    choices: Mapping[str, Any] | None = None
    parts: "tuple[Measured, ...]" = ()
    customers: tuple[int, ...] | None = None

    @property
    def point_values(self) -> NDArray[np.float64]:
        """The points in the unit of the readings."""
        return self.points * float(self.resolution)

    @property
    def feature_sums(self) -> tuple[NDArray[np.float64], ...]:
        """The features' sums in the unit of the readings; raises as `answers_of`."""
        return tuple(sums * float(self.resolution) for sums in self.answers_of(FeatureSums).values)

    def answers_of(self, kind: type[Kind]) -> Kind:
        """Return the answers if they are of a kind: `FeatureSums`, `BlockSums` or `FourierCoordinates`.
        Raises ParameterError where they are of another kind."""
        if not isinstance(self.answers, kind):
            raise ParameterError(f"these measurements hold {type(self.answers).__name__}, no {kind.__name__}")
        return self.answers

    @classmethod
    def from_public(
        cls,
        step_values: ArrayLike,
        feature_sums: Sequence[ArrayLike],
        variances: Sequence[ArrayLike] | None = None,
        positions: Sequence[int] | None = None,
    ) -> "Measured":
        """Declare values public: the caller asserts that they contain no private value. Raises ParameterError
        on shapes, positions or variances that do not fit.

        Args:
            step_values: (…, n_nodes, n_steps), in the unit of the readings.
            feature_sums: For each feature (…, n_nodes, n_parts).
            variances: One entry for the steps and one for each feature, each above 0 and a scalar,
                (n_nodes,), (n_nodes, 1) or of the values' own (n_nodes, columns) shape, in squared units;
                None where unknown.
            positions: Measured steps, rising; None for all. The others are taken as the reconstruction that
                was made of them.

        Returns:
            Measurements without spends, of resolution 1, from step 0 on.
        """
        steps = np.atleast_2d(np.asarray(step_values, dtype=np.float64))
        sums = tuple(np.atleast_2d(np.asarray(entry, dtype=np.float64)) for entry in feature_sums)
        n_nodes, n_steps = steps.shape[-2:]
        chosen = tuple(range(n_steps)) if positions is None else tuple(int(step) for step in positions)
        if not chosen or list(chosen) != sorted(set(chosen)) or chosen[0] < 0 or chosen[-1] >= n_steps:
            raise ParameterError(f"positions must be rising steps in [0, {n_steps - 1}], at least one")
        for number, entry in enumerate(sums):
            if entry.shape[:-1] != steps.shape[:-1]:
                raise ParameterError(
                    f"feature_sums[{number}] must have shape {(*steps.shape[:-1], 'n_parts')}; "
                    f"got {entry.shape}"
                )
        points = steps[..., chosen]
        point_variances, sum_variances = None, None
        if variances is not None:
            if len(variances) != 1 + len(sums):
                raise ParameterError(
                    f"variances must have one entry for the steps and one for each feature: {1 + len(sums)}; "
                    f"got {len(variances)}"
                )
            first = np.asarray(variances[0], dtype=np.float64)
            if first.ndim and first.shape[-1] == n_steps != len(chosen):
                first = first[..., chosen]
            point_variances = _variances(first, n_nodes, len(chosen), "variances[0]")
            sum_variances = tuple(
                _variances(entry, n_nodes, values.shape[-1], f"variances[{number}]")
                for number, (entry, values) in enumerate(zip(variances[1:], sums, strict=True), start=1)
            )
        return cls(
            n_steps=n_steps,
            first_step=0,
            positions=chosen,
            points=points,
            resolution=Fraction(1),
            point_variances=point_variances,
            answers=FeatureSums(sums, sum_variances),
            interpolation=None if len(chosen) == n_steps else steps,
        )

    def seen_as(self, series: NDArray[np.float64], variances: NDArray[np.float64]) -> "Measured":
        """Return the measurements with a point at every step, an estimate that was computed from them alone.

        Args:
            series: (n_nodes, n_steps), in the unit of the readings.
            variances: (n_nodes, n_steps), in that unit squared.
        """
        unit = float(self.resolution)
        return replace(
            self,
            positions=tuple(range(self.n_steps)),
            points=series / unit,
            point_variances=variances / unit**2,
            answers=FeatureSums(),
            interpolation=None,
        )

    def to_bytes(self) -> bytes:
        """Return one period's measurements as canonical JSON: integers, scales and choices, no raw state."""
        document = _to_document(self)
        return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Measured":
        """Return the measurements that `to_bytes` wrote, with their spends and public state. Raises
        ParameterError for other bytes."""
        try:
            return _from_document(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ParameterError("these bytes are not measurements that OptStream wrote") from error


def _variances(entry: ArrayLike, n_nodes: int, n_columns: int, name: str) -> NDArray[np.float64]:
    array = np.asarray(entry, dtype=np.float64)
    if array.shape == (n_nodes,):
        array = array[:, None]
    if not (np.all(array > 0) and array.shape in ((), (n_nodes, 1), (n_nodes, n_columns))):
        raise ParameterError(
            f"{name} must be greater than 0 and a scalar, ({n_nodes},) or ({n_nodes}, {n_columns}); "
            f"got shape {array.shape}"
        )
    return np.broadcast_to(array, (n_nodes, 1)) if array.ndim == 0 else array


def _to_document(measured: Measured) -> dict[str, Any]:
    """Return one period's measurements, JSON-ready: infinity as null, without raw state."""
    answers = measured.answers
    return {
        "format": FORMAT,
        "n_steps": measured.n_steps,
        "first_step": measured.first_step,
        "positions": list(measured.positions),
        "resolution": str(measured.resolution),
        "points": measured.points.tolist(),
        "point_variances": _listed(measured.point_variances),
        # the kind of answers follows from the spends
        "sums": [entry.tolist() for entry in answers.values],
        "sum_variances": None if answers.variances is None else [*map(_listed, answers.variances)],
        "spends": [spend_to_document(spend) for spend in measured.spends],
        "simulated": measured.simulated,
        "interpolation": _listed(measured.interpolation),
        "state": public_part(measured.state),
        "before": public_part(measured.before),
        "choices": measured.choices,
        "parts": [_to_document(part) for part in measured.parts],
        **({} if measured.customers is None else {"customers": measured.customers}),
    }


def _from_document(document: dict[str, Any]) -> Measured:
    """Return the measurements of a document; another format raises ParameterError."""
    if document["format"] != FORMAT:
        raise ParameterError(f"measurements of format {document['format']!r} are not {FORMAT}")
    spends = tuple(spend_from_document(entry) for entry in document["spends"])
    sums, variances = tuple(map(np.array, document["sums"])), document["sum_variances"]
    if variances is not None:
        variances = tuple(map(_arrayed, variances))
    stages = {spend.stage for spend in spends}
    kinds = (kind for kind in (BlockSums, FourierCoordinates) if sums and kind.stage in stages)
    return Measured(
        n_steps=document["n_steps"],
        first_step=document["first_step"],
        positions=tuple(document["positions"]),
        points=np.array(document["points"]),
        resolution=exact_from_text(document["resolution"]),
        spends=spends,
        simulated=document["simulated"],
        point_variances=_arrayed(document["point_variances"]),
        answers=next(kinds, FeatureSums)(sums, variances),
        interpolation=_arrayed(document["interpolation"]),
        state=document["state"],
        before=document["before"],
        choices=document["choices"],
        parts=tuple(_from_document(part) for part in document["parts"]),
        customers=tuple(map(int, document["customers"])) if "customers" in document else None,
    )
