"""The only types that hold raw values: the readings of a period, and the raw part of a mechanism's state."""

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import plain

# Readings become integers: clamped to public bounds, rounded half up on exact decimals.

LARGEST_UNITS = 2**50  # integers stay below this, so that they are exact as floats and their sums fit int64

LONGEST_IN_INT64 = 2**12
"""Steps of a period up to which measurements multiply and add readings in int64: chosen by how long a period
is, never by how large its readings are, for what holds more takes time and memory that others do not."""


def quantise(values: NDArray[Any], resolution: Fraction) -> NDArray[np.int64]:
    """Return floor(value / resolution + 1/2) for each value, computed exactly, same shape (Lemma 2). A float
    stands for its shortest decimal. Beyond 2^50 units values, infinities included, are clamped, and NaN
    counts as 0: no reading decides whether there is an answer."""
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        raise ParameterError(f"values must be integers or floats to be counted; got dtype {values.dtype}")
    if values.dtype.kind in "iu":
        scale = 1 / resolution
        bound = LARGEST_UNITS / float(scale)
        if scale.denominator == 1 and np.all((values > -bound) & (values < bound)):
            return values.astype(np.int64) * int(scale)
    else:
        values = np.where(np.isnan(values), values.dtype.type(0), values)
    # A little outside, so that floating point cannot clamp values within.
    size, largest = values.astype(np.float64), LARGEST_UNITS * float(resolution) * (1 + 2.0**-40)
    above, below = size >= largest, size <= -largest
    values = np.where(above | below, values.dtype.type(0), values)
    # The product is within a few ulp of the exact quotient; where that could decide, decide exactly. The
    # bound is on a float's relative distance from its shortest decimal, two roundings included.
    relative = 4 * float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 1e-15
    quotients = values.astype(np.float64) / float(resolution)
    units = np.floor(quotients + 0.5)
    doubtful = np.abs(quotients + 0.5 - np.rint(quotients + 0.5)) <= np.abs(quotients) * relative + 1e-9
    distinct, which = np.unique(values[doubtful], return_inverse=True)
    decided = [math.floor(Fraction(Decimal(str(value))) / resolution + Fraction(1, 2)) for value in distinct]
    units[doubtful] = np.array(decided, dtype=np.float64)[which]
    units = np.where(above, LARGEST_UNITS, np.where(below, -LARGEST_UNITS, units))
    return np.clip(units, -LARGEST_UNITS, LARGEST_UNITS).astype(np.int64)


class _Sealed:
    """A holder of raw values, which is neither changed nor pickled, and is equal to itself alone."""

    __slots__ = ()
    called: ClassVar[str]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {self.called} cannot be changed")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"a {self.called} is not pickled: it would leave the trusted zone in clear")


class PrivatePeriod(_Sealed):
    """The raw readings of one period, summed to leaves: int64 units of `resolution`, (n_leaves, n_steps), and
    the customers of each leaf, where they are counted.

    It shows its shape alone: no repr, no comparison, no attribute gives a value. Only `optstream.measurement`
    opens it (`open_private_period`); a test holds that border.
    """

    __slots__ = ("__customers", "__units", "first_step", "resolution")
    called = "private period"
    __units: NDArray[np.int64]
    __customers: NDArray[np.int64] | None
    first_step: int
    resolution: Fraction

    def __init__(
        self,
        units: NDArray[np.int64],
        *,
        resolution: Fraction,
        first_step: int,
        customers: NDArray[np.int64] | None = None,
    ) -> None:
        """Take integer units, clamped so that sums over all leaves stay below 2^50 units. Raises
        ParameterError for another type or shape, and for a first step that is no integer.

        Args:
            units: int64, (n_leaves, n_steps), not empty.
            resolution: The unit, in the unit of the readings.
            first_step: Running index of the first step.
            customers: int64, (n_leaves,); None where they are not counted.
        """
        if not isinstance(units, np.ndarray) or units.dtype != np.int64 or units.ndim != 2 or not units.size:
            raise ParameterError("a period must hold at least one step, as int64 (n_leaves, n_steps)")
        first = plain(first_step)
        if isinstance(first, bool) or not isinstance(first, int):
            raise ParameterError(f"first_step of a period must be a whole number; got {first_step!r:.80}")
        # Clamped, not refused: whether a day appears must not depend on a reading (and clamping is free).
        largest = LARGEST_UNITS // len(units)
        own = np.clip(units, -largest, largest)
        own.setflags(write=False)
        object.__setattr__(self, "_PrivatePeriod__units", own)
        object.__setattr__(self, "_PrivatePeriod__customers", customers)
        object.__setattr__(self, "resolution", resolution)
        object.__setattr__(self, "first_step", first)

    @classmethod
    def from_values(cls, values: ArrayLike, *, resolution: Fraction, first_step: int) -> "PrivatePeriod":
        """Return readings, rounded half up to the resolution, as a period.

        Values that are too large are clamped and NaN counts as 0. Raises ParameterError for values that are
        no numbers by their type, or none at all; never for a value.

        Args:
            values: (n_leaves, n_steps), or (n_steps,) for one leaf, in the unit of the readings.
            resolution: The unit to round to.
            first_step: Running index of the first step.
        """
        array = np.atleast_2d(np.asarray(values))
        return cls(quantise(array, resolution), resolution=resolution, first_step=first_step)

    @property
    def n_leaves(self) -> int:
        return int(self.__units.shape[0])

    @property
    def n_steps(self) -> int:
        return int(self.__units.shape[1])

    def __repr__(self) -> str:
        return (
            f"PrivatePeriod(n_leaves={self.n_leaves}, n_steps={self.n_steps}, first_step={self.first_step})"
        )


def open_private_period(period: PrivatePeriod) -> NDArray[np.int64]:
    """Return the raw integers, read-only, (n_leaves, n_steps). For `optstream.measurement` alone."""
    units: NDArray[np.int64] = object.__getattribute__(period, "_PrivatePeriod__units")
    return units


def open_customers(period: PrivatePeriod) -> NDArray[np.int64]:
    """Return how many customers each leaf has, (n_leaves,). For `optstream.measurement` alone."""
    customers: NDArray[np.int64] | None = object.__getattribute__(period, "_PrivatePeriod__customers")
    if customers is None or customers.shape != (period.n_leaves,):
        raise ParameterError("the customers of this period were not counted")
    return customers


# A mechanism's state from period to period: public facts, and raw ones that stay in the trusted zone.

ORDER = "order"
"""Key of a state: the orders of noise that the next period goes on with (`measurement.ordered`)."""
State = Mapping[str, Any]
"""JSON-ready, public, but for entries of type `RawState`, which no public document takes."""


class RawState(_Sealed):
    """Raw values that a mechanism carries to the next period. Nothing shows it: no repr, no comparison, no
    public attribute gives a value; JSON and pickle refuse it. Only `optstream.measurement` opens it
    (`open_raw_state`); `raw_bytes` is for the store."""

    __slots__ = ("__content",)
    called = "raw state"
    __content: str

    def __init__(self, content: Any) -> None:
        """Keep the content, JSON-ready, as text, so that no reference to it remains. Raises TypeError for
        what JSON lacks, ValueError for a number that is not finite."""
        object.__setattr__(self, "_RawState__content", json.dumps(content, allow_nan=False))

    def __repr__(self) -> str:
        return "RawState()"


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
