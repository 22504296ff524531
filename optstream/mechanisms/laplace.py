"""Laplace: noise on every step."""

from dataclasses import dataclass
from fractions import Fraction

from optstream.estimation import Estimate
from optstream.estimation.holding import hold
from optstream.measurement.linear import SAMPLES
from optstream.measurement.steps import measure_steps
from optstream.mechanisms.series import OnlineMechanism
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, StepSpend
from optstream.stream import Measured, PrivatePeriod, State


@dataclass(frozen=True)
class Laplace(OnlineMechanism):
    """Every step is measured with Laplace noise of scale w * alpha / epsilon, and published as it is.

    The baseline of every paper: unbiased, its error is the noise, the same on every series. Each step costs
    epsilon / w, so any window costs epsilon, wherever periods begin.

    Source: Dwork, McSherry, Nissim and Smith 2006, composed over the steps of a window.

    Args:
        model: What is protected.

    Raises:
        ParameterError: Where the noise would outgrow the integers.
    """

    model: PrivacyModel

    def __post_init__(self) -> None:
        self._spend(1, 0)

    @property
    def epsilon(self) -> Fraction:
        """What any window of w steps costs: w steps, each alpha / scale."""
        return self.model.window_length * self._spend(1, 0).unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[StepSpend, ...]:
        """Return one spend: every step, epsilon / w."""
        return (self._spend(n_steps, first_step),)

    def fitted(self, measured: Measured) -> Estimate:
        """Return the noisy values as they are."""
        return hold(measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        spend = self._spend(period.n_steps, period.first_step)
        return measure_steps(period, range(period.n_steps), spend, noise)

    def _spend(self, n_steps: int, first_step: int) -> StepSpend:
        a_step = self.model.epsilon / self.model.window_length
        return self._step_spend(SAMPLES, first_step, (1,) * n_steps, a_step)
