"""What mechanisms over plain series share: from values to measurements to a release, by period or by step."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.mechanisms.release import Release
from optstream.mechanisms.values import as_period
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, worst_window
from optstream.privacy.exact import round_up_to_float
from optstream.stream import Measured, PrivatePeriod, State

LARGEST_SCALE = 2**40
"""Noise of this scale still fits, with room to spare, in exactly represented integers, and its sums into
floats that show a resolution unit: what is published never fails its contract for want of digits."""


class SeriesMechanism(ABC):
    """A mechanism over one or more series, of which one customer changes `model.leaves_per_step` at a step.

    Its series are the nodes of one level: spends name level 0, `Hierarchical` puts in another. adaptive:
    whether a period's measurements depend on those of other periods, so that periods go one by one.
    noise_is_known: whether how noisy each value will be is known before anything is drawn.
    """

    model: PrivacyModel
    adaptive: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = True

    @property
    @abstractmethod
    def epsilon(self) -> Fraction:
        """What the plan, repeated for ever, costs any window."""

    @abstractmethod
    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[Spend, ...]:
        """The most that a period will cost, known before anything is drawn. Costs no privacy."""

    @abstractmethod
    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        """Draw the measurements of one period, at most the plan's spends."""

    @abstractmethod
    def fitted(self, measured: Measured) -> Estimate:
        """Every step's value and what the noise leaves of doubt, from the measurements alone; free."""

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State | None:
        """The state for a period, from what the ledger knows. Costs no privacy.

        spends: of all other periods within a window, earlier and later ones: what was spent is read from them
        alone. before: the state that the period before left, if there is one: only estimates need it.
        """
        return None

    def measure(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: State | None = None,
    ) -> Measured:
        """Draw the measurements of one period: the only part that costs privacy, at most `plan`'s spends.

        values: (n_series, n_steps) in the unit of the readings, or a PrivatePeriod. first_step: the running
        index of its first step. state: what the period before left; None at the start of a stream. The
        promise over several periods holds only with it.
        Raises ParameterError for a shape, type, size or state that does not fit; then nothing was drawn.
        """
        return self._draw(as_period(values, self.model, first_step), noise, state)

    def estimate(self, measured: Measured) -> Release:
        """Compute the release from its measurements; repeatable, free."""
        return Release(
            values=self.fitted(measured).values,
            measured=measured,
            spends=measured.spends,
            epsilon=self.epsilon,
            epsilon_alone=worst_window(measured.spends, self.model.window_length, self.model.windows).epsilon,
            state=measured.state,
            simulated=measured.simulated,
        )

    def release(
        self,
        values: ArrayLike | PrivatePeriod,
        *,
        noise: NoiseSource,
        first_step: int = 0,
        state: State | None = None,
    ) -> Release:
        """Measure and estimate in a row. Costs and raises as `measure`."""
        return self.estimate(self.measure(values, noise=noise, first_step=first_step, state=state))

    @property
    def alpha_units(self) -> int:
        """The most by which the series move together at one step."""
        return self.model.leaves_per_step * self.model.alpha_units

    def _scale(self, epsilon: Fraction) -> Fraction:
        """Of Laplace noise that loses at most `epsilon` for one step, rounded up to a float.

        Raises ParameterError where the noise would outgrow the integers.
        """
        scale = Fraction(round_up_to_float(self.alpha_units / epsilon))
        if scale > LARGEST_SCALE:
            raise ParameterError(
                "the noise would outgrow the integers: choose a larger epsilon or a coarser resolution"
            )
        return scale


@dataclass(frozen=True, eq=False)
class OnlineState:
    """Where a stream that is released step by step stands.

    next_step: the running index of the next step. memory: what the last release left.
    """

    next_step: int
    memory: State | None


class OnlineMechanism(SeriesMechanism):
    """A mechanism that needs no batch: each step can be released when it arrives."""

    def start(self, first_step: int = 0) -> OnlineState:
        """The state before the first step of a stream. Costs no privacy."""
        return OnlineState(first_step, None)

    def step(
        self: Self, state: OnlineState, value: ArrayLike, *, noise: NoiseSource
    ) -> tuple[OnlineState, Release]:
        """Release one step: the next state, and a release of one step.

        value: of each series, (n_series,), or a number. Costs what `plan(1, …)` says and raises as `measure`.
        A state serves once: from the same state twice would be two draws of one step.
        """
        column = np.atleast_1d(np.asarray(value))[:, None]
        release = self.release(column, noise=noise, first_step=state.next_step, state=state.memory)
        return OnlineState(state.next_step + 1, release.state), release
