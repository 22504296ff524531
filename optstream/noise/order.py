"""Noise for a whole stream: the points of a Poisson process, given to blocks in a random order.

A window holds at most `window` blocks in a row. Block i precedes block j if j - i >= window. Blocks get the
points of a Poisson process of rate 1 / scale, each after all blocks that precede it; a block's noise is the
distance from its point back to the last of theirs, with a fair sign (Lemma 15a)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import frexp, ldexp

import numpy as np
from numpy.typing import NDArray

from optstream.errors import NoiseError
from optstream.noise.laplace import leading_bytes
from optstream.noise.source import NoiseSource, check_scale

Integers = NDArray[np.int64]

LARGEST_WINDOW = 16  # blocks; a table has 2^15 rows then
LARGEST_ORDER_SCALE = 2.0**44
WEIGHT = 2**58  # of the likeliest set of blocks ahead; a sum of 17 fits in int64
GRID = 48  # gaps are drawn on a grid of the scale times 2^-48 at first
MOST_BLOCKS = 2**20  # of one order, within which weights that are rounded cost at most `ORDER_DEFECT`
VARIANCES = (
    2.0, 5.236068, 9.574876, 14.931187, 21.253798, 28.507982, 36.668411, 45.715670, 55.634309, 66.411676,
    78.037176, 90.501769, 103.797626, 117.917882, 132.856452, 148.607892,
)  # fmt: skip
"""Of a block's noise at scale 1, for windows of 1 .. 16 blocks, far from the begin of an order."""


@dataclass(frozen=True)
class Order:
    """What the noise of one series needs to go on; with its fields of before the first block, a new order.
    Secret, and so is its size.

    scale: of the noise, in units, at most 2^44: the most by which a block may move, over epsilon. window:
    blocks in a row that a window may hold, in 1 .. 16. drawn: blocks before the next one, at most 2^20.
    places: the blocks, counted from the next one, with points after the last point of all blocks that precede
    it, in the order of their points; those at 0 or above are placed ahead. gaps: from each point back to the
    one before it, rounded down, in units of 2^-digits. Another scale, window or number raises NoiseError.
    """

    scale: float
    window: int
    drawn: int = 0
    places: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    digits: int = 0

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if not 1 <= self.window <= LARGEST_WINDOW:
            raise NoiseError(f"a window of one order has 1 .. {LARGEST_WINDOW} blocks; got {self.window}")
        if self.scale > LARGEST_ORDER_SCALE:
            raise NoiseError(
                "the scale of a stream's noise must be at most 2^44, or draws would leave the 64-bit "
                f"integers; got {self.scale!r}; choose a larger epsilon or a coarser resolution"
            )
        if not 0 <= self.drawn <= MOST_BLOCKS:
            raise NoiseError(
                f"an order has at most {MOST_BLOCKS:,} blocks: begin a new one, at its own charge"
            )


def order_noise(
    source: NoiseSource, count: int, orders: Sequence[Order]
) -> tuple[Integers, tuple[Order, ...]]:
    """Draw the noise of the next blocks of series that are independent of each other.

    Args:
        source: Randomness.
        count: Blocks to draw of each series, at least 0.
        orders: The state of each series after the blocks before, all of one scale and window.

    Returns:
        Integers, (n_series, count), and the states after them. A state must serve once: used twice, or for
        two series, it gives noise that is not independent.

    Raises:
        NoiseError: For states of several scales or windows, or more than 2^20 blocks of an order.

    Privacy: Lemma 15a (docs/privacy.md): if each block moves by at most D in one window, and not at all
    outside, all blocks of an order together lose at most D / scale + 2^-24 (`ORDER_DEFECT`).

    Example:
        >>> from optstream.noise import simulated_noise
        >>> first, orders = order_noise(simulated_noise(1), 6, [Order(scale=50.0, window=4)])
        >>> second, orders = order_noise(simulated_noise(2), 6, orders)
        >>> first.shape, second.shape
        ((1, 6), (1, 6))
    """
    if len({(order.scale, order.window) for order in orders}) > 1:
        raise NoiseError("states that are drawn together must have one scale and one window")
    if not orders:
        return np.empty((0, count), dtype=np.int64), ()
    for order in orders:
        replace(order, drawn=order.drawn + count)  # refused before anything is drawn
    scale, window = orders[0].scale, orders[0].window
    placed = _placed(source, window, count, orders)
    digits = max(GRID - frexp(scale)[1], 0)
    new = [len(places) - len(order.places) for places, order in zip(placed, orders, strict=True)]
    drawn = source.discrete_laplace(ldexp(scale, digits), (sum(new),))
    # the negative ones stand for the same geometric integers
    gaps = iter(np.where(drawn < 0, -drawn - 1, drawn).tolist())
    noise, after = np.empty((len(orders), count), dtype=np.int64), list[Order]()
    for row, (places, order, n) in enumerate(zip(placed, orders, new, strict=True)):
        points = _Points(source, order, [next(gaps) for _ in range(n)], digits)
        noise[row], state = _sizes(points, places, order, count)
        after.append(state)
    signs = source.uniform_below(np.full(noise.shape, 2)) * 2 - 1
    return noise * signs, tuple(after)


@lru_cache(maxsize=LARGEST_WINDOW)
def order_table(window: int) -> tuple[Integers, Integers, Integers]:
    """Return the steps of an order: sets of blocks ahead, their weights, and what each next block leads to
    (Lemma 15a).

    Bit j - 1 of a set says whether block f + j has its place, f being the first block without one. Returns
    the weights, (n_sets,); the set after each choice, (window, n_sets), block f first, -1 where the block has
    its place; and by how much f rises when it gets its own, (n_sets,).
    """
    ahead = np.arange(2 ** (window - 1), dtype=np.int64)
    passed: Integers = np.ones_like(ahead)
    for n in range(1, window):
        passed += (ahead + 1) % 2**n == 0
    after = [ahead >> passed]
    after += [np.where(ahead >> (j - 1) & 1, -1, ahead | 1 << (j - 1)) for j in range(1, window)]
    moves: Integers = np.stack(after)
    weights, spread = np.ones(ahead.size), np.inf
    while True:
        grown = np.where(moves >= 0, weights[moves], 0.0).sum(axis=0)
        growth = grown / weights
        weights, before, spread = grown / grown.max(), spread, float(growth.max() / growth.min() - 1.0)
        if spread < 2.0**-40 and spread >= before:  # floats have no better
            return np.rint(weights * WEIGHT).astype(np.int64), moves, passed


def _placed(source: NoiseSource, window: int, count: int, orders: Sequence[Order]) -> list[list[int]]:
    """Return each order's blocks by their points, until all of the next `count` have theirs."""
    weights, moves, passed = order_table(window)
    chances = np.where(moves >= 0, weights[moves], 0).cumsum(axis=0)
    placed = [list(order.places) for order in orders]
    known = [{place for place in places if place >= 0} for places in placed]
    first, ahead = np.zeros(len(orders), dtype=np.int64), np.zeros(len(orders), dtype=np.int64)
    for number, one in enumerate(known):
        first[number] = start = next(block for block in range(len(one) + 1) if block not in one)
        ahead[number] = sum(1 << (block - start - 1) for block in one if block > start)
    while (waiting := np.flatnonzero(first < count)).size:
        row = chances[:, ahead[waiting]]
        chosen = (source.uniform_below(row[-1]) >= row).sum(axis=0)
        for number, block in zip(waiting.tolist(), (first[waiting] + chosen).tolist(), strict=True):
            placed[number].append(block)
        first[waiting] += np.where(chosen == 0, passed[ahead[waiting]], 0)
        ahead[waiting] = moves[chosen, ahead[waiting]]
    return placed


class _Points:
    """The gaps between points, whose digits are drawn as far as they are asked for."""

    def __init__(self, source: NoiseSource, order: Order, new: list[int], digits: int) -> None:
        self._source, self._scale = source, Fraction(order.scale)
        self.digits = max(digits, order.digits)
        self.gaps = [*order.gaps, *self._finer(new, digits)]
        self._sums = [0, *accumulate(self.gaps)]

    def rounded(self, first: int, last: int) -> int:
        """Return the distance from point `first` to point `last`, rounded to whole units."""
        while True:
            least, half = self._sums[last] - self._sums[first], (1 << self.digits) >> 1
            down, up = (least + half) >> self.digits, (least + last - first - 1 + half) >> self.digits
            if self.digits and down == up:
                return down
            self.digits += 1
            self.gaps = self._finer(self.gaps, self.digits - 1)
            self._sums = [0, *accumulate(self.gaps)]

    def _finer(self, gaps: list[int], digits: int) -> list[int]:
        """Add digits to gaps: each is 1 with chance 1 / (1 + exp(2^-digit / scale)), Lemma 3a."""
        for digit in range(digits + 1, self.digits + 1):
            gaps = [2 * gap + self._digit(1 / (self._scale * 2**digit)) for gap in gaps]
        return gaps

    def _digit(self, exponent: Fraction) -> int:
        """Return 1 with chance 1 / (1 + exp(exponent)): whether a uniform real is below it, by 4 bytes."""
        drawn = n_bytes = 0
        while True:
            n_bytes += 4
            drawn = drawn * 2**32 + int(self._source.uniform_below(np.array([2**32]))[0])
            chance = int.from_bytes(leading_bytes(exponent, 1, n_bytes), "big")
            if drawn != chance:
                return int(drawn < chance)


def _sizes(points: _Points, places: list[int], order: Order, count: int) -> tuple[list[int], Order]:
    """Return the sizes of the next blocks' noise, and the state after them."""
    rank = {block: number for number, block in enumerate(places, 1)}
    last, sizes = 0, list[int]()
    for block in range(count):
        last = max(last, rank.get(block - order.window, 0))
        sizes.append(points.rounded(last, rank[block]))
    last = max(last, rank.get(count - order.window, 0))
    left, gaps = tuple(block - count for block in places[last:]), tuple(points.gaps[last:])
    drawn = order.drawn + count
    return sizes, replace(order, drawn=drawn, places=left, gaps=gaps, digits=points.digits)
