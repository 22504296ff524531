"""The only type that holds raw values."""

from fractions import Fraction
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import plain
from optstream.stream.quantise import LARGEST_UNITS, quantise


class PrivatePeriod:
    """The raw readings of one period, summed to leaves: int64 units of `resolution`, (n_leaves, n_steps).

    It shows its shape and nothing else: no repr, no comparison, no attribute gives a value. Only the packages
    of `optstream.measurement` open it (`open_private_period`); a test holds that border.
    """

    __slots__ = ("__units", "first_step", "resolution")
    __units: NDArray[np.int64]
    first_step: int
    resolution: Fraction

    def __init__(self, units: NDArray[np.int64], *, resolution: Fraction, first_step: int) -> None:
        """Take integer units, clamped so that sums over all leaves stay below 2^50 units.

        Args:
            units: int64, (n_leaves, n_steps), not empty.
            resolution: The unit, in the unit of the readings.
            first_step: Running index of the first step.

        Raises:
            ParameterError: For another type or shape, and for a first step that is no integer.
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
        object.__setattr__(self, "resolution", resolution)
        object.__setattr__(self, "first_step", first)

    @classmethod
    def from_values(cls, values: ArrayLike, *, resolution: Fraction, first_step: int) -> "PrivatePeriod":
        """Return readings, rounded half up to the resolution, as a period.

        What is too large is clamped and NaN counts as 0, as `quantise` says.

        Args:
            values: (n_leaves, n_steps), or (n_steps,) for one leaf, in the unit of the readings.
            resolution: The unit to round to.
            first_step: Running index of the first step.

        Returns:
            The period.

        Raises:
            ParameterError: For values that are no numbers by their type, or none at all; never for a value.
        """
        array = np.atleast_2d(np.asarray(values))
        return cls(quantise(array, resolution), resolution=resolution, first_step=first_step)

    @property
    def n_leaves(self) -> int:
        """How many leaves it has."""
        return int(self.__units.shape[0])

    @property
    def n_steps(self) -> int:
        """How many steps it has."""
        return int(self.__units.shape[1])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a private period cannot be changed")

    def __repr__(self) -> str:
        return (
            f"PrivatePeriod(n_leaves={self.n_leaves}, n_steps={self.n_steps}, first_step={self.first_step})"
        )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a private period is not pickled: it would leave the trusted zone in clear")

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def open_private_period(period: PrivatePeriod) -> NDArray[np.int64]:
    """Return the raw integers, read-only, (n_leaves, n_steps). For `optstream.measurement` alone."""
    units: NDArray[np.int64] = object.__getattribute__(period, "_PrivatePeriod__units")
    return units
