"""What HistoryInformed measures: its parameters, the rule of blocks and groups, what a window costs."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from numbers import Real
from typing import Any

from optstream.errors import ParameterError
from optstream.estimation.gaussian_process.prior import (
    COMPONENTS,
    COUNT_COMPONENTS,
    DAY_OF_THE_WEEK,
    Component,
)
from optstream.measurement.blocks import BLOCKS
from optstream.measurement.drifting_blocks import DriftingBlocks, drifting_blocks
from optstream.measurement.priced import LinearSpend
from optstream.mechanisms.history_informed.block_choice import Figures, choose_blocks
from optstream.mechanisms.history_informed.block_groups import BlockGroups, chosen_groups
from optstream.mechanisms.joint_groups import JointTerms, Noise
from optstream.mechanisms.series import OnlineMechanism
from optstream.mechanisms.state import own_state
from optstream.privacy import JointSpend, PrivacyModel
from optstream.privacy.exact import exact, make_plain, whole
from optstream.privacy.joint_spend import Group, groups_from_document
from optstream.privacy.rules.headroom import groups_with_headroom
from optstream.privacy.rules.noise_horizon import Horizon
from optstream.privacy.spends import spend_from_document
from optstream.stream import State
from optstream.stream.covariate import Covariate
from optstream.stream.public_days import PublicDays

NAME = "HistoryInformed"
PARTS = "parts"
"""What a state holds on its way to a draw alone: the groups that a tree chose for all levels."""


@dataclass(frozen=True)
class BlockPlan(OnlineMechanism):
    """The parameters of `HistoryInformed`, checked, and what is measured by them; they are told there."""

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
        """The rule of what is measured."""
        return _blocks(self)

    @property
    def public_days(self) -> PublicDays:
        """The public days: `days`, or days of w steps."""
        return self.days or PublicDays(self.model.window_length)

    @property
    def prior_components(self) -> tuple[Component, ...]:
        """The `components`, or the general ones of what is measured."""
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
        """Return what a period measures where nothing else was spent, a block by itself with Laplace noise.

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
        """Return figures that say at which levels noise may be joint, and in which groups; free.

        Args:
            figures: Of the same plan.
            joint: For each level, root first.

        Returns:
            The same, where no level may have it.
        """
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
