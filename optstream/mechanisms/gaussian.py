"""Gaussian: noise on every step under zero-concentrated privacy, for windows of many steps."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from optstream.errors import ParameterError
from optstream.measurement.sums import SAMPLES
from optstream.mechanisms.base import SeriesMechanism, checked_scale
from optstream.noise.gaussian import LEAST_SIGMA
from optstream.privacy import GaussianSpend, PrivacyModel
from optstream.privacy.exact import root_above
from optstream.privacy.model import Currency
from optstream.stream import Measured, State


@dataclass(frozen=True)
class Gaussian(SeriesMechanism):
    """Every step is measured, with independent discrete Gaussian noise, and published as it is.

    A window of w steps is charged w (m alpha)^2 / (2 sigma^2) in rho (Lemma 20), so sigma = m alpha sqrt(w /
    (2 rho)): the noise grows with the root of what shares the budget.

    Source: Canonne, Kamath and Steinke 2020, Theorem 14, composed over the steps of a window (Bun and Steinke
    2016, Lemma 1.7). Raises ParameterError for a model without a delta, or noise that would outgrow the
    integers.

    Args:
        model: The privacy guarantee, with a delta.
    """

    model: PrivacyModel
    currency: ClassVar[Currency] = "rho"

    def __post_init__(self) -> None:
        _ = self.sigma

    @property
    def sigma(self) -> Fraction:
        """The noise's standard deviation, in units of the resolution, rounded up to a float."""
        if self.model.currency != self.currency:
            raise ParameterError(
                "Gaussian noise has no price in epsilon alone: give PrivacyModel a delta "
                '([privacy] delta = "1e-6"), or take "Laplace"'
            )
        wanted = self.model.window_length * self.model.moved_units**2 / (2 * self.model.budget)
        return checked_scale(Fraction(max(root_above(wanted), LEAST_SIGMA)))

    @property
    def epsilon(self) -> Fraction:
        """The cost of any window of w steps, in rho: w times that of a step."""
        (spend,) = self.plan(1)
        return self.model.window_length * spend.unit_charge

    def plan(
        self, n_steps: int, first_step: int = 0, state: State | None = None
    ) -> tuple[GaussianSpend, ...]:
        """Return one spend: every step."""
        steps = tuple(range(step, step + 1) for step in range(n_steps))
        alpha, leaves = self.model.alpha_units, self.model.leaves_per_step
        return (GaussianSpend(0, SAMPLES, first_step, n_steps, steps, self.sigma, alpha, leaves),)

    def misses_only_noise(self, measured: Measured) -> bool:
        return True
