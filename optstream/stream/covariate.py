"""A public series that explains part of a private one: a value a day, for all series alike or for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError

WARM_UP_DAYS = 14  # days before the first that is estimated from: smoothed values need a past
LARGEST = 1e15  # a value beyond it counts as missing: squares of larger ones leave floating point


@dataclass(frozen=True, eq=False)
class Covariate:
    """Public values a day, such as temperature or school holidays. Raises ParameterError for values of
    another shape.

    Args:
        name: Of the covariate.
        first_day: The public clock's day of the first column.
        values: (1, n_days) for all series alike, or a row for each series, or for each node of a tree; nan
            where missing. A row of nan throughout: the covariate does not apply there.
        lag_days: After how many days a day's value is public. The night after a day releases it, so with 1
            the value of that day is known.
        level: The level of a tree whose nodes respond each in their own way; None for the deepest one that
            has few nodes.
    """

    name: str
    first_day: int
    values: NDArray[np.float64]
    lag_days: int = 1
    level: int | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or not self.values.size:
            raise ParameterError(
                f"values of covariate {self.name!r} must have a row for all series or for each, and a column "
                f"for each day; got shape {self.values.shape}"
            )

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """All that it is: two of the same key are equal."""
        return self.name, self.first_day, self.values.tobytes(), self.values.shape, self.lag_days, self.level

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Covariate) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def public(self, day: int, history_days: int) -> "Covariate | None":
        """Return the values that are public in the night that releases a day; None without any."""
        last = min(day, day + 1 - self.lag_days)
        first = max(self.first_day, day - history_days - WARM_UP_DAYS)
        if last < first:
            return None
        values = self.values[:, first - self.first_day : last + 1 - self.first_day]
        values = np.where(np.abs(values) <= LARGEST, values, np.nan)
        if not np.isfinite(values).any():
            return None
        return Covariate(self.name, first, values, self.lag_days, self.level)

    def has_value_on(self, day: int) -> bool:
        """Return whether every row with values has one on a day; else estimates go without."""
        column, known = day - self.first_day, np.isfinite(self.values)
        return 0 <= column < known.shape[1] and bool(known[known.any(axis=1), column].all())

    def to_document(self) -> dict[str, Any]:
        """Return it as a JSON-ready document, a missing value as null."""
        rows = np.where(np.isfinite(self.values), self.values, None)  # type: ignore[call-overload]  # numpy's stubs know no None
        own = {"first_day": self.first_day, "values": rows.tolist(), "lag_days": self.lag_days}
        return {"name": self.name, **own} | ({} if self.level is None else {"level": self.level})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Covariate":
        """Return what `to_document` wrote."""
        return cls(**{**document, "values": np.array(document["values"], dtype=np.float64)})
