"""Noise of a whole stream in a mechanism of public blocks: where it may be had, its plan and its draw."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

from optstream.errors import ParameterError
from optstream.measurement.blocks import DriftingBlocks
from optstream.measurement.ordered import Ordered, OrderTerms, draw_ordered, next_spend
from optstream.measurement.sums import query_weights
from optstream.mechanisms.base import SeriesMechanism, checked_scale, memory_of
from optstream.noise import NoiseSource
from optstream.privacy import OrderSpend, PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import round_up_to_float, whole
from optstream.privacy.rules import Horizon, Layer, may_be_ordered, parts_with_headroom
from optstream.privacy.spends import ORDER_DEFECT, spend_from_document, spend_to_document
from optstream.stream import State

Noise = Literal["joint", "laplace"]  # kinds of noise; None for the allowed one with less expected error


@dataclass(frozen=True)
class JointTerms:
    """Whether noise may be joint, that of a whole stream; fields and errors as of `Laplace`."""

    noise: Noise | None = None
    period_lengths: tuple[int, ...] | None = None
    n_nodes: int | None = None
    declared_leaves: int | None = None
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        if self.noise is not None and self.noise not in get_args(Noise):
            raise ParameterError(f'noise must be "joint" or "laplace", or be left out; got {self.noise!r}')
        if self.period_lengths is not None and not self.period_lengths:
            raise ParameterError("period_lengths must have at least one length, or be left out")
        for length in self.period_lengths or ():
            whole(length, "each of period_lengths", 1)
        for name in ("n_nodes", "declared_leaves"):
            if (given := getattr(self, name)) is not None:
                whole(given, name, 1)

    def chosen(self, model: PrivacyModel, n_blocks: int, length: int) -> OrderTerms | None:
        """Return the terms of joint noise for this number of blocks a window; None for Laplace noise."""
        if not self.allowed(model):
            return None
        if n_blocks < 2:
            if self.noise == "joint":
                raise ParameterError(
                    'noise = "joint" needs two measurements or more in a window, which share it: leave it '
                    'out, or take noise = "laplace"'
                )
            return None
        pays = self.noise or errs_less(n_blocks, model.pure_epsilon, model.window_length, self.horizon)
        return OrderTerms(n_blocks, length) if pays else None

    def allowed(self, model: PrivacyModel) -> bool:
        """Return whether noise may be joint, for which series and periods must be declared."""
        if self.noise == "laplace" or self.n_nodes is None:
            return False
        if may_be_ordered(model, self.n_nodes, self.declared_leaves):
            return self.noise == "joint" or self.period_lengths is not None
        if self.noise == "joint":
            raise ParameterError(
                f'noise = "joint" on a level of {self.n_nodes} nodes is for customers whose readings of any '
                "window lie in one leaf: say so ([stream] leaves_per_window = 1, of unit customer and "
                "aggregated input), or leave noise out for joint noise where it needs no such word"
            )
        return False


def errs_less(n_blocks: int, epsilon: Fraction, window_length: int, horizon: Horizon | None) -> bool:
    """Return whether joint noise errs less than Laplace noise, at a window's epsilon or a horizon's price."""
    if n_blocks < 2 or horizon is None:
        return n_blocks > 1
    terms = OrderTerms(n_blocks, 1)
    ratio = n_blocks / terms.deviation
    return horizon.prefers_orders(ratio, epsilon, terms.orders, n_blocks, window_length)


def order_spend(
    terms: OrderTerms, model: PrivacyModel, epsilon: Fraction, place: tuple[int, str, int, int], n_nodes: int
) -> OrderSpend:
    """Return the spend without parts of orders that begin at a place (level, stage, first step, steps)."""
    level, stage, first_step, n_steps = place
    alpha, leaves = model.alpha_units, model.leaves_per_step
    each = epsilon / terms.orders - ORDER_DEFECT
    if each <= 0:
        raise ParameterError(
            "the noise would outgrow the integers: choose a larger epsilon or a coarser resolution"
        )
    scale = checked_scale(Fraction(round_up_to_float(terms.length * leaves * alpha / each)))
    return OrderSpend(
        level, stage, first_step, n_steps, (), scale, alpha, n_nodes,
        terms.length, model.window_length, terms.n_blocks, terms.orders, first_step, leaves_changed=leaves,
    )  # fmt: skip


class JointMechanism(SeriesMechanism):
    """A mechanism of blocks by a public rule with Laplace noise, or joint noise where that errs less."""

    noise: Noise | None
    period_lengths: tuple[int, ...] | None
    n_nodes: int | None
    declared_leaves: int | None
    horizon: Horizon | None
    stage: ClassVar[str]
    own_name: ClassVar[str]  # of the mechanism that reads its states

    @property
    @abstractmethod
    def blocks(self) -> DriftingBlocks:
        """The rule of the blocks."""

    @property
    def joint_terms(self) -> JointTerms:
        return JointTerms(self.noise, self.period_lengths, self.n_nodes, self.declared_leaves, self.horizon)

    @cached_property
    def order_terms(self) -> OrderTerms | None:
        """The terms of joint noise; None for Laplace noise."""
        return self.joint_terms.chosen(self.model, self.blocks.n_blocks, self.blocks.length)

    @property
    def epsilon(self) -> Fraction:
        """The cost of any window: all of its blocks' steps by Laplace noise, or joint noise once."""
        blocks = self.blocks
        return self.unit_charge * (blocks.n_blocks * blocks.length if self.order_terms is None else 1)

    @cached_property
    def unit_charge(self) -> Fraction:
        """The charge of a measured step with Laplace noise, or of a window that meets joint noise."""
        if self.order_terms is not None:
            return self.order_spend(1).unit_charge
        return self.model.moved_units / self._scale(self._a_charge)

    @property
    def _a_charge(self) -> Fraction:
        return self.model.pure_epsilon / (self.blocks.n_blocks * self.blocks.length)

    def order_spend(self, n_steps: int, first_step: int = 0, state: State | None = None) -> OrderSpend:
        """Return the spend of joint noise without parts: which orders it goes on with (`next_spend`)."""
        assert self.order_terms is not None
        assert self.n_nodes is not None  # else it would be Laplace noise
        at = (0, self.stage, first_step, n_steps)
        new = order_spend(self.order_terms, self.model, self.model.pure_epsilon, at, self.n_nodes)
        return next_spend(new, str(self.blocks), state, _near(state))

    def parts(self, n_steps: int, first_step: int = 0) -> tuple[range, ...]:
        """Return the parts of a period without other spends: with joint noise whole blocks alone."""
        found = self.blocks.parts(first_step, n_steps)
        if self.order_terms is None:
            return found
        return tuple(part for part in found if len(part) == self.blocks.length)

    def layer(self, n_steps: int, first_step: int, state: State | None) -> Layer:
        """Return what a period asks of its windows."""
        parts = self.parts(n_steps, first_step)
        if self.order_terms is None:
            return Layer(parts, apart=self.unit_charge)
        return Layer(parts, orders=[self.order_spend(n_steps, first_step, state)])

    def _with_headroom(self, n_steps: int, first_step: int, state: State | None) -> tuple[range, ...]:
        """Return the parts for which all windows have headroom next to other periods' spends."""
        layer, model = self.layer(n_steps, first_step, state), self.model
        (found,) = parts_with_headroom(
            [layer], first_step, _near(state), model.window_length, model.pure_epsilon
        )
        return found

    def _spend(
        self, n_steps: int, first_step: int, parts: Sequence[range], state: State | None
    ) -> StepSpend | OrderSpend:
        if self.order_terms is not None:
            return replace(self.order_spend(n_steps, first_step, state), parts=tuple(parts))
        if self.noise == "joint":
            raise ParameterError(
                f'n_nodes of {type(self).__name__} must be given for noise = "joint": it is priced for the '
                "series that it is drawn for; a tree says it for each level"
            )
        return self._step_spend(self.stage, first_step, query_weights(parts, n_steps), self._a_charge)

    def _drawn(self, spend: Spend, state: State | None, noise: NoiseSource) -> Ordered | None:
        """Draw a period's joint noise; None where it has Laplace noise."""
        if self.order_terms is None or not isinstance(spend, OrderSpend):
            return None
        return draw_ordered(
            spend, lambda first, n_steps: self.parts(n_steps, first), str(self.blocks), state, noise
        )

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """Return all that other periods spent, by whatever mechanism, and the memory of the period before."""
        near = [spend_to_document(spend) for spend in spends]
        return {**memory_of(before, self.own_name), "mechanism": self.own_name, "spends": near}

    def _still_seen(self, spends: Iterable[Spend], end: int) -> list[dict[str, Any]]:
        """Return those that share a window with a step at or after `end`, JSON-ready."""
        first = end - self.model.window_length
        return [spend_to_document(one) for one in spends if one.first_step + one.n_steps > first]

    def _kept(self, spend: Spend, ordered: Ordered | None, state: State | None) -> dict[str, Any]:
        """Return the state's part of spends near the next period, and the orders that it goes on with."""
        seen = self._still_seen([*_near(state), spend], spend.first_step + spend.n_steps)
        return {"spends": seen, **(ordered.after if ordered else {})}


def _near(state: State | None) -> list[Spend]:
    return [spend_from_document(one) for one in (state or {}).get("spends", ())]
