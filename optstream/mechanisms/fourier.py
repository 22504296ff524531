"""Fourier: noise on the first frequencies of a period (FPA_k)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.estimation.estimate import invert_coordinates
from optstream.measurement.fourier import COORDINATES, CoordinatesChange, measure_coordinates
from optstream.mechanisms.base import SeriesMechanism, checked_scale
from optstream.noise import NoiseSource
from optstream.privacy import PeriodSpend, PrivacyModel
from optstream.privacy.exact import make_plain, round_up_to_float, whole
from optstream.stream import Measured, PrivatePeriod, State

LONGEST_WINDOW = 2**14  # steps of a window: the time to find the noise grows with their square


@dataclass(frozen=True)
class Fourier(SeriesMechanism):
    """A period's first frequencies with Laplace noise, the others left out, transformed back.

    For whole periods of smooth series: not step by step, biased by the frequencies left out. The 2 k - 1 real
    coordinates are computed in integers and rounded to the resolution, which should be far below alpha. A
    period is charged by how many of its steps n lie in the window, about as sqrt(n) (Lemma 8).

    Source: Rastogi and Nath 2010, section 4 (FPA_k); k = 10 as in Fioretto and Van Hentenryck, OptStream.
    Raises ParameterError for a parameter outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        n_coefficients: k >= 1, how many frequencies, with the mean; at most all of a period's are measured.
        shortest_period: Steps of the shortest period that will ever be released, at least 1; None for a
            window. Shorter ones meet a window more often and need more noise.
        leaves_per_period: Of unit "customer", the most leaves in which one customer's readings of a period
            lie: 1 where they stay in one leaf, all of the tree's where only steps are kept apart. Unit
            "roaming" has any number and takes no such limit, for up to sqrt(2 k - 1) times the noise.
    """

    model: PrivacyModel
    n_coefficients: int = 10
    shortest_period: int | None = None
    leaves_per_period: int = 1
    one_leaf_a_period: ClassVar[bool] = True
    serves_hours: ClassVar[bool] = False

    def __post_init__(self) -> None:
        make_plain(self)
        whole(self.n_coefficients, "n_coefficients of Fourier", 1)
        if self.model.window_length > LONGEST_WINDOW:
            raise ParameterError(
                f"window_length of Fourier must be at most {LONGEST_WINDOW:,} steps; got "
                f"{self.model.window_length:,}: take a longer step, or another mechanism"
            )
        if self.shortest_period is not None:
            whole(self.shortest_period, "shortest_period of Fourier", 1)
        whole(self.leaves_per_period, "leaves_per_period of Fourier", 1)
        if self.model.unit == "roaming" and self.leaves_per_period > 1:
            raise ParameterError(
                'leaves_per_period of Fourier must be left out for unit "roaming": it would limit how '
                "devices move, which the privacy model does not"
            )
        _ = self.scale  # refuses noise that would outgrow the integers

    @property
    def epsilon(self) -> Fraction:
        """What the plan, repeated over periods of any allowed lengths, costs any window at worst."""
        return self.change.worst() / self.scale

    @property
    def change(self) -> CoordinatesChange:
        """How far the coordinates move: what every charge follows from."""
        model = self.model
        return CoordinatesChange(
            n_coordinates=2 * self.n_coefficients - 1,
            alpha_units=model.alpha_units,
            leaves_per_step=model.leaves_per_step,
            leaves_per_period=self.leaves_per_period if model.unit == "customer" else None,
            window_length=model.window_length,
            shortest_period=self.shortest_period or model.window_length,
        )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on every coordinate, in units of the resolution, exactly a float."""
        return checked_scale(Fraction(round_up_to_float(self.change.worst() / self.model.pure_epsilon)))

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[PeriodSpend, ...]:
        """Return one spend for the period, which must have `shortest_period` steps or more."""
        shortest = self.change.shortest_period
        if n_steps < shortest:
            raise ParameterError(
                f"shortest_period of Fourier is {shortest}, and this period has {n_steps} steps: say so in "
                "advance, for the noise depends on it"
            )
        return (self.change.spend(COORDINATES, n_steps, first_step, self.scale),)

    def period_scales(self, n_steps: int) -> dict[str, Fraction]:
        return {"coordinates": self.scale}

    def fitted(self, measured: Measured) -> Estimate:
        return invert_coordinates(measured)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        self.plan(period.n_steps)  # refuses a period that is too short
        return measure_coordinates(period, self.change, self.scale, noise)
