"""A year of real load released one way, compared with itself and priced by the accountant."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.real_year import RealYear
from optstream import EquallySpaced, Feature, OptStream, PrivacyModel, simulated_noise
from optstream.measurement import L1Sampling
from optstream.privacy import worst_window

WINDOW = 48
EITHER = "strict = paper"  # equal spacing without features: both calibrations draw the same noise


@dataclass(frozen=True)
class Case:
    """One row of the table. sampler: "equally spaced", "L1" or "every step" (Laplace, the peer)."""

    sampler: str
    features: bool
    post_processing: bool
    calibration: str
    epsilon: str
    n_samples: int = 10
    alpha: str = "10"
    threshold: str = "1000"
    trial: int = 0

    def mechanism(self, tree) -> OptStream:
        """The mechanism, with the default shares of its stages and half of epsilon for each level."""
        sampling: Any = EquallySpaced(WINDOW if self.sampler == "every step" else self.n_samples)
        if self.sampler == "L1":
            sampling = L1Sampling(self.n_samples, self.threshold)
        return OptStream(
            PrivacyModel(self.epsilon, WINDOW, self.alpha),
            tree,
            sampling=sampling,
            features=Feature.day_parts(WINDOW) if self.features else [],
            level_shares=["1/2", "1/2"],
            calibration="strict" if self.calibration == EITHER else self.calibration,
            post_processing=self.post_processing,
        )


@dataclass(frozen=True)
class Outcome:
    """What one year gave: losses, errors in MW a step, seconds. inconsistency, below_zero: the largest of the
    year, MW.
    """

    epsilon_plan: Fraction
    epsilon_year: Fraction
    epsilon_year_aligned: Fraction
    error_nation: float
    error_regions: float
    inconsistency: float
    below_zero: float
    seconds: float


def run_case(case: Case, year: RealYear, seed: int) -> Outcome:
    """Release the year day by day and compare. The same seed in every row, another in every trial."""
    started = time.perf_counter()
    tree, mechanism = year.tree, case.mechanism(year.tree)
    noise = simulated_noise(np.random.SeedSequence([seed, case.trial]))
    state, spends, released = None, [], []
    for load, first_step in zip(year.load_mw, year.first_steps, strict=True):
        measured = mechanism.measure(load, noise=noise, first_step=first_step, state=state)
        state = measured.state
        spends += measured.spends
        released.append(mechanism.estimate(measured).values)
    seconds = time.perf_counter() - started
    series = np.array(released)
    errors = np.abs(series - tree.add_up(year.load_mw)).mean(axis=(0, 2))
    leaves = series[:, tree.leaf_indices]
    return Outcome(
        epsilon_plan=mechanism.epsilon,
        epsilon_year=worst_window(spends, WINDOW).epsilon,
        epsilon_year_aligned=worst_window(spends, WINDOW, "aligned").epsilon,
        error_nation=float(errors[0]),
        error_regions=float(errors[tree.leaf_indices].mean()),
        inconsistency=inconsistency(series, tree),
        below_zero=max(0.0, -float(leaves.min())),
        seconds=seconds,
    )


def inconsistency(series, tree) -> float:
    """The most by which a node differs from the sum of its children, over all days and steps."""
    gaps = [
        np.abs(
            series[:, node]
            - series[:, [child for child, up in enumerate(tree.parents) if up == node]].sum(axis=1)
        )
        for node in sorted(set(tree.parents) - {-1})
    ]
    return float(np.max(gaps))


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Several trials as one: means of errors and seconds, the worst of the rest."""
    merged = {name: max(getattr(one, name) for one in outcomes) for name in asdict(outcomes[0])}
    means = ("error_nation", "error_regions", "seconds")
    merged |= {name: float(np.mean([getattr(one, name) for one in outcomes])) for name in means}
    return Outcome(**merged)
