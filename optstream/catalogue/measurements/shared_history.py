"""What a day remembers of days before: left out of its own file of measurements, and put back from theirs.

A day that remembers all blocks of weeks would else show those of a day that was withdrawn since, or never
published. So a history is published as which blocks it holds, without their sums; each sum is published by
its own day alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.estimation.gaussian_process.history import BlockHistory, n_series_of, packed
from optstream.stream import Measured

Document = dict[str, Any]
Block = tuple[int, int, int, float]
"""Level, first step, number of steps, noise scale."""
HISTORY, SUMS, SERIES = "history", "sums", "n_series"


def without_sums(document: Document, levels: Sequence[int]) -> Document:
    """Return a document of measurements, each history with the number of its series in place of the sums.
    Pure.

    levels: of its parts, in their order. The given document stays.
    """

    def bare(history: Mapping[str, Any], level: int) -> Document:
        kept = {key: value for key, value in history.items() if key != SUMS}
        return {**kept, SERIES: n_series_of(history)}

    return _with_histories(document, levels, bare)


def with_sums(document: Document, levels: Sequence[int], known: Mapping[Block, Sequence[int]]) -> Document:
    """Return what `without_sums` was given.

    known: the sums of every block, one for each node of its level (`blocks_of`). Raises KeyError for a block
    that is not known.
    """

    def full(history: Mapping[str, Any], level: int) -> Document:
        columns = [known[block] for block in _blocks(history, level)]
        kept = {key: value for key, value in history.items() if key != SERIES}
        sums = np.array(columns, dtype=np.float64).reshape(len(columns), history[SERIES]).T
        return {**kept, SUMS: packed(sums)}

    return _with_histories(document, levels, full)


def remembered(document: Document, levels: Sequence[int]) -> set[Block]:
    """Return the blocks that the histories of a document hold."""
    found: set[Block] = set()

    def seen(history: Mapping[str, Any], level: int) -> Document:
        found.update(_blocks(history, level))
        return dict(history)

    _with_histories(document, levels, seen)
    return found


def blocks_of(measured: Measured, levels: Sequence[int]) -> dict[Block, tuple[int, ...]]:
    """Return the sums of every block that a period measured, if any, one for each node of its level."""
    found: dict[Block, tuple[int, ...]] = {}
    for level, part in zip(levels, measured.parts or (measured,), strict=True):
        try:
            own = BlockHistory.of(part)
        except ParameterError:
            continue
        document = own.to_document()
        for column, block in enumerate(_blocks(document, level)):
            found[block] = tuple(own.sums[:, column].astype(np.int64).tolist())
    return found


def _blocks(history: Mapping[str, Any], level: int) -> Iterator[Block]:
    columns = zip(history["starts"], history["lengths"], history["scales"], strict=True)
    return ((level, start, length, scale) for start, length, scale in columns)


def _with_histories(document: Document, levels: Sequence[int], change: Any) -> Document:
    """Return the document with every history of its states, and of its parts', changed."""

    def states(one: Document, level: int) -> Document:
        return {**one, **{key: _changed(one[key], level, change) for key in ("state", "before")}}

    if not document["parts"]:
        return states(document, levels[0])
    parts = [states(part, level) for level, part in zip(levels, document["parts"], strict=True)]
    return {**states(document, 0), "parts": parts}


def _changed(state: Any, level: int, change: Any) -> Any:
    """Return a state with its history changed, and those of the levels that it holds."""
    if not isinstance(state, Mapping):
        return state
    found = dict(state)
    if isinstance(found.get(HISTORY), Mapping):
        found[HISTORY] = change(found[HISTORY], level)
    if isinstance(found.get("levels"), Mapping):
        found["levels"] = {key: _changed(one, int(key), change) for key, one in found["levels"].items()}
    return found
