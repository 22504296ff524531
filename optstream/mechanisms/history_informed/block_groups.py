"""Groups of joint noise over whole blocks: which a period has, and what the worst window then costs."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from optstream.errors import ParameterError
from optstream.measurement.drifting_blocks import DriftingBlocks
from optstream.noise.joint import LARGEST_GROUP
from optstream.privacy.joint_spend import Group
from optstream.privacy.rules.groups import cut_evenly, worst_of_cycle
from optstream.privacy.rules.noise_horizon import Draws, Horizon, errs_less

Lengths = tuple[int, ...]


@dataclass(frozen=True)
class BlockGroups:
    """How the blocks of a period are cut into groups of joint noise: by where it begins, before it is read.

    Only blocks that lie in the period whole are measured: a piece of one would count in its group as much as
    a block and tell less.

    Attributes:
        blocks: The rule of what is measured.
        size: Blocks to a group, at least, on a period's average; 1 or more.
        period_lengths: Steps of every period that will ever be released.
    """

    blocks: DriftingBlocks
    size: Fraction
    period_lengths: Lengths

    def of(self, first_step: int, n_steps: int) -> tuple[Group, ...]:
        """Return the groups of a period: as many nearly equal ones as have `size` blocks on average, or one.

        Every whole block is in one of them. first_step: running index of its first step. Raises
        ParameterError where the scale was not made for periods of this length. Privacy: Lemma 16; a public
        rule.
        """
        if n_steps not in self.period_lengths:
            listed = ", ".join(map(str, self.period_lengths))
            raise ParameterError(
                f"period_lengths are {listed}, and this period has {n_steps} steps: say so in advance, for "
                'joint noise depends on it; step by step there is noise = "laplace" alone'
            )
        return self._cut(first_step, n_steps)

    @cached_property
    def worst(self) -> int:
        """Unit charges of the worst window, over such periods in any order and with any gaps (Lemma 16)."""
        places = range(self.blocks.cycle)
        layouts = [[(n, self._cut(place, n)) for n in self.period_lengths] for place in places]
        return worst_of_cycle(layouts, self.blocks.window_length)

    @cached_property
    def numbers(self) -> tuple[tuple[int, int], ...]:
        """How many blocks and groups ordinary periods have, wherever they begin."""
        whole = (_whole_blocks(self.blocks, place, self.ordinary) for place in range(self.blocks.cycle))
        return tuple((len(parts), self._n_groups(len(parts))) for parts in whole)

    @property
    def ordinary(self) -> int:
        """The steps of an ordinary period: the middle one of the lengths."""
        return sorted(self.period_lengths)[len(self.period_lengths) // 2]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The size of the group of every block of such periods."""
        groups = ((*divmod(n_blocks, n_groups or 1), n_groups) for n_blocks, n_groups in self.numbers)
        return tuple(
            size
            for least, larger, n_groups in groups
            for size in [least] * (least * (n_groups - larger)) + [least + 1] * ((least + 1) * larger)
        )

    @property
    def error(self) -> float:
        """The mean variance of a block's noise where Laplace noise that loses all of epsilon has scale 1.

        As much more as blocks are left out: what is known of a stream goes with blocks over variances.
        """
        return self.worst**2 * self._variance_of_one

    def errs_less(self, epsilon: Fraction, horizon: Horizon | None) -> bool:
        """Return whether they are expected to err less than Laplace noise in the same blocks; free. epsilon:
        of a window; horizon: as in `JointTerms`.
        """
        blocks = self.blocks
        ratio = math.sqrt(2.0 * (blocks.n_blocks * blocks.length) ** 2 / self.error)
        n_groups = sum(n_groups for _, n_groups in self.numbers)
        joint = Draws(
            epsilon * blocks.length / self.worst, Fraction(n_groups, len(self.numbers) * self.ordinary)
        )
        laplace = Draws(epsilon / blocks.n_blocks, Fraction(blocks.n_blocks, blocks.window_length))
        return errs_less(ratio, joint, laplace, horizon)

    @property
    def least_error(self) -> float:
        """A bound of it from below, without a look at windows: one may hold all groups of a period."""
        fits = self.ordinary <= self.blocks.window_length
        met = max(n_groups for _, n_groups in self.numbers) if fits else 1
        return (self.blocks.length * met) ** 2 * self._variance_of_one

    @property
    def shares_of_sizes(self) -> tuple[tuple[int, float], ...]:
        """The sizes of groups, and which part of the blocks lies in such ones."""
        counted = Counter(self.sizes)
        return tuple((size, number / len(self.sizes)) for size, number in sorted(counted.items()))

    @property
    def left_out(self) -> float:
        """By how much more blocks the rule has than are measured, at least 1."""
        return self.blocks.n_blocks * self.ordinary / len(self.sizes) if self.sizes else 1.0

    @cached_property
    def _variance_of_one(self) -> float:
        """The variance at scale 1, in proportion to what is measured."""
        sizes = np.array(self.sizes, dtype=np.float64)
        return float(((sizes + 1.0) * (sizes + 2.0) / 3.0).mean()) * self.left_out

    def _n_groups(self, n_blocks: int) -> int:
        return max(int(n_blocks / self.size), 1) if n_blocks else 0

    def _cut(self, first_step: int, n_steps: int) -> tuple[Group, ...]:
        parts = _whole_blocks(self.blocks, first_step % self.blocks.cycle, n_steps)
        return cut_evenly(parts, self._n_groups(len(parts)))


@lru_cache(maxsize=256)
def best_groups(blocks: DriftingBlocks, period_lengths: Lengths, unit_scale: Fraction) -> BlockGroups | None:
    """Return the groups with the least variance of noise; None where none of two blocks can be drawn.

    Of those that are as good the smaller: their year costs less. unit_scale: of Laplace noise that loses all
    of epsilon. Costs no privacy: public figures alone.
    """
    best: BlockGroups | None = None
    for one in sorted(candidates(blocks, period_lengths), key=lambda one: one.least_error):
        if best is not None and one.least_error > best.error:
            break
        better = best is None or (one.error, one.size) < (best.error, best.size)
        if better and may_be_drawn(one, unit_scale):
            best = one
    return best


def chosen_groups(
    blocks: DriftingBlocks, period_lengths: Lengths, unit_scale: Fraction, size: Fraction | None
) -> BlockGroups | None:
    """Return the groups of a size, or, where it is None, the best ones; None where none of two blocks can be
    drawn.

    Arguments as `best_groups`. Costs no privacy: public figures alone.
    """
    if size is None:
        return best_groups(blocks, period_lengths, unit_scale)
    found = BlockGroups(blocks, size, period_lengths)
    return found if may_be_drawn(found, unit_scale) else None


def may_be_drawn(groups: BlockGroups, unit_scale: Fraction) -> bool:
    """Return whether the sampler takes such groups: some has two blocks, and none is too large for its scale.
    Privacy: none; public figures.
    """
    largest = max(groups.sizes, default=1)
    return 1 < largest <= LARGEST_GROUP and 4 * groups.worst * unit_scale >= largest


@lru_cache(maxsize=256)
def candidates(blocks: DriftingBlocks, period_lengths: Lengths) -> tuple[BlockGroups, ...]:
    """Return the groups that are worth a look, the smaller first: one for each number of groups that the
    ordinary period with the fewest blocks may have. Privacy: none; public figures.
    """
    ordinary = BlockGroups(blocks, Fraction(1), period_lengths)
    fewest = min((n_blocks for n_blocks, _ in ordinary.numbers), default=0)
    sizes = [Fraction(fewest, n_groups) for n_groups in range(1, fewest)]
    return tuple(BlockGroups(blocks, size, period_lengths) for size in reversed(sizes))


@lru_cache(maxsize=2**14)
def _whole_blocks(blocks: DriftingBlocks, place: int, n_steps: int) -> tuple[range, ...]:
    """Return the blocks that lie whole in a period, which begins at a place of the cycle."""
    return tuple(part for part in blocks.parts(place, n_steps) if len(part) == blocks.length)
