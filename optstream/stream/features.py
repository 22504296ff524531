"""Features: partitions of a period, whose sums are measured in addition to single steps."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError


@dataclass(frozen=True)
class Feature:
    """A partition of a period's steps into consecutive parts. Raises ParameterError if the parts are not such
    a partition.

    Args:
        parts: Ranges of steps, in order, covering 0 .. n_steps without gap or overlap; at least one, none
            empty.
        name: Its name in lineage.
    """

    parts: tuple[range, ...]
    name: str = "feature"

    def __post_init__(self) -> None:
        expected = 0
        for part in self.parts:
            if part.step != 1 or part.start != expected or len(part) == 0:
                raise ParameterError(
                    f"parts of feature {self.name!r} must follow each other from step 0 without gap, overlap "
                    f"or empty part; part {part.start}-{part.stop} should start at {expected}"
                )
            expected = part.stop
        if not self.parts:
            raise ParameterError(f"feature {self.name!r} must have at least one part")

    @property
    def n_steps(self) -> int:
        """Steps of the period."""
        return self.parts[-1].stop

    @property
    def n_parts(self) -> int:
        """How many parts it has."""
        return len(self.parts)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The indicator of the parts, shape (n_parts, n_steps)."""
        sizes = [len(part) for part in self.parts]
        return np.repeat(np.eye(self.n_parts), sizes, axis=1)

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact sum over each part, (…, n_parts).

        Args:
            values: (…, n_steps), in units of the resolution.
        """
        return np.add.reduceat(values, [part.start for part in self.parts], axis=-1)

    @classmethod
    def from_clock(
        cls, times: Sequence[str | time], timestamps: Sequence[datetime], name: str = "feature"
    ) -> "Feature":
        """Return a day cut at clock times.

        A part begins at the first step at or after its time; on a day whose clock is set back or forward the
        parts differ in length, and a time that the day has no step for gives no part. Raises ParameterError
        for a malformed or unordered time.

        Args:
            times: "07:00" or `datetime.time`, rising; none gives the whole day as one part.
            timestamps: Local start of each step, as `Calendar.local_times` returns them.
            name: Its name in lineage.
        """
        clocks = list[time]()
        for entry in times:
            try:
                clocks.append(entry if isinstance(entry, time) else time.fromisoformat(entry))
            except (ValueError, TypeError) as error:
                raise ParameterError(
                    f'times of feature {name!r} must be clock times such as "07:00"; got {entry!r}'
                ) from error
        if sorted(set(clocks)) != clocks:
            raise ParameterError(
                f"times of feature {name!r} must rise, each once; got {list(map(str, times))}"
            )
        later = ([step for step, at in enumerate(timestamps) if at.time() >= one] for one in clocks)
        edges = sorted({0, len(timestamps), *(steps[0] for steps in later if steps)})
        return cls(tuple(range(a, b) for a, b in itertools.pairwise(edges)), name)

    @staticmethod
    def day_parts(n_steps: int) -> "list[Feature]":
        """Return the OptStream paper's two features: night, morning, afternoon, evening; and the whole day.
        Raises ParameterError unless these hours are whole steps.

        Args:
            n_steps: Of a day; a multiple of 24, for cuts at 7, 12 and 18 h.
        """
        hours = (0, 7, 12, 18, 24)
        if isinstance(n_steps, bool) or not isinstance(n_steps, int) or n_steps < 24 or n_steps % 24:
            raise ParameterError(
                "n_steps of Feature.day_parts must be a multiple of 24, so that 7, 12 and 18 h are whole "
                f"steps; got {n_steps!r}; use Feature.from_clock for other days"
            )
        edges = [hour * n_steps // 24 for hour in hours]
        parts = tuple(range(a, b) for a, b in itertools.pairwise(edges))
        return [Feature(parts, "day parts"), Feature((range(n_steps),), "day")]


# The real orthonormal Fourier basis of a period, as floats and as integers. Public; no reading enters.

BASIS_BITS = 24  # the integer basis differs from an orthonormal one by less than 2^-24 in operator norm
LONGEST_PERIOD = 2**20  # steps. Up to here floats hold the basis far more exactly than its integers need.


@lru_cache(maxsize=64)
def fourier_basis(n_steps: int, n_coordinates: int) -> NDArray[np.float64]:
    """Return the first basis rows, (min(n_coordinates, n_steps), n_steps), read-only; B B' = 1. In the order
    mean, sqrt(2) Re and sqrt(2) Im of the first frequency, of the second, …; the last row of an even number
    of steps is the Nyquist frequency."""
    if n_steps > LONGEST_PERIOD:
        raise ParameterError(f"a period of Fourier must have at most {LONGEST_PERIOD} steps; got {n_steps}")
    kept = min(n_coordinates, n_steps)
    steps = np.arange(n_steps, dtype=np.int64)
    rows = np.empty((kept, n_steps))
    for row in range(kept):
        frequency = (row + 1) // 2
        # reduced as integers, so that the angle is as exact at the last step as at the first
        angle = 2 * np.pi * (frequency * steps % n_steps) / n_steps
        alone = 2 * frequency in (0, n_steps)
        wave = np.cos(angle) if alone or row % 2 else -np.sin(angle)
        rows[row] = wave * np.sqrt((1 if alone else 2) / n_steps)
    rows.setflags(write=False)
    return rows


def integer_bits(n_steps: int) -> int:
    """Return the binary places of `integer_basis`, 30 for a day of 48 steps: the whole matrix is off by less
    than n_steps * 2^-bits < 2^-24 in operator norm (Lemma 8)."""
    return BASIS_BITS + n_steps.bit_length()


@lru_cache(maxsize=64)
def integer_basis(n_steps: int, n_coordinates: int) -> NDArray[np.int64]:
    """Return the basis times 2^integer_bits(n_steps), rounded to integers, read-only. Raises as it does."""
    rounded = np.rint(np.ldexp(fourier_basis(n_steps, n_coordinates), integer_bits(n_steps)))
    rows = rounded.astype(np.int64)
    rows.setflags(write=False)
    return rows
