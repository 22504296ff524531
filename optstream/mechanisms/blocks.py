"""The measurements of HistoryInformed: parameters, the rule of blocks and groups, a window's cost."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from optstream.errors import ParameterError
from optstream.history.filter import PlannedBlocks, PlannedNoise, expected_error
from optstream.history.prior import COMPONENTS, COUNT_COMPONENTS, DAY_OF_THE_WEEK, Component, TemporalPrior
from optstream.measurement.blocks import BLOCKS, DriftingBlocks, drifting_blocks
from optstream.measurement.priced import LinearSpend
from optstream.mechanisms.joint_groups import JointTerms, Noise
from optstream.mechanisms.series import OnlineMechanism
from optstream.mechanisms.state import own_state
from optstream.noise.joint import LARGEST_GROUP
from optstream.privacy import JointSpend, PrivacyModel
from optstream.privacy.exact import exact, make_plain, whole
from optstream.privacy.rules import (
    Draws,
    Horizon,
    cut_evenly,
    errs_less,
    groups_with_headroom,
    worst_of_cycle,
)
from optstream.privacy.spends import Group, groups_from_document, spend_from_document
from optstream.stream import State
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

# Groups of joint noise over whole blocks: those of a period, and the cost of the worst window.

Lengths = tuple[int, ...]


@dataclass(frozen=True)
class BlockGroups:
    """A period's blocks in groups of joint noise, by where it begins.

    Only blocks that lie in the period whole are measured: a piece of one would count in its group as much as
    a block and carry less information.

    Attributes:
        blocks: The rule of the blocks.
        size: Blocks to a group, at least, on a period's average; 1 or more.
        period_lengths: Steps of every period that will ever be released.
    """

    blocks: DriftingBlocks
    size: Fraction
    period_lengths: Lengths

    def of(self, first_step: int, n_steps: int) -> tuple[Group, ...]:
        """Return the groups of a period: as many nearly equal ones as have `size` blocks on average, or one.

        Every whole block is in one of them. Privacy: Lemma 16; a public rule.
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

        As much more as blocks are left out: the information on a stream is blocks over variances.
        """
        return self.worst**2 * self._variance_of_one

    def errs_less(self, epsilon: Fraction, horizon: Horizon | None) -> bool:
        """Return whether they are expected to err less than Laplace noise in the same blocks."""
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
        """The variance at scale 1, in proportion to the measured part."""
        sizes = np.array(self.sizes, dtype=np.float64)
        return float(((sizes + 1.0) * (sizes + 2.0) / 3.0).mean()) * self.left_out

    def _n_groups(self, n_blocks: int) -> int:
        return max(int(n_blocks / self.size), 1) if n_blocks else 0

    def _cut(self, first_step: int, n_steps: int) -> tuple[Group, ...]:
        parts = _whole_blocks(self.blocks, first_step % self.blocks.cycle, n_steps)
        return cut_evenly(parts, self._n_groups(len(parts)))


@lru_cache(maxsize=256)
def best_groups(blocks: DriftingBlocks, period_lengths: Lengths, unit_scale: Fraction) -> BlockGroups | None:
    """Return the groups with the least variance of noise, of equal ones the smaller, whose year costs less.

    `unit_scale` is of Laplace noise that loses all of epsilon; None where no group of two blocks can be
    drawn.
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
    """Return the groups of a size, or, where it is None, the best ones; None where none can be drawn."""
    if size is None:
        return best_groups(blocks, period_lengths, unit_scale)
    found = BlockGroups(blocks, size, period_lengths)
    return found if may_be_drawn(found, unit_scale) else None


def may_be_drawn(groups: BlockGroups, unit_scale: Fraction) -> bool:
    """Return whether some group has two blocks, and none is too large for its scale."""
    largest = max(groups.sizes, default=1)
    return 1 < largest <= LARGEST_GROUP and 4 * groups.worst * unit_scale >= largest


@lru_cache(maxsize=256)
def candidates(blocks: DriftingBlocks, period_lengths: Lengths) -> tuple[BlockGroups, ...]:
    """Return groups, the smaller first, for each number of groups of the period with fewest blocks."""
    ordinary = BlockGroups(blocks, Fraction(1), period_lengths)
    fewest = min((n_blocks for n_blocks, _ in ordinary.numbers), default=0)
    sizes = [Fraction(fewest, n_groups) for n_groups in range(1, fewest)]
    return tuple(BlockGroups(blocks, size, period_lengths) for size in reversed(sizes))


@lru_cache(maxsize=2**14)
def _whole_blocks(blocks: DriftingBlocks, place: int, n_steps: int) -> tuple[range, ...]:
    """Return the blocks that lie whole in a period, which begins at a place of the cycle."""
    return tuple(part for part in blocks.parts(place, n_steps) if len(part) == blocks.length)


# How many blocks, how long: those with the least error that the prior expects, from public figures alone.

Blocks = tuple[int, int]
"""How many blocks a window has, and their steps."""

COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 96)
LENGTHS = (1, 2, 4)
MOST_BLOCKS = 168
"""Of a candidate's past, so that a choice takes a second; more past changes no order."""
MOST_PAST_WINDOWS = 42
AS_GOOD = 0.01
"""Relative: expected errors that differ by less are one."""
COARSE = Fraction(10**9)
"""A scale of noise, in units, that no grid is too coarse for."""
BLIND_SHARE = 6
"""Where no public scale is known: a window over this many blocks."""


@dataclass(frozen=True)
class Figures:
    """Public figures by which blocks and shares are chosen.

    relative_noise: alpha * leaves / (epsilon * scale): the noise of the only block of a window, relative to a
    series' size; None where no scale is known. n_blocks, length: where given. components: of the prior.
    count: that size, where readings are counts and vary around their expectation; else None. joint: for each
    level, root first, whether its noise may be joint; plain series are one level. period_lengths, group_size:
    of its groups; wanted: whether it is required, however much it errs. epsilon, horizon: of the stream, by
    which it is compared with Laplace noise (`noise_horizon`).
    """

    window_length: int
    steps_per_day: int
    relative_noise: float | None
    n_blocks: int | None = None
    length: int | None = None
    components: tuple[Component, ...] = COMPONENTS
    count: float | None = None
    joint: tuple[bool, ...] = ()
    period_lengths: tuple[int, ...] = ()
    group_size: Fraction | None = None
    wanted: bool = False
    epsilon: Fraction = Fraction(1)
    horizon: Horizon | None = None

    @property
    def prior(self) -> TemporalPrior:
        """The prior that expects, at its medians."""
        return TemporalPrior.broad(self.steps_per_day, self.components)

    def noise(self, count: int, share: float = 1.0) -> float:
        """Return the relative variance of a block's noise where a share of epsilon pays for so many."""
        assert self.relative_noise is not None
        return 2.0 * (self.relative_noise * count / share) ** 2

    def groups(self, count: int, long: int, shares: Sequence[float] = (1.0,)) -> list[BlockGroups | None]:
        """Return each level's groups of joint noise of such blocks; None where Laplace noise errs less.

        They are those that the mechanism chooses, but for scales that are small next to the grid.
        """
        if not any(self.joint):
            return [None] * len(shares)
        window = self.window_length
        blocks = drifting_blocks(window, count, long, self.steps_per_day)
        found = chosen_groups(blocks, self.period_lengths, COARSE, self.group_size)

        def is_joint(level: int, share: float) -> bool:
            if found is None or not share or level >= len(self.joint) or not self.joint[level]:
                return False
            return self.wanted or found.errs_less(self.epsilon * Fraction(share), self.horizon)

        return [found if is_joint(level, share) else None for level, share in enumerate(shares)]

    def noises(self, blocks: Blocks, shares: Sequence[float]) -> list[PlannedNoise | None]:
        """Return the noise of the mean of a block at each level, with so much of epsilon; None without."""
        assert self.relative_noise is not None
        chosen = self.groups(*blocks, shares)
        # steps that no whole block covers count as more noise, at every level
        more = math.sqrt(next((groups.left_out for groups in chosen if groups is not None), 1.0))
        found: list[PlannedNoise | None] = []
        for groups, share in zip(chosen, shares, strict=True):
            charges = blocks[0] if groups is None else Fraction(groups.worst, blocks[1])
            sizes = ((1, 1.0),) if groups is None else groups.shares_of_sizes
            scale = float(self.relative_noise * charges / share) * more if share else math.inf
            found.append(PlannedNoise(scale, sizes) if share else None)
        return found


@lru_cache(maxsize=256)
def choose_blocks(public: Figures) -> Blocks:
    """Return (m, L), keeping those that are given."""
    if public.relative_noise is None:
        count = public.n_blocks or max(1, round(public.window_length / BLIND_SHARE))
        return count, public.length or max(1, min(2, public.window_length // count))
    return best_blocks(partial(_expected, public), public)


def best_blocks(error: Callable[[int, int], float], public: Figures) -> Blocks:
    """Return (m, L) with the least `error(m, L)`, keeping those that are given."""
    window = public.window_length
    counts = (public.n_blocks,) if public.n_blocks else (*(m for m in COUNTS if m < window), window)
    lengths = (public.length,) if public.length else LENGTHS

    def expected(count: int, long: int) -> float:
        return error(count, long) if count * long <= window else math.inf

    # few blocks are noisy and many see more: the error has one valley over their number
    low, high = 0, len(counts) - 1
    while low < high:
        middle = (low + high) // 2
        if expected(counts[middle], lengths[0]) <= expected(counts[middle + 1], lengths[0]):
            high = middle
        else:
            low = middle + 1
    # of lengths that are as good the longest: a mean shows what lies between points
    best = min(expected(counts[low], long) for long in lengths)
    fitting = [long for long in lengths if expected(counts[low], long) <= best * (1.0 + AS_GOOD)]
    return counts[low], fitting[-1] if fitting else lengths[0]


@lru_cache(maxsize=1024)
def _expected(public: Figures, count: int, long: int) -> float:
    """Return the root mean square error of the last window's steps, after as much past as is looked at."""
    (noise,) = public.noises((count, long), (1.0,))
    return expected_error(planned_blocks(public, count, long), noise)


def planned_blocks(public: Figures, count: int, long: int) -> PlannedBlocks:
    """Return the blocks of as much past as is looked at, judged by the last window's steps."""
    return _planned_blocks(public.window_length, public.steps_per_day, public.components, count, long)


@lru_cache(maxsize=32)
def _planned_blocks(
    window: int, steps_per_day: int, components: tuple[Component, ...], count: int, long: int
) -> PlannedBlocks:
    rule = drifting_blocks(window, count, long, steps_per_day)
    windows = int(np.clip(MOST_BLOCKS // count, 2, MOST_PAST_WINDOWS))
    parts = rule.parts(0, windows * window)
    starts = np.array([part.start for part in parts], dtype=np.int64)
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    period = range((windows - 1) * window, windows * window)
    return PlannedBlocks.of(TemporalPrior.broad(steps_per_day, components), starts, lengths, period)


NAME = "HistoryInformed"
PARTS = "parts"
"""What a state holds on its way to a draw alone: the groups that a tree chose for all levels."""


@dataclass(frozen=True)
class BlockPlan(OnlineMechanism):
    """The parameters of `HistoryInformed`, where they are listed, checked, and the measured blocks."""

    model: PrivacyModel
    n_blocks: int | None = None
    block_length: int | None = None
    scale: float | None = None
    days: PublicDays | None = None
    history_days: int = 56
    relearn_days: int = 28
    components: tuple[Component, ...] = ()
    counts: bool = False
    covariates: tuple[Covariate, ...] = ()
    noise: Noise | None = None
    group_size: Fraction | None = None
    period_lengths: tuple[int, ...] | None = None
    n_nodes: int | None = None
    declared_leaves: int | None = None
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        window = self.model.window_length
        if self.n_blocks is not None:
            whole(self.n_blocks, "n_blocks of HistoryInformed", 1, window)
        if self.block_length is not None:
            whole(self.block_length, "block_length of HistoryInformed", 1, window // (self.n_blocks or 1))
        whole(self.history_days, "history_days of HistoryInformed", 1)
        whole(self.relearn_days, "relearn_days of HistoryInformed", 0)
        if not isinstance(self.days, PublicDays | None):
            raise ParameterError(
                "days of HistoryInformed must be optstream.PublicDays, such as "
                f"PublicDays.from_date(first_day, steps_per_day, holidays), or None; got {self.days!r:.80}"
            )
        is_number = isinstance(self.scale, Real) and not isinstance(self.scale, bool)
        if self.scale is not None and not (is_number and 0 < self.scale < float("inf")):
            raise ParameterError(
                f"scale of HistoryInformed must be a finite number greater than 0; got {self.scale!r}"
            )
        if self.counts and self.model.resolution != 1:
            raise ParameterError(
                f"counts of HistoryInformed need a resolution of 1, for counts are whole numbers; "
                f"got {self.model.resolution}"
            )
        if self.group_size is not None:
            size = exact(self.group_size, "group_size of HistoryInformed")
            if size <= 1:
                raise ParameterError(f"group_size of HistoryInformed must be greater than 1; got {size}")
            object.__setattr__(self, "group_size", size)
        _ = self.unit_charge

    @property
    def blocks(self) -> DriftingBlocks:
        """The rule of the blocks."""
        return _blocks(self)

    @property
    def public_days(self) -> PublicDays:
        """The public days: `days`, or days of w steps."""
        return self.days or PublicDays(self.model.window_length)

    @property
    def prior_components(self) -> tuple[Component, ...]:
        """The `components`, or the general ones of loads or of counts."""
        if self.components or not self.counts:
            return self.components or COMPONENTS
        has_week = self.public_days.first_weekday is not None
        return (*COUNT_COMPONENTS, DAY_OF_THE_WEEK) if has_week else COUNT_COMPONENTS

    @property
    def joint_groups(self) -> BlockGroups | None:
        """The groups of joint noise; None for Laplace noise."""
        return _joint_groups(self)

    @property
    def joint_terms(self) -> JointTerms:
        """What says whether noise may be joint."""
        return JointTerms(self.noise, self.period_lengths, self.n_nodes, self.declared_leaves, self.horizon)

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: m * L steps of it, or the groups that it meets, each alpha / scale."""
        return self._charges * self.unit_charge

    @property
    def unit_charge(self) -> Fraction:
        """What a measured step is charged, or a step of a group's largest part in a window."""
        return self.alpha_units / self._scale(self.model.pure_epsilon / self._charges)

    @property
    def _charges(self) -> int:
        """How many unit charges a window has at most."""
        groups = self.joint_groups
        return self.blocks.n_blocks * self.blocks.length if groups is None else groups.worst

    def groups(self, n_steps: int, first_step: int = 0) -> tuple[Group, ...]:
        """Return a period's groups without other spends, a block by itself with Laplace noise.

        Args:
            n_steps: Of the period.
            first_step: Running index of its first step.

        Returns:
            Groups of blocks, rising.

        Raises:
            ParameterError: Joint noise, and a length that is none of `period_lengths`.
        """
        joint = self.joint_groups
        if joint is not None:
            return joint.of(first_step, n_steps)
        return tuple((part,) for part in self.blocks.parts(first_step, n_steps))

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[LinearSpend, ...]:
        """Return one spend: the steps of the blocks, or groups, for which all windows have headroom."""
        groups = self._groups(n_steps, first_step, own_state(state, NAME))
        return (self._spend(groups, n_steps, first_step),)

    @property
    def figures(self) -> Figures:
        """What its blocks are chosen by, without a relative noise where there is no public scale."""
        model, noise = self.model, None
        if self.scale is not None:
            noise = float(model.leaves_per_step * model.alpha / model.pure_epsilon) / self.scale
        slots = self.public_days.steps_per_day
        count = self.scale if self.counts else None
        given = self.n_blocks, self.block_length, self.prior_components
        figures = Figures(model.window_length, slots, noise, *given, count)
        return self.with_joint(figures, (self.joint_terms.allowed(model),))

    def with_joint(self, figures: Figures, joint: tuple[bool, ...]) -> Figures:
        """Return the figures with the levels, root first, at which noise may be joint, and its groups."""
        if not any(joint):
            return figures
        lengths = self.period_lengths or (self.model.window_length,)
        return replace(
            figures,
            joint=joint,
            period_lengths=lengths,
            group_size=self.group_size,
            wanted=self.noise == "joint",
            epsilon=self.model.pure_epsilon,
            horizon=self.horizon,
        )

    @property
    def scale_units(self) -> float | None:
        """The `scale` in units of the resolution."""
        return None if self.scale is None else self.scale / float(self.model.resolution)

    def _groups(self, n_steps: int, first_step: int, memory: dict[str, Any]) -> tuple[Group, ...]:
        if PARTS in memory:
            return groups_from_document(memory[PARTS])
        return groups_with_headroom(
            self.groups(n_steps, first_step),
            first_step,
            self.unit_charge,
            [spend_from_document(one) for one in memory.get("spends", ())],
            self.model.window_length,
            self.model.pure_epsilon,
        )

    def _spend(self, groups: tuple[Group, ...], n_steps: int, first_step: int) -> LinearSpend:
        joint = self.joint_groups
        if joint is None:
            if self.noise == "joint":
                raise ParameterError(
                    'n_nodes of HistoryInformed must be given for noise = "joint": a group is priced for the '
                    "series that it is drawn for; a tree says it for each level"
                )
            measured = set(chain.from_iterable(chain.from_iterable(groups)))
            weights = tuple(int(step in measured) for step in range(n_steps))
            return self._step_spend(BLOCKS, first_step, weights, self.model.pure_epsilon / self._charges)
        assert self.n_nodes is not None  # there would be no groups
        scale = self._scale(self.model.pure_epsilon / joint.worst)
        alpha, leaves = self.model.alpha_units, self.model.leaves_per_step
        return JointSpend(0, BLOCKS, first_step, n_steps, groups, scale, alpha, self.n_nodes, leaves)


@lru_cache(maxsize=256)
def _blocks(mechanism: BlockPlan) -> DriftingBlocks:
    window, slots = mechanism.model.window_length, mechanism.public_days.steps_per_day
    n_blocks, length = mechanism.n_blocks, mechanism.block_length
    if n_blocks is None or length is None:
        n_blocks, length = choose_blocks(mechanism.figures)
    return drifting_blocks(window, n_blocks, length, slots)


@lru_cache(maxsize=256)
def _joint_groups(mechanism: BlockPlan) -> BlockGroups | None:
    model, terms = mechanism.model, mechanism.joint_terms
    if not terms.allowed(model):
        return None
    lengths = terms.period_lengths or (model.window_length,)
    unit_scale = mechanism.alpha_units / model.pure_epsilon
    blocks = mechanism.blocks
    found = chosen_groups(blocks, lengths, unit_scale, mechanism.group_size)

    def less(groups: BlockGroups) -> bool:
        return groups.errs_less(model.pure_epsilon, terms.horizon)

    return terms.wanted(found, less, f"n_blocks is {blocks.n_blocks}")
