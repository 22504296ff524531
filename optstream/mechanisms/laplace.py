"""Laplace: noise on every step; and Uniform, the w-event model's name for it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from optstream.measurement.blocks import DriftingBlocks
from optstream.measurement.sums import SAMPLES, LinearSpend, measure_steps
from optstream.mechanisms.base import last_values, own_state
from optstream.mechanisms.joint import JointMechanism, Noise
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.exact import make_plain
from optstream.privacy.rules import Horizon
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.private_period import public_part

NAME = "Laplace"


@dataclass(frozen=True)
class Laplace(JointMechanism):
    """Every step is measured, with independent Laplace noise or joint noise, and published as it is.

    Laplace noise has scale w * alpha / epsilon: each step costs epsilon / w, so any window costs epsilon.

    Joint noise (Lemmas 15a and 16b) goes on from period to period and costs a window the same however many
    steps it holds. It needs the state after the period before, and a level of one node or customers whose
    readings of any window lie in one leaf. Steps for which some window has no headroom hold the value before.

    Source: Dwork, McSherry, Nissim and Smith 2006, composed over the steps of a window; joint noise: Hardt
    and Talwar 2010. Raises ParameterError for a parameter outside its range; for joint noise that is required
    and cannot be had; and where the noise would outgrow the integers.

    Args:
        model: The privacy guarantee.
        noise: "joint" or "laplace"; None for the allowed one with less expected error,
            which is Laplace noise where `period_lengths` or `n_nodes` is None.
        period_lengths: Steps of every period that will ever be released, one by one in order of time and each
            with the state after the one before; None where that is not said, for periods of w steps with
            noise = "joint".
        n_nodes: Series that are measured; `Hierarchical` sets it for each level. Joint noise needs it.
        declared_leaves: In how many leaves one customer's readings of any window lie, as the operator
            declares, for joint noise on several nodes; None where not declared.
        horizon: The span of days at whose price both kinds of noise are compared where `noise` is None; None
            for a window, whose epsilon stays in any case.
    """

    stage: ClassVar[str] = SAMPLES
    own_name: ClassVar[str] = NAME

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
    def blocks(self) -> DriftingBlocks:
        """Every step."""
        window = self.model.window_length
        return DriftingBlocks(window, window, 1)

    @property
    def adaptive(self) -> bool:  # type: ignore[override]  # mypy: a property over a read-only one
        """Whether the noise goes on from the period before."""
        return self.order_terms is not None

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[LinearSpend, ...]:
        """Return one spend: every step, or of joint noise those for which all windows have headroom."""
        if self.order_terms is None:
            return (self._spend(n_steps, first_step, self.parts(n_steps, first_step), None),)
        known = own_state(state, NAME)
        parts = self._with_headroom(n_steps, first_step, known)
        return (self._spend(n_steps, first_step, parts, known),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return other periods' spends, and the orders to go on with, for joint noise; else None."""
        return super().recall(spends, before) if self.order_terms else None

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        (spend,) = self.plan(period.n_steps, period.first_step, state)
        ordered = self._drawn(spend, state, noise)
        if ordered is None:
            return measure_steps(period, list(range(period.n_steps)), spend, noise)
        steps = [part.start for part in ordered.spend.parts]
        measured = measure_steps(period, steps, ordered.spend, noise, ordered)
        measured = replace(measured, before={**(public_part(state) or {}), **ordered.left})
        kept = {"mechanism": NAME, **self._kept(ordered.spend, ordered, state), **last_values(measured)}
        return replace(measured, state=kept)

    def misses_only_noise(self, measured: Measured) -> bool:
        """Return whether every step was measured; headroom may have left out some."""
        return len(measured.positions) == measured.n_steps


@dataclass(frozen=True)
class Uniform(Laplace):
    """`Laplace` under its name in the w-event literature: epsilon divided evenly over the steps of a window.
    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2."""

    also_called: ClassVar[str | None] = "Laplace"
