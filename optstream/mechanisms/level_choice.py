"""How much of epsilon each level gets: the least error that the prior expects, from public figures alone."""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import permutations

import numpy as np

from optstream.estimation.expected_error import expected_level_errors
from optstream.estimation.temporal_prior import TemporalPrior
from optstream.measurement.drifting_blocks import DriftingBlocks, drift_for
from optstream.mechanisms.block_choice import MOST_BLOCKS, MOST_PAST_WINDOWS, choose_blocks
from optstream.stream import AggregationTree

MOVES = (Fraction(1, 4), Fraction(1, 8), Fraction(1, 16), Fraction(1, 32))
"""Parts of epsilon that are tried in other hands, largest first."""
LEAST = Fraction(1, 32)
"""Of a level that holds leaves: nothing else would tell them apart."""
BETTER = 1e-3
"""Relative: a gain below it is none."""
Shares = tuple[Fraction, ...]


@lru_cache(maxsize=64)
def choose_level_shares(
    tree: AggregationTree,
    window_length: int,
    steps_per_day: int,
    relative_noise: float,
    *,
    n_blocks: int | None = None,
    length: int | None = None,
) -> Shares:
    """Return one share for each level, root first, that add up to 1.

    relative_noise: alpha * leaves / (epsilon * scale), all of epsilon in one block of a window, relative to a
    leaf's size. n_blocks, length: as given, or chosen for the deepest level's part. The measure is
    `expected_error_of`, and equal shares are where the search begins: by it they are never better. A level
    without leaves may get nothing, and is then derived. A function of public figures: costs no privacy.
    """

    def blocks_of(shares: Shares) -> tuple[int, int]:
        noise = relative_noise / float(shares[-1])
        return choose_blocks(window_length, steps_per_day, noise, n_blocks=n_blocks, length=length)

    def error(shares: Shares, blocks: tuple[int, int]) -> float:
        return expected_error_of(tree, window_length, steps_per_day, relative_noise, shares, blocks)

    equal = (Fraction(1, tree.n_levels),) * tree.n_levels
    fixed = blocks_of(equal)
    best, least = equal, error(equal, fixed)
    for move in MOVES:
        improved = True
        while improved:
            improved = False
            found = min(((error(one, fixed), one) for one in _moved(best, move, tree)), default=(least, best))
            if found[0] < least * (1.0 - BETTER):
                (least, best), improved = found, True
    # the blocks follow the deepest level's part: with its own the new shares must still be the better ones
    return best if error(best, blocks_of(best)) < error(equal, fixed) else equal


@lru_cache(maxsize=1024)
def expected_error_of(
    tree: AggregationTree,
    window_length: int,
    steps_per_day: int,
    relative_noise: float,
    shares: Shares,
    blocks: tuple[int, int],
) -> float:
    """The mean over levels of a node's expected root mean square error, relative to the node's size.

    blocks: how many a window has, and their steps. Leaves are taken to be of one size. Costs no privacy.
    """
    count, long = blocks
    rule = DriftingBlocks(window_length, count, long, drift_for(window_length, steps_per_day))
    windows = int(np.clip(MOST_BLOCKS // count, 2, MOST_PAST_WINDOWS))
    parts = rule.parts(0, windows * window_length)
    starts = np.array([part.start for part in parts], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    period = range((windows - 1) * window_length, windows * window_length)
    noise = [2.0 * (relative_noise * count / float(share)) ** 2 if share else np.inf for share in shares]
    levels = np.array(noise)[np.array(tree.depths)]
    prior = TemporalPrior.broad(steps_per_day)
    return float(np.mean(expected_level_errors(prior, tree, starts, lengths, levels, period)))


def _moved(shares: Shares, move: Fraction, tree: AggregationTree) -> Iterator[Shares]:
    """The shares with so much taken from one level and given to another."""
    with_leaves = {int(tree.depths[leaf]) for leaf in tree.leaf_indices}
    for giver, taker in permutations(range(len(shares)), 2):
        left = shares[giver] - min(move, shares[giver])
        if shares[giver] and (left >= LEAST if giver in with_leaves else True):
            moved = list(shares)
            moved[taker] += shares[giver] - left
            moved[giver] = left
            yield tuple(moved)
