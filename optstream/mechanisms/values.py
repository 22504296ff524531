"""From a caller's values to a private period: frames by label, arrays by position.

Labels, types and shapes, which are public, may be refused, never a reading; and before any noise is drawn.
"""

import sys
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel
from optstream.stream import PrivatePeriod

MOST_NAMED = 5
"""Leaves that one error names."""


def as_period(
    values: ArrayLike | PrivatePeriod, model: PrivacyModel, first_step: int, leaves: Sequence[str] | None
) -> PrivatePeriod:
    """Return readings (n_series, n_steps) as a private period, rounded to the model's resolution.

    A frame's rows or columns are put in the order of `leaves`, None over plain series, by their labels.
    Values that are too large are clamped, and missing ones count as 0 (`quantise`): whether there is a
    release must not depend on a reading.
    """
    if not isinstance(values, PrivatePeriod):
        array = _in_order(values, leaves)
        return PrivatePeriod.from_values(array, resolution=model.resolution, first_step=first_step)
    if first_step not in (0, values.first_step):
        raise ParameterError(
            f"first_step is {first_step}, and the period begins at {values.first_step}: leave it out"
        )
    if values.resolution != model.resolution:
        raise ParameterError(
            f"the period's resolution {values.resolution} is not the model's {model.resolution}"
        )
    return values


def as_column(value: ArrayLike) -> ArrayLike:
    """Return the readings of one step as those of a period: labels stay, an array becomes a column."""
    if _is_of("pandas", value, "Series"):
        labelled: Any = value
        column: ArrayLike = labelled.to_frame()
        return column
    return value if _is_frame(value) else np.atleast_1d(np.asarray(value))[:, None]


def check_noise(noise: NoiseSource) -> None:
    """Raise ParameterError for anything but a source of noise, such as 0."""
    if isinstance(noise, type) or not hasattr(noise, "discrete_laplace"):
        raise ParameterError(
            "noise must be secure_noise(), or simulated_noise(seed) for unpublished values: nothing is "
            f"released without noise, and epsilon says how much; got {noise!r:.80}"
        )


def _in_order(values: Any, leaves: Sequence[str] | None) -> ArrayLike:
    """Return a frame's readings (n_leaves, n_steps), labels matched with the leaves; an array as it is."""
    if not _is_frame(values):
        known = isinstance(values, np.ndarray | np.generic | Sequence | Number)
        if not known:
            raise ParameterError(
                "values must be a numpy array or lists, series in their order, or a polars or pandas frame, "
                f"leaves by their names; got {type(values).__name__}"
            )
        # masked entries are missing; numpy would take the values under the mask
        array: ArrayLike = values.filled(0) if isinstance(values, np.ma.MaskedArray) else values
        return array
    is_series = _is_of("polars", values, "Series") or _is_of("pandas", values, "Series")
    if leaves is None:
        if is_series:
            array = values.to_numpy()
            return array
        raise ParameterError(
            "this mechanism is over plain series, which have no names that a frame's labels could be matched "
            "with: give an array, a series in each row, or put the mechanism on its tree (Hierarchical)"
        )
    frame = values.to_frame() if is_series else values
    has_index = hasattr(frame, "index")
    by_column = _same(frame.columns, leaves)
    by_row = has_index and _same(frame.index, leaves)
    if by_column == by_row:
        labels = {*frame.columns, *(frame.index if has_index else ())}
        missing = [leaf for leaf in leaves if leaf not in labels]
        named = f"; missing: {', '.join(map(repr, missing[:MOST_NAMED]))}" if missing else ""
        if not missing and {*leaves} <= {*frame.columns}:
            others = [f"{label!r:.80}" for label in frame.columns if label not in leaves]
            twice = [f"{leaf!r:.80}" for leaf in leaves if [*frame.columns].count(leaf) > 1]
            named = f"; more than once: {', '.join(twice[:MOST_NAMED])}" if twice else "; here both have them"
            named = f"; no leaf: {', '.join(others[:MOST_NAMED])}" if others else named
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        raise ParameterError(
            "a frame must have each leaf of the hierarchy once, and nothing else, in its columns, or in the "
            f"index of a pandas frame{named}{more}"
        )
    if by_row:
        frame = frame.T
    if not all(_is_number(dtype) for dtype in frame.dtypes):
        raise ParameterError("a frame's columns must be integers or floats to be counted")
    if not has_index:
        filled: ArrayLike = frame.select(leaves).fill_null(0).to_numpy().T
        return filled
    if frame.index.inferred_type != "string" and not frame.index.is_monotonic_increasing:
        raise ParameterError(
            "a frame's steps must be in order: sort them by time, in UTC where clocks change"
        )
    return np.stack([frame[leaf].fillna(0).to_numpy() for leaf in leaves])


def _is_of(library: str, value: object, name: str) -> bool:
    """Return whether a value is of a library's class, which it can only be where that is imported."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(value, kind)


def _is_frame(value: object) -> bool:
    return any(
        _is_of(library, value, name) for library in ("polars", "pandas") for name in ("DataFrame", "Series")
    )


def _same(labels: Iterable[object], leaves: Sequence[str]) -> bool:
    """Return whether the labels are the leaves, each once, in any order."""
    known = list(labels)
    return len(known) == len(leaves) and set(known) == set(leaves)


def _is_number(dtype: Any) -> bool:
    """Return whether a column's type, polars' or pandas', is of integers or floats."""
    if hasattr(dtype, "is_numeric"):
        return bool(dtype.is_integer() or dtype.is_float())
    return dtype.kind in "iuf"
