"""Laplace: noise on every step; and Uniform, the w-event model's name for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from optstream.measurement.sums import SAMPLES, LinearSpend
from optstream.mechanisms.base import known_spends, state_of_foreign
from optstream.mechanisms.joint_groups import (
    JointGroups,
    JointMechanism,
    Noise,
    single_steps,
    unplanned_length,
)
from optstream.privacy import JointSpend, PrivacyModel, Spend
from optstream.privacy.exact import make_plain
from optstream.privacy.rules import Horizon
from optstream.privacy.spends import Group
from optstream.stream import Measured, State

NAME = "Laplace"


@dataclass(frozen=True)
class Laplace(JointMechanism):
    """Every step is measured, with independent Laplace noise or joint noise, and published as it is.

    The baseline of every paper. Laplace noise has scale w * alpha / epsilon: each step costs epsilon / w, so
    any window costs epsilon, wherever periods begin.

    Joint noise (Lemmas 15 and 16) is drawn for the steps of a period in groups, and a window pays for each
    group that it meets: at w = 48, in groups of 6 to 8, two thirds of the error for the same epsilon of a
    window, and a higher one of a year (Lemma 17). It needs whole periods of declared lengths, and a level of
    one node or customers whose readings of a period lie in one leaf. Next to days of another plan groups for
    which some window has no headroom are left out, and their steps hold the value before.

    Source: Dwork, McSherry, Nissim and Smith 2006, composed over the steps of a window; joint noise: Hardt
    and Talwar 2010.

    Args:
        model: The privacy guarantee.
        noise: "joint" or "laplace"; None for the allowed one with less expected error,
            which is Laplace noise where `period_lengths` or `n_nodes` is None.
        period_lengths: Steps of every period that will ever be released, for joint noise; None for periods
            of w steps with noise = "joint".
        n_nodes: Series that are measured; `Hierarchical` sets it for each level. Joint noise needs it.
        declared_leaves: In how many leaves one customer's readings of a period lie, as the operator declares,
            for joint noise on several nodes; None where not declared.
        horizon: The span of days at whose price both kinds of noise are compared where `noise` is None; None
            for a window, whose epsilon stays in any case.

    Raises:
        ParameterError: For a parameter outside its range; for joint noise that is required and cannot be had;
            and where the noise would outgrow the integers.
    """

    model: PrivacyModel
    noise: Noise | None = None
    period_lengths: tuple[int, ...] | None = None
    n_nodes: int | None = None
    declared_leaves: int | None = None
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        make_plain(self)
        _ = self.unit_charge

    @cached_property
    def joint_groups(self) -> JointGroups | None:
        return self.joint_terms.step_groups(self.model)

    @property
    def window_charges(self) -> int:
        """The steps of a window, or the groups that it meets at most."""
        groups = self.joint_groups
        return self.model.window_length if groups is None else groups.worst

    @property
    def reads_spends(self) -> bool:
        """Whether days of other plans leave out groups: with joint noise."""
        return self.adaptive or self.joint_groups is not None

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[LinearSpend, ...]:
        """Return one spend: every step, or the groups of joint noise for which all windows have headroom."""
        if self.joint_groups is None:
            groups: tuple[Group, ...] = tuple((part,) for part in single_steps(range(n_steps)))
        else:
            lengths = self.joint_terms.lengths(self.model)
            if n_steps not in lengths:
                raise unplanned_length(n_steps, lengths)
            groups = self.joint_groups.of(range(n_steps))
            if others := known_spends(state, NAME):
                groups = self._with_headroom(groups, first_step, others)
        return (self._grouped_spend(SAMPLES, first_step, n_steps, groups),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return other periods' spends if joint noise has days of another plan near it, else None."""
        return None if self.joint_groups is None else state_of_foreign(spends, NAME, self._is_own)

    def _is_own(self, spend: Spend) -> bool:
        """Return whether a spend of another period is of this plan, whole or with groups left out."""
        if not isinstance(spend, JointSpend) or spend.stage != SAMPLES:
            return False
        if spend.unit_charge > self.unit_charge or self.joint_groups is None:
            return False
        planned = spend.n_steps in self.joint_terms.lengths(self.model)
        return planned and {*spend.groups} <= {*self.joint_groups.of(range(spend.n_steps))}

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return whether every step was measured; headroom may have left out some."""
        return len(measured.positions) == measured.n_steps


@dataclass(frozen=True)
class Uniform(Laplace):
    """`Laplace` under its name in the w-event literature: epsilon divided evenly over the steps of a window.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2.
    """

    also_called: ClassVar[str | None] = "Laplace"
