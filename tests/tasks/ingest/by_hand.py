"""Metered ingest by its public rules, row by row in plain Python: what the quick one must equal."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optstream.errors import ParameterError


@dataclass(frozen=True)
class Row:
    """One row as delivered. customer: text, or None. step: negative or beyond the day for an odd stamp,
    None for none. reading: the exact decimal, an infinite or NaN float, or None."""

    customer: str | None
    step: int | None
    reading: Fraction | float | None


def ingest_by_hand(
    leaves: Sequence[Sequence[Sequence[Row]]],
    n_steps: int,
    bounds: tuple[Fraction, Fraction],
    resolution: Fraction,
) -> tuple[list[list[int]], list[Counter[str]]]:
    """The units (n_leaves, n_steps), and how many rows of each leaf each rule is about."""
    units = [[0] * n_steps for _ in leaves]
    counts: list[Counter[str]] = [Counter() for _ in leaves]
    homes = {
        (row.customer, row.step, leaf) for leaf, files in enumerate(leaves) for file in files for row in file
    }
    n_homes = Counter((customer, step) for customer, step, _ in homes)
    seen: set[tuple[str, int]] = set()
    for leaf, files in enumerate(leaves):
        found = set()
        for row in (row for file in files for row in file):
            counts[leaf]["no_customer"] += row.customer is None
            if row.step is None or not 0 <= row.step < n_steps:
                counts[leaf]["no_timestamp" if row.step is None else "outside_day"] += 1
                continue
            found.add(row.step)
            counted, kind = _count(row.reading, bounds, resolution)
            counts[leaf][kind] += 1
            if row.customer is None:
                continue  # nobody's: not counted
            if n_homes[row.customer, row.step] > 1:
                counts[leaf]["two_leaves"] += 1
            elif (row.customer, row.step) in seen:
                counts[leaf]["duplicates"] += 1
            else:
                seen.add((row.customer, row.step))
                units[leaf][row.step] += counted
        counts[leaf]["steps_found"] = len(found)
        counts[leaf]["missing_steps"] = n_steps - len(found)
    return units, counts


def _count(
    reading: Fraction | float | None, bounds: tuple[Fraction, Fraction], resolution: Fraction
) -> tuple[int, str]:
    if reading is None or (isinstance(reading, float) and math.isnan(reading)):
        return 0, "absent"
    if isinstance(reading, float):
        if not math.isinf(reading):
            raise ParameterError("a finite reading is given as its exact decimal")
        return _rounded(bounds[reading > 0], resolution), "infinite"
    clamped = min(max(reading, bounds[0]), bounds[1])
    return _rounded(clamped, resolution), "sound" if clamped == reading else "out_of_bounds"


def _rounded(value: Fraction, resolution: Fraction) -> int:
    return math.floor(value / resolution + Fraction(1, 2))
