"""Mechanisms of the w-event paper: one sample a window; or publish where the stream has moved, else hold."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import ClassVar

from optstream.errors import ParameterError
from optstream.estimation.estimate import UNKNOWN
from optstream.measurement.sums import SAMPLES, measure_by_distance
from optstream.mechanisms.base import (
    LARGEST_SCALE,
    SeriesMechanism,
    checked_share,
    last_values,
    measured_steps,
    memory_of,
    own_state,
    points_after,
)
from optstream.noise import NoiseSource
from optstream.privacy import CappedSpend, PrivacyModel, Spend, StepSpend
from optstream.privacy.rules import (
    PUBLICATIONS,
    Absorption,
    Halving,
    PublicationRule,
    WindowBudget,
    grains_of,
)
from optstream.stream import Measured, PrivatePeriod, State
from optstream.stream.private_period import public_part

DISTANCE = "distance"
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class PublishByDistance(SeriesMechanism):
    """A part of epsilon measures at each step the distance from the last release; the rest publishes. Decided
    once for all series. Subclasses divide the publications' part among steps."""

    model: PrivacyModel
    distance_share: Fraction = HALF
    adaptive: ClassVar[bool] = True
    days_independent: ClassVar[bool] = False
    noise_is_known: ClassVar[bool] = False
    name: ClassVar[str]

    def __post_init__(self) -> None:
        share = checked_share(self.distance_share, f"distance_share of {self.name}")
        object.__setattr__(self, "distance_share", share)
        self._distance(1, 0)
        # The most that budget distribution ever offers; budget absorption may offer twice that.
        self._scale(self._for_publications / 2)

    @property
    def epsilon(self) -> Fraction:
        """What any window costs at most: w distances, and the publications' whole part."""
        return self.model.window_length * self._distance(1, 0).unit_charge + self._for_publications

    def plan(
        self, n_steps: int, first_step: int = 0, state: State | None = None
    ) -> tuple[StepSpend, CappedSpend]:
        """Return a distance at every step, and publications as far as other periods leave headroom."""
        taken, model = self._taken(state), self.model
        # The scale of a publication that pays for all: not rounded, for it is what weights refer to. The
        # noise of each is rounded up from its own price.
        publications = CappedSpend(
            0, PUBLICATIONS, first_step, n_steps, 1, tuple(taken),
            self.model.moved_units / self._for_publications, model.alpha_units, model.leaves_per_step,
            tuple(Fraction(grains, self._n_grains) for grains in taken.values()),
        )  # fmt: skip
        return self._distance(n_steps, first_step), publications

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the spends of all other periods' publications, and the last release before the period."""
        spent = [list(one) for one in self._grains(spends)]
        return memory_of(before, self.name) | {"mechanism": self.name, "spent": spent}

    @property
    @abstractmethod
    def _n_grains(self) -> int:
        """The number of parts into which a window's publication budget is cut."""

    @abstractmethod
    def _rule(self, budget: WindowBudget, fewest: int, first_step: int, memory: State) -> PublicationRule:
        """Return the rule for a period, from the state after the period before and all known spends."""

    def _memory(self, rule: PublicationRule) -> State:
        """Return the rule's state for the next period, apart from the spends."""
        return {}

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        n_steps, first_step, window = period.n_steps, period.first_step, self.model.window_length
        distance, publications = self.plan(n_steps, first_step, state)
        # At the start of a stream the last release is zero, and nothing is known of it.
        memory = {"held": [0] * period.n_leaves, "held_variance": UNKNOWN, **own_state(state, self.name)}
        taken = self._taken(state)
        budget = WindowBudget(self._n_grains, window, first_step, n_steps, taken.items())
        fewest = ceil(publications.scale * self._n_grains / LARGEST_SCALE)
        rule = self._rule(budget, fewest, first_step, memory)
        drawn = measure_by_distance(period, memory["held"], distance, publications, rule, noise)
        measured = replace(drawn, before=public_part(memory))
        spent = Counter(taken) + Counter(dict(self._grains(drawn.spends)))
        seen = [[step, spent[step]] for step in points_after(spent, first_step + n_steps, window)]
        after = {"mechanism": self.name, "spent": seen, **self._memory(rule)}
        return replace(measured, state=after | last_values(measured))

    def _grains(self, spends: Iterable[Spend]) -> list[tuple[int, int]]:
        return grains_of(spends, self._for_publications, self._n_grains)

    def _taken(self, state: State | None) -> dict[int, int]:
        """Return the grains that other periods spent, by step."""
        memory = own_state(state, self.name)
        if memory and "spent" not in memory:
            raise ParameterError(f"state of {self.name} must name the spends, as releases do")
        return dict(memory.get("spent", ()))

    @property
    def _for_publications(self) -> Fraction:
        return self.model.pure_epsilon * (1 - self.distance_share)

    def _distance(self, n_steps: int, first_step: int) -> StepSpend:
        a_step = self.model.pure_epsilon * self.distance_share / self.model.window_length
        return self._step_spend(DISTANCE, first_step, (1,) * n_steps, a_step)


@dataclass(frozen=True)
class BudgetAbsorption(PublishByDistance):
    """Every step has an equal share; a published step also takes the unused shares before it.

    For streams that move now and then. A publication that takes j shares, at most a window's, is followed by
    j - 1 steps that are held without a distance. At each other step a noisy distance to the last release (at
    first zero), summed over the series, is compared with the error that publishing would bring.

    Costs epsilon in any window at most (Lemma 11). Our changes: a step that is held anyway has no distance
    measured; periods that are released late count the later ones, too.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 5.2 (Algorithm 2). Raises ParameterError
    for a share outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        distance_share: Of epsilon, for the distances of a window, exact, in (0, 1); in the paper half.
    """

    name: ClassVar[str] = "BudgetAbsorption"

    @property
    def _n_grains(self) -> int:
        return self.model.window_length

    def _rule(self, budget: WindowBudget, fewest: int, first_step: int, memory: State) -> PublicationRule:
        # The last publication before: from the spends or, where it lies further back, from memory.
        known = [step + grains for step, grains in memory.get("spent", ()) if step < first_step]
        known += [memory["absorbing_from"]] if "absorbing_from" in memory else []
        return Absorption(budget, self._n_grains, fewest, first_step, max(known, default=first_step))

    def _memory(self, rule: PublicationRule) -> State:
        assert isinstance(rule, Absorption)
        return {"absorbing_from": rule.absorbing_from}


GRAINS = 2**16
"""The parts of a publication budget: sixteen halvings in a row, as many as any window will see of use."""


@dataclass(frozen=True)
class BudgetDistribution(PublishByDistance):
    """A step that lies far from the last release is published with half of its window's remaining budget.

    For streams that move seldom, and then a few times in a row. At each step a noisy distance to the last
    release (at first zero), summed over the series, is compared with the error that publishing would bring.

    Costs epsilon in any window at most (Lemma 11). Our changes: budgets are counted in grains of 1 / 65,536,
    rounded down; where nothing can be offered no distance is measured; periods that are released late count
    the later ones, too.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 5.1 (Algorithm 1). Raises ParameterError
    for a share outside its range, or noise that would outgrow the integers.

    Args:
        model: The privacy guarantee.
        distance_share: Of epsilon, for the distances of a window, exact, in (0, 1); in the paper half.
    """

    name: ClassVar[str] = "BudgetDistribution"

    @property
    def _n_grains(self) -> int:
        return GRAINS

    def _rule(self, budget: WindowBudget, fewest: int, first_step: int, memory: State) -> PublicationRule:
        return Halving(budget, GRAINS, fewest)


@dataclass(frozen=True)
class Sample(SeriesMechanism):
    """One step of any window is measured, with all of epsilon, and its value held until the next.

    A step is measured as soon as no window would hold two: a public rule over the steps that were measured
    before and, when a day is released late, after. Its state and spends run on across periods.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 4.2. Raises ParameterError for noise that
    would outgrow the integers.

    Args:
        model: The privacy guarantee.
    """

    model: PrivacyModel
    name: ClassVar[str] = "Sample"
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _ = self.epsilon  # refuses noise that would outgrow the integers

    @property
    def epsilon(self) -> Fraction:
        """What any window costs: one step of it, alpha / scale."""
        return self._step_spend(SAMPLES, 0, (), self.model.pure_epsilon).unit_charge

    def plan(self, n_steps: int, first_step: int = 0, state: State | None = None) -> tuple[StepSpend, ...]:
        """Return one spend: the steps that will be measured."""
        points = [(at, 1) for at in own_state(state, self.name).get("points", ())]
        budget, weights = WindowBudget(1, self.model.window_length, first_step, n_steps, points), list[int]()
        for step in range(n_steps):
            weights.append(int(budget.headroom(step) >= 1))
            budget.take(step, weights[-1])
        return (self._step_spend(SAMPLES, first_step, tuple(weights), self.model.pure_epsilon),)

    def recall(self, spends: Iterable[Spend], before: State | None = None) -> State:
        """Return the measured steps of all other periods, and the value that is held."""
        return {
            **memory_of(before, self.name),
            "mechanism": self.name,
            "points": measured_steps(spends, SAMPLES),
        }

    def _draw(self, period: PrivatePeriod, noise: NoiseSource, state: State | None) -> Measured:
        measured = replace(super()._draw(period, noise, state), before=public_part(state))
        points = [*own_state(state, self.name).get("points", ()), *measured_steps(measured.spends, SAMPLES)]
        seen = points_after(points, period.first_step + period.n_steps, self.model.window_length)
        return replace(measured, state={"mechanism": self.name, "points": seen} | last_values(measured))
