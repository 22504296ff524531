"""PeGaSus: perturb every step, group steps that look alike, smooth each group."""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.estimation import Estimate
from optstream.measurement.grouping import GROUPER, PERTURBER, measure_groups
from optstream.mechanisms.base import SeriesMechanism, checked_share, measured_steps, memory_of, own_state
from optstream.noise import NoiseSource
from optstream.privacy import PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import Exact, exact, one_of
from optstream.stream import Measured, PrivatePeriod, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NAME = "PeGaSus"
USUAL_THRESHOLD = 5
"""In units of alpha over a step's epsilon for the grouper: a re-implementation's, as the paper's."""


@dataclass(frozen=True)
class PeGaSus(SeriesMechanism):
    """Every step is measured; steps whose values hardly deviate form groups, and each group is smoothed.

    Each step has epsilon / w. The perturber has `perturber_share` of it: Laplace noise of scale alpha / its
    epsilon on every value. The grouper has the rest: a step joins its series' open group if the group's
    deviation, with noise, stays below a noisy threshold (Lemma 9); else it is a closed group of its own. A
    step's value is smoothed over its group so far and never revised. Groups run on across periods by raw
    state, which serves once.

    Source: Chen, Machanavajjhala, Hay and Miklau 2017, Algorithms 1 and 2. Changed: epsilon is a window's and
    not a step's, noise is discrete, and several series each have groups of their own. Raises ParameterError
    for a parameter outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        perturber_share: Of epsilon, exact, in (0, 1).
        threshold: Of a group's deviation, in the unit of the readings, exact, at least 0; None for 5 alpha
            over a step's epsilon for the grouper.
        smoother: "median", "average" or "james_stein".
    """

    model: PrivacyModel
    perturber_share: Exact = "4/5"
    threshold: Exact | None = None
    smoother: str = "median"
    adaptive: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share = checked_share(self.perturber_share, "perturber_share of PeGaSus")
        object.__setattr__(self, "perturber_share", share)
        if self.threshold is not None:
            threshold = exact(self.threshold, "threshold of PeGaSus")
            if threshold < 0:
                raise ParameterError(f"threshold of PeGaSus must be at least 0; got {threshold}")
            object.__setattr__(self, "threshold", threshold)
        one_of(self.smoother, "smoother of PeGaSus", tuple(SMOOTHERS))
        self.plan(1)  # refuses noise that would outgrow the integers

    @property
    def epsilon(self) -> Fraction:
        """What any window of w steps costs: w steps, each the perturber's and the grouper's epsilon."""
        return self.model.window_length * sum((spend.unit_charge for spend in self.plan(1)), Fraction(0))

    @property
    def threshold_units(self) -> int:
        """The deviation that a group may reach, before noise, rounded up to units of the resolution."""
        if self.threshold is None:
            return -(-USUAL_THRESHOLD * self.plan(1)[1].scale // 1)
        return -(-Fraction(self.threshold) // self.model.resolution)

    def plan(
        self, n_steps: int, first_step: int = 0, state: State | None = None
    ) -> tuple[StepSpend, StepSpend]:
        """Return two spends, weight 1 at every step: the perturber's and the grouper's."""
        share, a_step = Fraction(self.perturber_share), self.model.pure_epsilon / self.model.window_length
        weights = (1,) * n_steps
        return (
            self._step_spend(PERTURBER, first_step, weights, a_step * share),
            self._step_spend(GROUPER, first_step, weights, a_step * (1 - share)),
        )

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the state before, its groups closed if later steps were measured: raw state serves once."""
        memory = {**memory_of(before, NAME), "mechanism": NAME}
        ends = memory.get("next_step")
        if ends is not None and any(step >= ends for step in measured_steps(spends, GROUPER)):
            memory["next_step"] = None
        return memory

    def fitted(self, measured: Measured) -> Estimate:
        """Return each step smoothed over its group up to that step, never revised; variances are of the noise
        alone (`NOISE_LEFT`), nan for a median of three or more."""
        assert measured.point_variances is not None
        assert measured.choices is not None
        values, variances, noise = np.empty((3, *measured.points.shape))
        earlier = (measured.before or {}).get("noisy", ())
        for series, groups in enumerate(measured.choices["groups"]):
            points, single = measured.points[series], float(measured.point_variances[series, 0])
            for first, end in pairwise([0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]):
                known = list(earlier[series]) if groups[first] < measured.first_step else []
                noisy = np.array([*known, *points[first:end].tolist()], dtype=np.float64)
                sizes = np.arange(len(known) + 1, noisy.size + 1)
                values[series, first:end] = SMOOTHERS[self.smoother](noisy)[len(known) :]
                variances[series, first:end] = left = single * NOISE_LEFT[self.smoother](sizes)
                noise[series, first:end] = np.where((sizes <= 2) | (self.smoother != "median"), left, np.nan)
        unit = float(measured.resolution)
        return Estimate(values * unit, variances * unit**2, noise * unit**2)

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        own_state(state, NAME)
        spends = self.plan(period.n_steps, period.first_step)
        measured = measure_groups(period, spends, self.threshold_units, state, noise)
        return replace(measured, state={"mechanism": NAME, **(measured.state or {})})


# The estimate of each of a group's noisy values, from those up to it (section 3 of the paper).

MEDIAN_EXCESS = 2 * np.sqrt(2 / np.pi)
"""How a median's variance nears its limit: E|Z|^3 of a standard normal Z."""


def _running_average(noisy: Floats) -> Floats:
    return np.asarray(np.cumsum(noisy) / np.arange(1, noisy.size + 1))


def _running_median(noisy: Floats) -> Floats:
    ordered: list[float] = []
    medians = np.empty(noisy.size)
    for place, value in enumerate(noisy.tolist()):
        insort(ordered, value)
        middle = len(ordered) // 2
        medians[place] = (ordered[middle] + ordered[-middle - 1]) / 2
    return medians


def _running_james_stein(noisy: Floats) -> Floats:
    """Return the mean of the first n values plus an n-th of the last one's distance from it, for each n."""
    means = _running_average(noisy)
    return np.asarray(means + (noisy - means) / np.arange(1, noisy.size + 1))


def _median_left(sizes: Integers) -> Floats:
    """Return a median's variance, of Laplace noise of variance 2 b^2: b^2 / n (1 + 2 sqrt(2 / pi) / sqrt(n)),
    an expansion, never above the mean's."""
    return np.asarray(np.minimum(1.0 + MEDIAN_EXCESS / np.sqrt(sizes), 2.0) / (2.0 * sizes))


def _james_stein_left(sizes: Integers) -> Floats:
    """Return the rest where the last of n values has weight a + 1/n, the others a = (n - 1) / n^2."""
    others = (sizes - 1) / sizes**2
    return np.asarray((sizes - 1) * others**2 + (others + 1.0 / sizes) ** 2)


SMOOTHERS: Mapping[str, Callable[[Floats], Floats]] = {
    "average": _running_average,
    "median": _running_median,
    "james_stein": _running_james_stein,
}
"""From a group's noisy values in the order of time to each one's estimate: the least squares fit of a
constant, the likeliest constant under Laplace noise, and a shrunken mean."""

NOISE_LEFT: Mapping[str, Callable[[Integers], Floats]] = {
    "average": lambda sizes: 1.0 / sizes,
    "median": _median_left,
    "james_stein": _james_stein_left,
}
"""What part of one value's noise variance is left by a smoother over n values."""
