"""Joint noise: the groups of a plan that measures every step, and the cost of groups."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, Literal, TypeVar, get_args

from optstream.errors import ParameterError
from optstream.measurement import EquallySpaced
from optstream.measurement.sums import query_weights
from optstream.mechanisms.base import OnlineMechanism
from optstream.noise.joint import LARGEST_GROUP
from optstream.privacy import JointSpend, PrivacyModel, Spend, StepSpend
from optstream.privacy.exact import whole
from optstream.privacy.rules import (
    Draws,
    Horizon,
    cut,
    errs_less,
    groups_with_headroom,
    may_be_joint,
    worst_sum,
)
from optstream.privacy.spends import Group

Noise = Literal["joint", "laplace"]
"""Kinds of noise; None for the allowed one with less expected error."""


def single_steps(steps: Iterable[int]) -> list[range]:
    """Return each step as a part of its own."""
    return [range(step, step + 1) for step in steps]


@dataclass(frozen=True)
class JointGroups:
    """How the measured steps of a period are cut into groups.

    least: steps of the smallest group that the rule makes. worst: the most unit charges of a window. error:
    mean absolute noise of a step where Laplace noise of scale 1 loses all of epsilon (Lemma 15). per_step:
    groups over measured steps.
    """

    least: int
    worst: int
    error: Fraction
    per_step: Fraction

    def of(self, steps: Iterable[int]) -> tuple[Group, ...]:
        """Return the groups of a period's rising steps, each in one of them; too few are refused."""
        return cut(single_steps(steps), self.least)


def unplanned_length(n_steps: int, lengths: Sequence[int]) -> ParameterError:
    """Return the refusal of a period whose length joint noise was not planned for."""
    return ParameterError(
        f"period_lengths are {', '.join(map(str, lengths))}, and this period has {n_steps} steps: say so in "
        'advance, for joint noise depends on it; step by step there is noise = "laplace" alone'
    )


Found = TypeVar("Found")


@dataclass(frozen=True)
class JointTerms:
    """Whether noise may be joint, and for which periods; the fields are arguments of `Laplace`.

    Another kind of noise, a length or number below 1, or no length raises ParameterError.
    """

    noise: Noise | None = None
    period_lengths: tuple[int, ...] | None = None
    n_nodes: int | None = None
    declared_leaves: int | None = None
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        if self.noise is not None and self.noise not in get_args(Noise):
            raise ParameterError(f'noise must be "joint" or "laplace", or be left out; got {self.noise!r}')
        if self.period_lengths is not None and not self.period_lengths:
            raise ParameterError("period_lengths must have at least one length, or be left out")
        for length in self.period_lengths or ():
            whole(length, "each of period_lengths", 1)
        for name in ("n_nodes", "declared_leaves"):
            if (given := getattr(self, name)) is not None:
                whole(given, name, 1)

    def lengths(self, model: PrivacyModel) -> tuple[int, ...]:
        """Return the steps of every period that will ever be released."""
        return self.period_lengths or (model.window_length,)

    def step_groups(self, model: PrivacyModel) -> JointGroups | None:
        """Return the groups of every step's measurement under a level's guarantee; None for Laplace noise.

        Joint noise that is required and cannot be had raises ParameterError.
        """
        if not self.allowed(model):
            return None
        lengths, window, epsilon = self.lengths(model), model.window_length, model.pure_epsilon
        found = _best_of_steps(lengths, window, model.leaves_per_step * model.alpha_units / epsilon)

        def less(groups: JointGroups) -> bool:
            joint, laplace = (
                Draws(epsilon / groups.worst, groups.per_step),
                Draws(epsilon / window, Fraction(1)),
            )
            return errs_less(float(window / groups.error), joint, laplace, self.horizon)

        return self.wanted(found, less, f"periods have {min(lengths)} steps or more")

    def point_groups(
        self, model: PrivacyModel, sampling: EquallySpaced, unit_scale: Fraction
    ) -> JointGroups | None:
        """Return the groups of equally spaced points, as `step_groups`.

        `unit_scale` is of Laplace noise on the only point of a window. A window meets the most groups where
        all have `least` points (Lemma 16).
        """
        if not self.allowed(model):
            return None
        numbers = _numbers_of_points(self.lengths(model), model.window_length, sampling)
        found = _best_of_points(numbers, sampling.n_samples, unit_scale)
        periods = f"periods have {numbers[0][0]} points or more"
        return self.wanted(found, lambda groups: groups.error < sampling.n_samples, periods)

    def allowed(self, model: PrivacyModel) -> bool:
        """Return whether noise may be joint, for which series and periods must be declared."""
        if self.noise == "laplace" or self.n_nodes is None:
            return False
        if may_be_joint(model, self.n_nodes, self.declared_leaves):
            return self.noise == "joint" or self.period_lengths is not None
        if self.noise == "joint":
            raise ParameterError(
                f'noise = "joint" on a level of {self.n_nodes} nodes is for customers whose readings of a '
                "period lie in one leaf: say so ([stream] leaves_per_period = 1, of unit customer and "
                "aggregated input), or leave noise out for joint noise where it needs no such word"
            )
        return False

    def wanted(self, found: Found | None, errs_less: Callable[[Found], bool], periods: str) -> Found | None:
        """Return the best groups, or None for Laplace noise: joint noise is not required and errs more."""
        if found is None and self.noise == "joint":
            raise ParameterError(
                f'noise = "joint" needs two measurements or more in every period, and a scale of at least a '
                f"quarter of a group's measurements; {periods}: leave it out, or take noise = "
                '"laplace"'
            )
        return found if found is None or self.noise is not None or errs_less(found) else None


class JointMechanism(OnlineMechanism):
    """A mechanism of sums with Laplace noise, or with joint noise where that errs less (`JointTerms`)."""

    noise: Noise | None
    period_lengths: tuple[int, ...] | None
    n_nodes: int | None
    declared_leaves: int | None
    horizon: Horizon | None

    @property
    @abstractmethod
    def joint_groups(self) -> Any:
        """The rule that cuts measurements into groups; None for Laplace noise."""

    @property
    @abstractmethod
    def window_charges(self) -> int:
        """The most unit charges of a window: measured steps, or groups by their largest part."""

    @property
    def joint_terms(self) -> JointTerms:
        return JointTerms(self.noise, self.period_lengths, self.n_nodes, self.declared_leaves, self.horizon)

    @property
    def epsilon(self) -> Fraction:
        """The cost of any window of w steps: its unit charges, each alpha / scale."""
        return self.window_charges * self.unit_charge

    @property
    def unit_charge(self) -> Fraction:
        """The charge of a measured step, or of a step of a group's largest part in a window."""
        return self.alpha_units / self._scale(self.model.pure_epsilon / self.window_charges)

    def _with_headroom(
        self, groups: tuple[Group, ...], first_step: int, others: Sequence[Spend]
    ) -> tuple[Group, ...]:
        """Return the groups for which all windows have headroom next to other periods' spends."""
        model = self.model
        return groups_with_headroom(
            groups, first_step, self.unit_charge, others, model.window_length, model.pure_epsilon
        )

    def _grouped_spend(
        self, stage: str, first_step: int, n_steps: int, groups: Sequence[Group]
    ) -> StepSpend | JointSpend:
        """Return the spend of these groups, which are sums by themselves with Laplace noise."""
        a_charge = self.model.pure_epsilon / self.window_charges
        if self.joint_groups is None:
            if self.noise == "joint":
                raise ParameterError(
                    f'n_nodes of {type(self).__name__} must be given for noise = "joint": a group is priced '
                    "for the series that it is drawn for; a tree says it for each level"
                )
            weights = query_weights([part for group in groups for part in group], n_steps)
            return self._step_spend(stage, first_step, weights, a_charge)
        assert self.n_nodes is not None  # there would be no groups
        scale, alpha, leaves = self._scale(a_charge), self.model.alpha_units, self.model.leaves_per_step
        return JointSpend(0, stage, first_step, n_steps, tuple(groups), scale, alpha, self.n_nodes, leaves)


@lru_cache(maxsize=256)
def _best_of_steps(lengths: tuple[int, ...], window_length: int, unit_scale: Fraction) -> JointGroups | None:
    """Return `_best` for every step of periods of these lengths, which count alike."""

    def worst(least: int) -> int:
        layouts = [(length, cut(single_steps(range(length)), least)) for length in lengths]
        return worst_sum(layouts, window_length)

    # others make the same groups
    leasts = sorted({length // number for length in lengths for number in range(1, length)})
    fitting = [least for least in leasts if 2 <= least <= min(lengths)]
    return _best([(length, Fraction(1, length)) for length in lengths], fitting, worst, unit_scale)


@lru_cache(maxsize=256)
def _numbers_of_points(
    lengths: tuple[int, ...], window_length: int, sampling: EquallySpaced
) -> tuple[tuple[int, Fraction], ...]:
    """Return how many points periods of these lengths have, rising, and how often, wherever they begin."""
    places = product(lengths, range(window_length))
    numbers = Counter(len(sampling.positions(*place, window_length)) for place in places)
    return tuple((number, Fraction(times)) for number, times in sorted(numbers.items()))


@lru_cache(maxsize=256)
def _best_of_points(
    numbers: tuple[tuple[int, Fraction], ...], n_samples: int, unit_scale: Fraction
) -> JointGroups | None:
    """Return `_best` for periods with these numbers of points, n_samples in any window."""
    leasts = range(2, numbers[0][0] + 1)
    return _best(numbers, leasts, lambda least: (n_samples - 2) // least + 2, unit_scale)


def _best(
    numbers: Sequence[tuple[int, Fraction]],
    leasts: Iterable[int],
    worst_of: Callable[[int], int],
    unit_scale: Fraction,
) -> JointGroups | None:
    """Return the groups with the least expected error, of equal ones the smallest, whose year costs least.

    `numbers` are those of measured steps in a period, each with its frequency. `unit_scale` is of Laplace
    noise that loses all of epsilon. None where no group of two can be drawn.
    """
    best: JointGroups | None = None
    n_steps = sum((number * times for number, times in numbers), Fraction(0))
    for least in leasts:
        worst = worst_of(least)
        groups = [(len(one), times) for n, times in numbers for one in cut([range(1)] * n, least)]
        largest = max(size for size, _ in groups)
        error = (
            worst * sum((times * size * (size + 1) for size, times in groups), Fraction(0)) / (2 * n_steps)
        )
        drawn = largest <= LARGEST_GROUP and 4 * worst * unit_scale >= largest
        if drawn and (best is None or error < best.error):
            per_step = sum((times for _, times in groups), Fraction(0)) / n_steps
            best = JointGroups(least, worst, error, per_step)
    return best
