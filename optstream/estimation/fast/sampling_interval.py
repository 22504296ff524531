"""How long to wait until the next sample: FAST's feedback and interval law, and a fixed rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LARGEST_EXPONENT = 100.0
"""Of the law: far beyond what it takes to reach the shortest interval, and far from overflow."""


@dataclass(frozen=True)
class AdaptiveInterval:
    """A small feedback lengthens the interval, one above the set point shortens it.

    Feedback of the relative errors E at the last measured steps k:

        D = proportional E[n] + integral / T (E[n] + … + E[n-T+1])
            + derivative (E[n] - E[n-1]) / (k[n] - k[n-1])

    and the interval that follows I is max(I + step (1 - e^((D - set_point) / set_point)), shortest), in which
    the exponent has the sign that lets a large error shorten: with the minus in which the technical report
    prints it, an error would lengthen the interval, and more samples would go where nothing happens.

    proportional, integral, derivative: gains that add up to 1. integration_time: T, a number of samples;
    until so many errors are known, the interval is the shortest. step, shortest, longest: of the interval, in
    steps of the series. set_point: a relative error.
    Source: Fan and Xiong, FAST, section on adaptive sampling; the cut exponent and `longest` are ours.
    """

    proportional: float
    integral: float
    derivative: float
    integration_time: int
    step: float
    set_point: float
    shortest: int
    longest: int

    @property
    def n_errors(self) -> int:
        """How many past errors it looks at."""
        return max(self.integration_time, 2)

    def feedback(self, errors: Sequence[tuple[int, float]]) -> float:
        """Return D of the (step, relative error) of past samples, rising, at least one."""
        at, error = errors[-1]
        recent = [past for _, past in errors[-self.integration_time :]]
        slope = (error - errors[-2][1]) / (at - errors[-2][0]) if len(errors) > 1 else 0.0
        mean = sum(recent) / self.integration_time
        return self.proportional * error + self.integral * mean + self.derivative * slope

    def after(self, interval: float, errors: Sequence[tuple[int, float]]) -> float:
        """Return the interval that follows `interval`."""
        if len(errors) < self.integration_time:
            return float(self.shortest)
        exponent = (self.feedback(errors) - self.set_point) / self.set_point
        change = self.step * (1 - math.exp(min(exponent, LARGEST_EXPONENT)))
        return min(max(interval + change, float(self.shortest)), float(self.longest))


@dataclass(frozen=True)
class FixedInterval:
    """The same number of steps after every sample."""

    steps: int
    n_errors: int = 0

    def after(self, interval: float, errors: Sequence[tuple[int, float]]) -> float:
        """Return `steps`, always."""
        return float(self.steps)
