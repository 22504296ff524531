"""Budget Distribution and Absorption for customers who have epsilons and windows of their own."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.mechanisms.series import LARGEST_SCALE
from optstream.mechanisms.values import check_noise
from optstream.mechanisms.w_event import DISTANCE, GRAINS, HALF, checked_share
from optstream.noise import NoiseSource
from optstream.privacy import StepSpend
from optstream.privacy.rules import PUBLICATIONS, Absorption, Halving, PublicationRule, WindowBudget
from optstream.stream import PrivatePeriod
from studies.personalised.customer_sample import counts_of, noisy_counts, noisy_distance
from studies.personalised.personal_epsilon import CustomerClass, best_threshold


@dataclass(frozen=True)
class PersonalisedRelease:
    """Counts of a finite stream, and what each class was charged for them.

    Attributes:
        values: (n_series, n_steps), whole numbers; too low by those who were left out.
        published: The steps that were published; the others hold the value before, 0 at first.
        spends: For each class what distances and publications cost one of its customers, step by step.
        simulated: Whether the noise was: then nothing of it may be published.
    """

    values: NDArray[np.float64]
    published: tuple[int, ...]
    spends: tuple[tuple[StepSpend, StepSpend], ...]
    simulated: bool


@dataclass(frozen=True)
class Personalised(ABC):
    """Counts of customers by classes, of whom each keeps the epsilon of its class in windows of its class.

    One noise serves all: customers of classes that may lose less than the noise costs take part with a chance
    that makes up for it (Lemma 22, docs/privacy.md). A part of each class's epsilon asks at each step how far
    the stream is from the last release, the rest publishes, divided by a rule for each class. Which epsilon
    the noise has is chosen from public facts: offers and sizes of classes.

    For the library: a ledger's privacy budget has one epsilon and one window for all of a population. One
    customer counts once at a step, in one series; moving from one series to another costs twice as much.

    Source: Du, Cheng, Chen, Shen, Lin and Xi 2025, Infinite Stream Estimation under Personalized w-Event
    Privacy (PVLDB 18(6)); the sampling: Jorgensen, Yu and Cormode 2015.

    classes: at least one. distance_share: of each epsilon, for the distances of a window, exact, in (0, 1);
    in the paper half. Raises ParameterError for no class, two of one name, or a share outside its range.
    """

    classes: tuple[CustomerClass, ...]
    distance_share: Fraction = HALF
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance_share", checked_share(self.distance_share, self.name))
        object.__setattr__(self, "classes", tuple(self.classes))
        names = [one.name for one in self.classes]
        if not names or len(set(names)) < len(names):
            raise ParameterError(f"classes of {self.name} must be one or more, each with a name of its own")

    def release(self, counts: ArrayLike, *, noise: NoiseSource) -> PersonalisedRelease:
        """Release a finite stream; costs each class at most its epsilon in any of its windows.

        counts: how many customers of each class are counted where, (n_classes, n_series, n_steps), whole
        numbers of at least 0; one customer counts at most once at a step. What is above n_customers of its
        class counts as that. noise: secure for what is published; simulated noise marks what it touches.
        Returns counts of all classes together, with what they cost each. Raises ParameterError for another
        shape or type; nothing was drawn then; NoiseError if the noise source cannot draw.
        """
        check_noise(noise)
        array = np.asarray(counts)
        if array.ndim != 3 or len(array) != len(self.classes) or not array.size:
            wanted = f"({len(self.classes)} classes, series, steps)"
            raise ParameterError(f"counts of {self.name} must have the shape {wanted}; got {array.shape}")
        rows = array.reshape(-1, array.shape[2])
        period = PrivatePeriod.from_values(rows, resolution=Fraction(1), first_step=0)
        return self._released(period, array.shape[1], noise)

    def _released(self, period: PrivatePeriod, n_series: int, noise: NoiseSource) -> PersonalisedRelease:
        sizes = [one.n_customers for one in self.classes]
        asking = [one.epsilon * self.distance_share / one.window_length for one in self.classes]
        asked_at, _ = best_threshold(asking, sizes)
        rules = [self._rule(one, period.n_steps) for one in self.classes]
        last, published = np.zeros(n_series, dtype=np.int64), list[int]()
        values = np.zeros((n_series, period.n_steps))
        paid = np.zeros((2, len(rules), period.n_steps), dtype=object)
        for step in range(period.n_steps):
            grains = [rule.offer(step) for rule in rules]
            if all(grains):
                counts = counts_of(period, step, sizes)
                offers = self._epsilons(grains, rules)
                threshold, error = best_threshold(offers, sizes)
                paid[0, :, step] = [min(own, asked_at) for own in asking]
                if noisy_distance(counts, last, asking, asked_at, noise) > n_series * error:
                    last = noisy_counts(counts, offers, threshold, noise)
                    published.append(step)
                    used = [
                        self._used(*one, threshold) for one in zip(self.classes, grains, rules, strict=True)
                    ]
                    for rule, own in zip(rules, used, strict=True):
                        rule.publish(step, own)
                    paid[1, :, step] = self._epsilons(used, rules)
            values[:, step] = last
        spends = tuple((_spend(DISTANCE, a), _spend(PUBLICATIONS, b)) for a, b in zip(*paid, strict=True))
        return PersonalisedRelease(values, tuple(published), spends, noise.simulated)

    @abstractmethod
    def _rule(self, own: CustomerClass, n_steps: int) -> PublicationRule:
        """Return what divides the publications' part of a class among steps."""

    def _epsilons(self, grains: Sequence[int], rules: Sequence[PublicationRule]) -> list[Fraction]:
        return [
            self._for_publications(one) * own / rule.n_grains
            for one, own, rule in zip(self.classes, grains, rules, strict=True)
        ]

    def _used(self, one: CustomerClass, grains: int, rule: PublicationRule, threshold: Fraction) -> int:
        """Return what a class pays of its offer: no more than a customer who takes part for certain loses."""
        return min(grains, ceil(threshold * rule.n_grains / self._for_publications(one)))

    def _fewest(self, one: CustomerClass, n_grains: int) -> int:
        return ceil(n_grains / (self._for_publications(one) * LARGEST_SCALE))

    def _for_publications(self, one: CustomerClass) -> Fraction:
        return one.epsilon * (1 - self.distance_share)


def _spend(stage: str, charges: Sequence[Fraction]) -> StepSpend:
    """Return a spend whose charges are these: a unit of weight is a unit of epsilon."""
    return StepSpend(0, stage, 0, tuple(Fraction(charge) for charge in charges), Fraction(1), 1)


class PersonalisedBudgetDistribution(Personalised):
    """PBD: a publication costs each class half of what is left of its own window.

    Parameters, errors and source: as `Personalised`.
    """

    name: ClassVar[str] = "PersonalisedBudgetDistribution"

    def _rule(self, own: CustomerClass, n_steps: int) -> PublicationRule:
        budget = WindowBudget(GRAINS, own.window_length, 0, n_steps, ())
        return Halving(budget, GRAINS, self._fewest(own, GRAINS))


class PersonalisedBudgetAbsorption(Personalised):
    """PBA: a publication takes the equal shares that each class left unused, and as many that follow.

    No class is left out while it pays back: the step is held until all of them have a share. Of the authors'
    three ways to wait it is that of the class that waits longest. What we changed: a class pays as many
    shares as the threshold costs it, which may be fewer than it offered.

    Parameters, errors and source: as `Personalised`.
    """

    name: ClassVar[str] = "PersonalisedBudgetAbsorption"

    def _rule(self, own: CustomerClass, n_steps: int) -> PublicationRule:
        window = own.window_length
        budget = WindowBudget(window, window, 0, n_steps, ())
        return Absorption(budget, window, self._fewest(own, window), 0, 0)
