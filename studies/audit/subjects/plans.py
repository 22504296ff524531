"""Our mechanisms as the audit runs them: small ones that measure tightly, and days as they are."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.mechanisms.optstream import LevelPlan
from optstream.privacy import PrivacyModel
from optstream.privacy.exact import round_up_to_float
from optstream.privacy.model import Unit
from optstream.privacy.sparse_vector import Allocation
from optstream.stream import AggregationTree, Feature
from studies.audit.sampler import EnumeratedSampler

RAGGED = AggregationTree.from_parents({"all": None, "A": "all", "B": "all", "C": "B", "D": "B"})
"""Leaves at levels 1 and 2."""

FLAT = AggregationTree.from_parents({"FR": None, "84": "FR", "11": "FR"})
SINGLE = AggregationTree.from_parents({"all": None})
HALVES = ("1/2", "1/2")

Build = Callable[[int], OptStream]
"""A mechanism for a period of so many steps."""


def two_points(n_steps: int) -> OptStream:
    """Return a window of 2 and its points, nothing else: what is measured comes near to what is claimed."""
    model = PrivacyModel("1", 2, 1)
    return OptStream(model, SINGLE, sampling=EquallySpaced(2), features=[], level_shares=["1"])


def two_points_deep(n_steps: int) -> OptStream:
    """Return the same with nearly all of epsilon at the deepest leaves."""
    shares = ["1/20", "1/20", "9/10"]
    model = PrivacyModel("1", 2, 1)
    return OptStream(model, RAGGED, sampling=EquallySpaced(2), features=[], level_shares=shares)


def two_points_roaming(n_steps: int) -> OptStream:
    """Return the same with two leaves that change at once, nearly all of epsilon at the node above both."""
    model = PrivacyModel("1", 2, 1, unit="roaming", leaves_per_step=2)
    shares = ["9/10", "1/10"]
    return OptStream(model, FLAT, sampling=EquallySpaced(2), features=[], level_shares=shares)


def one_sum(n_steps: int) -> OptStream:
    """Return a plan with nearly all of epsilon on the sum of a period of 4, which all steps of a window of 4
    move.
    """
    whole = Feature((range(n_steps),), "whole")
    return OptStream(
        PrivacyModel("1", 4, 1), SINGLE, sampling=EquallySpaced(2), features=[whole], level_shares=["1"],
        stage_shares=["1/10", "9/10"],
    )  # fmt: skip


def short(leaves_per_step: int = 1) -> Build:
    """Return a window of 6, three levels, points and two features; one leaf changes at a step, or several."""
    unit: Unit = "customer" if leaves_per_step == 1 else "roaming"
    model = PrivacyModel("1", 6, 1, unit=unit, leaves_per_step=leaves_per_step)

    def build(n_steps: int) -> OptStream:
        halves = Feature((range(n_steps // 2), range(n_steps // 2, n_steps)), "halves")
        features = [halves, Feature((range(n_steps),), "whole")]
        shares = ["1/4", "1/4", "1/2"]
        return OptStream(model, RAGGED, sampling=EquallySpaced(2), features=features, level_shares=shares)

    return build


def short_l1(n_steps: int) -> OptStream:
    """Return a window of 6, two points by L1 sampling, nothing else; periods of 5 steps or more."""
    return OptStream(
        PrivacyModel("1", 6, 1), SINGLE, sampling=L1Sampling(2, "10"), features=[], level_shares=["1"],
        shortest_period=min(5, n_steps),
    )  # fmt: skip


def day(mechanism: type[OptStream]) -> Build:
    """Return the mechanism of the paper: half-hours, ten points, parts of the day and the day."""
    return lambda n_steps: mechanism(
        PrivacyModel("1", 48, 10), FLAT, sampling=EquallySpaced(10), features=_day_features(n_steps),
        level_shares=HALVES,
    )  # fmt: skip


class PaperLevelPlan(LevelPlan):
    """BROKEN ON PURPOSE: sums by Theorem 9 of the paper, as if a window moved a feature by alpha in all."""

    @property
    def features_scale(self) -> Fraction:
        """The sums' scale."""
        return Fraction(round_up_to_float(self.alpha_units * len(self.features) / self.epsilon_features))


class PaperOptStream(OptStream):
    """BROKEN ON PURPOSE: OptStream by the paper's scale of sums."""

    @property
    def levels(self) -> tuple[PaperLevelPlan, ...]:
        """The measured levels, root first."""
        return tuple(PaperLevelPlan(**vars(plan)) for plan in super().levels)


def day_l1(n_steps: int) -> OptStream:
    """Return the paper's mechanism with L1 sampling, thirds, days of 46 steps or more."""
    return OptStream(
        PrivacyModel("1", 48, 10), FLAT, sampling=L1Sampling(10, "100"), features=_day_features(n_steps),
        level_shares=HALVES, shortest_period=46,
    )  # fmt: skip


def enumerated_samplers() -> tuple[EnumeratedSampler, ...]:
    """Return the L1 sampler of a window of 6 in units of alpha, each allocation, on a level series and on a
    hump.
    """
    return _sampler("even", "a hump", (0, 20, 30, 30, 20, 0)), _sampler("optimal", "level", (0,) * 6)


def _sampler(allocation: Allocation, shape: str, base: tuple[int, ...]) -> EnumeratedSampler:
    model = PrivacyModel("1", 6, 1, resolution=1)
    sampling = L1Sampling(2, "10", allocation)
    mechanism = OptStream(model, SINGLE, sampling=sampling, features=[], level_shares=["1"])
    return EnumeratedSampler(f"L1 sampler, {allocation} allocation, {shape}", mechanism, base)


def _day_features(n_steps: int) -> list[Feature]:
    edges = [0, 14, 24, 36, n_steps]
    parts = Feature(tuple(range(start, stop) for start, stop in pairwise(edges)), "day parts")
    return [parts, Feature((range(n_steps),), "day")]
