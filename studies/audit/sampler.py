"""Our L1 sampler by exact enumeration, where it asks for one positive answer."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement import L1Sampling
from optstream.mechanisms import OptStream
from studies.audit.attack import AuditResult
from studies.audit.enumeration import exact_bound, first_above

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EnumeratedSampler:
    """The exact distribution of the step that a period's L1 sampler takes as its second point, if any, on
    every change of a base series.

    mechanism: of one node, two points a period, and alpha for resolution, so that its noise is small in
    units. base: the period's readings in units, (n_steps,). Scores and probabilities are computed here anew,
    from the paper's definitions. Raises ParameterError for a mechanism of another kind.
    """

    name: str
    mechanism: OptStream
    base: tuple[int, ...]

    def __post_init__(self) -> None:
        sampling, n_steps = self.mechanism.sampling, len(self.base)
        window = self.mechanism.model.window_length
        if (
            not isinstance(sampling, L1Sampling)
            or len(self.mechanism.tree.nodes) != 1
            or sampling.points_of_period(n_steps, window) != 2
            or not 4 <= n_steps <= window
        ):
            raise ParameterError("only an L1 sampler of one node that takes two points can be enumerated")

    @property
    def neighbours(self) -> str:
        """The pair's neighbouring streams."""
        return f"worst of all {3 ** len(self.base)} changes of a period of {len(self.base)}"

    @cached_property
    def claimed(self) -> float:
        """What the accountant charges the sampling of a period of which every step changes."""
        return float(self.mechanism.levels[0].sampler_charges(len(self.base))[-1])

    def probabilities(self, series: tuple[int, ...]) -> Floats:
        """Return how likely each of the steps 1, 2, …, n_steps - 2 is the second point, and, last, that none
        of them is, (n_steps - 1,). (Whether the last step is then taken unasked is no matter of chance.)
        """
        scales = self.mechanism.levels[0].sampler_scales(len(series))
        sampling = self.mechanism.sampling
        assert scales is not None
        assert isinstance(sampling, L1Sampling)
        threshold = round(sampling.threshold / self.mechanism.model.resolution)
        # noise and threshold are integers: a score reaches them where its integer part does
        scores = [int(l1_score(series[: step + 1])) for step in range(1, len(series) - 1)]
        return first_above(scores, threshold, float(scales.threshold), float(scales.query))

    def _text(self, outcome: int) -> str:
        asked = outcome < len(self.base) - 2
        return f"second point at step {outcome + 1}" if asked else "no score above"

    def enumerate(self) -> AuditResult:
        """Audit every change of at most alpha a step, up, down or none."""
        before = self.probabilities(self.base)
        found = []
        for change in product((-1, 0, 1), repeat=len(self.base)):
            moved = tuple(value + step for value, step in zip(self.base, change, strict=True))
            found.append((*exact_bound(before, self.probabilities(moved)), change))
        bound, outcome, change = max(found)
        event = f"{self._text(outcome)} when the readings change by {change}"
        return AuditResult.enumerated(self.name, self.neighbours, self.claimed, bound, event)


def l1_score(series: tuple[int, ...]) -> Fraction:
    """Return the distance of the inner values from the line between both ends, summed, exact."""
    last = max(len(series) - 1, 1)
    return sum(
        (
            abs(value - series[0] - Fraction(step, last) * (series[-1] - series[0]))
            for step, value in enumerate(series)
        ),
        Fraction(0),
    )
