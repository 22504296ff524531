"""Lines and bands as SVG paths: whole numbers in a box that the page stretches, so that years stay small.

A box is as wide as it has columns and HEIGHT high; strokes do not stretch with it, and all text stands beside
it as HTML, so that it is as large on a telephone as on a wall. NaN breaks a line.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
HEIGHT = 400


@dataclass(frozen=True)
class Scale:
    """From values to heights: low is at the bottom, high at the top."""

    low: float
    high: float

    def heights(self, values: Values) -> Values:
        """Whole numbers from 0 at the top to HEIGHT at the bottom, as far as values lie within; NaN stays."""
        found: Values = np.round((self.high - values) / (self.high - self.low) * HEIGHT)
        return np.clip(found, -HEIGHT, 2 * HEIGHT)

    def percent(self, value: float) -> float:
        """How far from the top, of the box."""
        return round(100 * (self.high - value) / (self.high - self.low), 2)


def line(places: Values, values: Values, scale: Scale) -> str:
    """The path through (place, value); a value between two that are not known is a dot."""
    return "".join(_piece(xs, ys) for xs, ys in _pieces(places, scale.heights(values)))


def band(places: Values, lower: Values, upper: Values, scale: Scale) -> str:
    """The closed path around the band; parts where either bound is not known are left out."""
    drawn = []
    both = np.stack([scale.heights(lower), scale.heights(upper)])
    for xs, ys in _pieces(places, both):
        there = _piece(xs, ys[1])
        back = _steps(np.concatenate([xs[-1:], xs[::-1]]), np.concatenate([ys[1][-1:], ys[0][::-1]]))
        drawn.append(f"{there}{back}z")
    return "".join(drawn)


def _pieces(places: Values, heights: Values) -> Iterator[tuple[Values, Values]]:
    """Runs of columns in which all heights are known. heights: (n,) or (k, n)."""
    known = np.isfinite(heights).all(axis=0) if heights.ndim > 1 else np.isfinite(heights)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(np.int8), [0]])))
    xs = np.round(places)
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        yield xs[start:stop], heights[..., start:stop]


def _piece(xs: Values, ys: Values) -> str:
    dot = "h0" if xs.size == 1 else ""
    return f"M{int(xs[0])} {int(ys[0])}{_steps(xs, ys)}{dot}"


def _steps(xs: Values, ys: Values) -> str:
    """Relative lines; a minus sign is a separator too."""
    across, down = np.diff(xs).astype(int), np.diff(ys).astype(int)
    if not across.size:
        return ""
    text = " ".join(f"{a} {b}" for a, b in zip(across, down, strict=True))
    return f"l{text.replace(' -', '-')}"
