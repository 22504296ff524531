"""Algorithms 2 to 5: L as few pieces, each with its own q and d, precomputed from a transition matrix.

For one pair of rows the optimal columns are those of greatest q_j/d_j: a prefix of the sorted columns. Its
sums (d, q) are points; with u = 1/(e^a - 1) the loss is log((q + u)/(d + u)), the slope from (-u, -u) to the
point. So over all pairs and all a the optimal points are the corners of one convex hull, met in turn as u
falls: what Algorithms 2 to 5 find by comparing pairs is read off its edges.
"""

from dataclasses import dataclass

import numpy as np

from studies.leakage.amounts import Floats

CELLS_AT_ONCE = 2**17
"""Entries of the arrays in which pairs of rows are compared: a few megabytes."""

Points = tuple[Floats, Floats]
"""d and q of points, of the same shape."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of L, all of shape (n_pieces,); no piece where L is 0 everywhere.

    From a = starts[k] up to the next start, L(a) = log((q[k] (e^a - 1) + 1) / (d[k] (e^a - 1) + 1)). Along
    the pieces both q and d fall: large a belongs to the columns that tell two rows apart best.

    starts: rising, starts[0] = 0. q: of each piece. d: of each piece.
    """

    starts: Floats
    q: Floats
    d: Floats


def find_pieces(transition: Floats) -> Pieces:
    """Return the fewest pieces of a legal matrix, (n_states, n_states). Time O(n^3 log n), memory O(n^2)."""
    with np.errstate(divide="ignore"):
        logs = np.log(transition)
    n_states = len(transition)
    at_once = max(1, CELLS_AT_ONCE // n_states**2)
    chunks = (slice(first, first + at_once) for first in range(0, n_states, at_once))
    fronts = [_front(*_prefix_sums(transition, logs, rows)) for rows in chunks]
    d, q = _front(*(np.concatenate(column) for column in zip(*fronts, strict=True)))
    d, q = _hull(d, q)
    return Pieces(_starts(d, q)[::-1], q[::-1], d[::-1])


def _prefix_sums(transition: Floats, logs: Floats, rows: slice) -> Points:
    """Return the sums over the best columns, for the pairs (one of `rows`, any row): all points with q > d,
    flat.
    """
    own = transition[rows, None]
    better = own > transition
    with np.errstate(invalid="ignore"):
        # logarithms, for q_j/d_j may overflow where d_j is tiny
        ratios = np.where(better, logs - logs[rows, None], np.inf)
    order = np.argsort(ratios, axis=-1)
    q = np.take_along_axis(np.where(better, own, 0), order, axis=-1).cumsum(axis=-1)
    d = np.take_along_axis(np.where(better, transition, 0), order, axis=-1).cumsum(axis=-1)
    proper = q > d
    return d[proper], np.minimum(q[proper], 1.0)


def _front(d: Floats, q: Floats) -> Points:
    """Return the points that have a greater q than all of smaller d: d and q rise. Of equal d some may be too
    many.
    """
    order = np.argsort(d)
    d, q = d[order], q[order]
    best_before = np.concatenate(([-np.inf], np.maximum.accumulate(q)[:-1])) if q.size else q
    kept = q > best_before
    return d[kept], q[kept]


def _hull(d: Floats, q: Floats) -> Points:
    """Return the corners of the upper hull from the origin on, as far as its edges are steeper than 1."""
    chain = [(0.0, 0.0)]
    for point in zip(d.tolist(), q.tolist(), strict=True):
        while len(chain) > 1 and _lies_below(chain[-1], chain[-2], point):
            chain.pop()
        chain.append(point)
    corners = np.array(chain)
    steps = np.diff(corners, axis=0)
    steep = steps[:, 1] > steps[:, 0]
    return corners[1:][steep, 0], corners[1:][steep, 1]


def _lies_below(middle: tuple[float, float], left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Return whether the middle point is not strictly above the line through the others."""
    to_middle = (middle[0] - left[0], middle[1] - left[1])
    to_right = (right[0] - left[0], right[1] - left[1])
    return to_middle[0] * to_right[1] >= to_middle[1] * to_right[0]


def _starts(d: Floats, q: Floats) -> Floats:
    """Return from which a on each corner is best, in the hull's order: falling, the last 0.

    The edge from corner k to the next, drawn on, meets the diagonal at (-u, -u); a = log(1 + 1/u).
    """
    if not q.size:
        return q
    run, rise = np.diff(d), np.diff(q)
    with np.errstate(divide="ignore", invalid="ignore"):
        # by logarithms: 1/u may overflow where d is tiny
        log_z = np.log(rise - run) - np.log(np.maximum(q[:-1] * run - d[:-1] * rise, 0))
    starts = np.append(np.logaddexp(0, log_z), 0.0)
    falling: Floats = np.maximum.accumulate(starts[::-1])[::-1]
    return falling
