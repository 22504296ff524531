"""A mechanism's state from period to period: public facts, and raw ones that stay in the trusted zone."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, SupportsIndex

from optstream.errors import ParameterError

ORDER = "order"
"""Key of a state: the orders of noise that the next period goes on with (`measurement.ordered`)."""
State = Mapping[str, Any]
"""JSON-ready, public, but for entries of type `RawState`, which no public document takes."""


class RawState:
    """Raw values that a mechanism carries to the next period. Nothing shows it: no repr, no comparison, no
    public attribute gives a value; JSON and pickle refuse it. Only `optstream.measurement` opens it
    (`open_raw_state`); `raw_bytes` is for the store."""

    __slots__ = ("__content",)
    __content: str

    def __init__(self, content: Any) -> None:
        """Keep the content, JSON-ready, as text, so that no reference to it remains. Raises TypeError for
        what JSON lacks, ValueError for a number that is not finite."""
        object.__setattr__(self, "_RawState__content", json.dumps(content, allow_nan=False))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a raw state cannot be changed")

    def __repr__(self) -> str:
        return "RawState()"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a raw state is not pickled: it would leave the trusted zone in clear")

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def open_raw_state(state: RawState) -> Any:
    """Return the content. For `optstream.measurement` alone."""
    return json.loads(object.__getattribute__(state, "_RawState__content"))


def public_part(state: State | None) -> State | None:
    """Return the state without its raw entries, at any depth."""
    if state is None:
        return None
    return {
        key: public_part(value) if isinstance(value, Mapping) else value
        for key, value in state.items()
        if not isinstance(value, RawState)
    }


def raw_bytes(state: State | None) -> bytes | None:
    """Return the raw entries alone, for a file of the trusted zone; None where there are none."""
    raw = _raw_entries(state or {})
    return json.dumps(raw, sort_keys=True).encode() if raw else None


def with_raw(state: State | None, data: bytes) -> State:
    """Put back what `raw_bytes` took out. Raises ParameterError if the bytes are something else."""
    try:
        return _merged(state or {}, json.loads(data))
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ParameterError("these bytes are no raw state that OptStream wrote") from error


def with_raw_of(state: State, other: State | None) -> State:
    """Return a state with the raw entries of another one at their places."""
    raw = raw_bytes(other)
    return with_raw(state, raw) if raw else state


RAW = "raw state"


def _raw_entries(state: State) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in state.items():
        if isinstance(value, RawState):
            found[key] = {RAW: open_raw_state(value)}
        elif isinstance(value, Mapping) and (inner := _raw_entries(value)):
            found[key] = inner
    return found


def _merged(state: State, raw: Mapping[str, Any]) -> State:
    merged = dict(state)
    for key, value in raw.items():
        merged[key] = RawState(value[RAW]) if RAW in value else _merged(merged.get(key) or {}, value)
    return merged
