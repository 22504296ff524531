"""Measurements as a JSON-ready document, and back. Raw state is left out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text
from optstream.privacy.spends import spend_from_document, spend_to_document
from optstream.stream.measured import Measured
from optstream.stream.state import public_part

FORMAT = "optstream.measured/2"


def to_document(measured: Measured) -> dict[str, Any]:
    """Return one period's measurements; infinity, which JSON lacks, as null."""
    sums = measured.sum_variances
    return {
        "format": FORMAT,
        "n_steps": measured.n_steps,
        "first_step": measured.first_step,
        "positions": list(measured.positions),
        "resolution": str(measured.resolution),
        "points": measured.points.tolist(),
        "sums": [entry.tolist() for entry in measured.sums],
        "point_variances": _listed(measured.point_variances),
        "sum_variances": None if sums is None else [_listed(variances) for variances in sums],
        "spends": [spend_to_document(spend) for spend in measured.spends],
        "simulated": measured.simulated,
        "interpolation": _listed(measured.interpolation),
        "state": public_part(measured.state),
        "before": public_part(measured.before),
        "choices": measured.choices,
        "parts": [to_document(part) for part in measured.parts],
    }


def from_document(document: dict[str, Any]) -> Measured:
    """Return the measurements of a document. Raises ParameterError for another format, KeyError, TypeError or
    ValueError for no such document.
    """
    if document["format"] != FORMAT:
        raise ParameterError(f"measurements of format {document['format']!r} are not {FORMAT}")
    sums = document["sum_variances"]
    return Measured(
        n_steps=document["n_steps"],
        first_step=document["first_step"],
        positions=tuple(document["positions"]),
        points=np.array(document["points"]),
        sums=tuple(np.array(entry) for entry in document["sums"]),
        resolution=exact_from_text(document["resolution"]),
        point_variances=_arrayed(document["point_variances"]),
        sum_variances=None if sums is None else tuple(np.array(_numbers(entry)) for entry in sums),
        spends=tuple(spend_from_document(entry) for entry in document["spends"]),
        simulated=document["simulated"],
        interpolation=_arrayed(document["interpolation"]),
        state=document["state"],
        before=document["before"],
        choices=document["choices"],
        parts=tuple(from_document(part) for part in document["parts"]),
    )


def _listed(values: NDArray[np.float64] | None) -> list[Any] | None:
    """Return floats as their shortest text."""
    if values is None:
        return None
    nested: list[Any] = np.where(np.isfinite(values), values, None).tolist()  # type: ignore[call-overload]  # numpy's stubs know no None
    return nested


def _numbers(nested: Any) -> Any:
    if isinstance(nested, list):
        return [_numbers(entry) for entry in nested]
    return np.inf if nested is None else float(nested)


def _arrayed(nested: list[Any] | None) -> NDArray[np.float64] | None:
    return None if nested is None else np.array(_numbers(nested))
