"""What mechanisms over plain series share: from values to measurements to a release, by period or by step."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.least_squares import Consistent
from optstream.mechanisms.base import Mechanism
from optstream.mechanisms.period_release import Release
from optstream.mechanisms.values import as_column
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, StepSpend
from optstream.privacy.exact import round_up_to_float
from optstream.stream import Measured, State

LARGEST_SCALE = 2**40
"""Noise of this scale still fits, with a margin, in exactly represented integers, and its sums into
floats that show a resolution unit: what is published never fails its contract for want of digits."""


def checked_scale(scale: Fraction) -> Fraction:
    """Return the scale of some noise. Raises ParameterError where it would outgrow the integers."""
    if scale > LARGEST_SCALE:
        raise ParameterError(
            "the noise would outgrow the integers: choose a larger epsilon or a coarser resolution"
        )
    return scale


class SeriesMechanism(Mechanism):
    """A mechanism over one or more series, of which one customer changes `model.leaves_per_step` at a step.

    Its series are the nodes of one level: spends name level 0, which `Hierarchical` replaces.
    """

    tree_class: ClassVar[str | None] = "Hierarchical"
    takes_margin: ClassVar[bool] = True

    def on_level(self, model: PrivacyModel, n_nodes: int) -> "SeriesMechanism":
        """Return the same mechanism for the nodes of one level of a tree.

        Args:
            model: The level's guarantee.
            n_nodes: Of the level.

        Raises:
            ParameterError: For a model or a number of nodes that it refuses.
        """
        pattern: Any = self  # every mechanism is a dataclass, which mypy cannot know
        given = {"n_nodes": n_nodes} if "n_nodes" in pattern.__dataclass_fields__ else {}
        found: SeriesMechanism = replace(pattern, model=model, **given)
        return found

    @abstractmethod
    def fitted(self, measured: Measured) -> Estimate:
        """Return every step's value and variance, from the measurements alone, (n_series, n_steps)."""

    def _consistent(self, measured: Measured) -> Consistent:
        found = self.fitted(measured)
        return Consistent(found.values, found.optimality)

    def noise_variances(self, measured: Measured) -> NDArray[np.float64] | None:
        """Return the noise variances of `fitted`."""
        return self.fitted(measured).noise_variances

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        """Return the noise scales, in units, of spends by the period (`PeriodSpend`), by name; none by
        default.

        Args:
            n_steps: Steps of the period.
        """
        return {}

    @property
    def alpha_units(self) -> int:
        """The most by which the series move together at one step, in units of the resolution."""
        return self.model.leaves_per_step * self.model.alpha_units

    def _scale(self, epsilon: Fraction) -> Fraction:
        """Return the scale of Laplace noise that loses at most `epsilon` a step, rounded up to a float."""
        return checked_scale(Fraction(round_up_to_float(self.alpha_units / epsilon)))

    def _step_spend(
        self, stage: str, first_step: int, weights: tuple[int, ...], epsilon: Fraction
    ) -> StepSpend:
        """Return the spend of noise by `_scale`: a step of weight 1 loses at most `epsilon`."""
        model, scale = self.model, self._scale(epsilon)
        return StepSpend(0, stage, first_step, weights, scale, model.alpha_units, model.leaves_per_step)


@dataclass(frozen=True, eq=False)
class OnlineState:
    """The state of a stream that is released step by step.

    Attributes:
        next_step: Running index of the next step.
        memory: The state after the last release.
    """

    next_step: int
    memory: State | None


class OnlineMechanism(SeriesMechanism):
    """A mechanism that needs no batch: each step can be released when it arrives."""

    def start(self, first_step: int = 0) -> OnlineState:
        """Return the state for the first call of `step`.

        Args:
            first_step: Running index of the stream's first step.
        """
        return OnlineState(first_step, None)

    def step(
        self: Self, state: OnlineState, value: ArrayLike, *, noise: NoiseSource
    ) -> tuple[OnlineState, Release]:
        """Release one step; costs `plan(1, …)`.

        Args:
            state: Of `start` or the step before. It serves once: from the same state twice would be two draws
                of one step.
            value: Of each series, (n_series,), or a number, in the unit of the readings; on a tree also a
                pandas Series or a frame of one step, by label.
            noise: As for `measure`.

        Returns:
            The next state, and a release of one step.

        Raises:
            ParameterError: As `measure`.
            NoiseError: As `measure`.
        """
        release = self.release(as_column(value), noise=noise, first_step=state.next_step, state=state.memory)
        return OnlineState(state.next_step + 1, release.state), release
