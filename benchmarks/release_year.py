"""A year of releases, one after the other in one process: where the seconds go. Used by release.py."""

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel, secure_noise
from optstream.measurement import L1Sampling

SAMPLINGS = {"equally spaced": EquallySpaced(10), "L1": L1Sampling(10, 1000)}


@dataclass
class TimedNoise:
    """A noise source that notes how long it drew, and how much."""

    source: object = field(default_factory=secure_noise)
    seconds: float = 0.0
    samples: int = 0

    @property
    def simulated(self) -> bool:
        return self.source.simulated

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """As the source's."""
        started = time.process_time()
        drawn = self.source.discrete_laplace(scale, size)
        self.seconds += time.process_time() - started
        self.samples += drawn.size
        return drawn


@dataclass(frozen=True)
class YearSeconds:
    """CPU seconds of a year. measure: without the noise. closed_form: estimates without bound. estimate: with
    the bound, hence with the solver where the closed form went below it, on `to_solver` periods.
    """

    measure: float
    noise: float
    samples: int
    closed_form: float
    estimate: float
    to_solver: int

    @property
    def besides_noise(self) -> float:
        return self.measure + self.estimate


def mechanism_for(sampling: str, tree: AggregationTree, lower_bound: float | None = 0.0) -> OptStream:
    """epsilon 1, w = 48, alpha 10 MW, halves for the levels, the paper's features, default stages."""
    return OptStream(
        PrivacyModel(epsilon="1", window_length=48, alpha=10),
        tree,
        sampling=SAMPLINGS[sampling],
        features=Feature.day_parts(48),
        level_shares=["1/2", "1/2"],
        lower_bound=lower_bound,
    )


def a_year(sampling: str, tree: AggregationTree, load: NDArray[np.float64]) -> YearSeconds:
    """Release load (n_days, n_leaves, 48) day by day with secure noise, states passed on."""
    mechanism, unbounded = (mechanism_for(sampling, tree, bound) for bound in (0.0, None))
    noise, state, drawn = TimedNoise(), None, []
    started = time.process_time()
    for number, day in enumerate(load):
        drawn.append(mechanism.measure(day, noise=noise, first_step=48 * number, state=state))
        state = drawn[-1].state
    measuring = time.process_time() - started - noise.seconds
    started = time.process_time()
    free = [unbounded.estimate(measured) for measured in drawn]
    closed_form = time.process_time() - started
    started = time.process_time()
    for measured in drawn:
        mechanism.estimate(measured)
    return YearSeconds(
        measure=measuring,
        noise=noise.seconds,
        samples=noise.samples,
        closed_form=closed_form,
        estimate=time.process_time() - started,
        to_solver=sum(bool((release.values[tree.leaf_indices] < 0).any()) for release in free),
    )
