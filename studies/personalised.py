"""Budget Distribution and Absorption for customers who have epsilons and windows of their own.

One noise serves all: customers of classes that may lose less are left out by chance.

Lemma 22. Class c of customers has ε_c in any window of w_c steps; who is in which class is public. An
answer is a count of customers, or a sum of distances of counts from noisy numbers, so one customer more or
less moves it by at most 1; noise of scale 1/θ makes it lose θ. Let customers of class c take part in it by
a draw each, with chance at most π = (e^e − 1)/(e^θ − 1) where e < θ, and for certain otherwise. Then one
who comes or goes loses at most min(e, θ). With A and B the probabilities of an outcome without and with the
customer in the sample, |ln A/B| ≤ θ; without the customer it is A, with the customer (1 − π)A + πB. So the
ratio is at most 1 + π(e^θ − 1) = e^e, and at least 1 − π(1 − e^−θ) = 1 − (e^e − 1)·e^−θ ≥ e^−e for θ ≥ e;
both move away from these bounds as π falls, so π is rounded down, to a whole part of 2^62 (the draws are
uniform integers of the secure source). ∎ Enumerated: the worst outcome loses e exactly
(`test_personalised.py`, with a plain share e/θ as control). Samples and noises of different answers are
independent, so a customer of class c loses at most the sum of what the class is charged in the window, and
the class's own `WindowBudget` and distances keep that at or below ε_c (Lemma 11). A count above its class's
public size is cut to it, which moves no count further. How long the draws take depends on raw counts, and
must stay where those are. A customer who moves from one series to another goes and comes: twice as much.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optstream.errors import ParameterError
from optstream.mechanisms.base import LARGEST_SCALE, check_noise, checked_share
from optstream.mechanisms.w_event import DISTANCE, GRAINS, HALF
from optstream.noise import NoiseSource
from optstream.privacy import StepSpend
from optstream.privacy.exact import Bounds, Exact, exact, round_up_to_float, whole
from optstream.privacy.rules import PUBLICATIONS, Absorption, Halving, PublicationRule, WindowBudget

CHANCE_UNITS = 2**62
"""Chances are whole multiples of one part of so many."""
LARGEST_EPSILON = 10**6
"""Of a class: more protects nobody, and its exponential is no number any more."""


@dataclass(frozen=True)
class CustomerClass:
    """Customers who asked for the same privacy guarantee; who is in which class is public.

    n_customers is public too, and decides how much is left out, never the guarantee.
    """

    name: str
    n_customers: int
    epsilon: Fraction
    window_length: int

    def __init__(self, name: str, n_customers: int, epsilon: Exact, window_length: int) -> None:
        amount = exact(epsilon, "epsilon of CustomerClass")
        if not 0 < amount <= LARGEST_EPSILON:
            raise ParameterError(f"epsilon of CustomerClass must lie in (0, 10^6]; got {epsilon!r}")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "epsilon", amount)
        for field, given in (("n_customers", n_customers), ("window_length", window_length)):
            object.__setattr__(self, field, whole(given, f"{field} of CustomerClass", 1))


@lru_cache(maxsize=4096)
def chance_units(epsilon: Fraction, threshold: Fraction) -> int:
    """Return the chance that a customer takes part in an answer, in parts of `CHANCE_UNITS`, rounded down.

    The most parts c with c / CHANCE_UNITS <= (e^epsilon - 1) / (e^threshold - 1). Privacy: Lemma 22.
    """
    if threshold <= epsilon:
        return CHANCE_UNITS
    low, high = Bounds(ROUND_FLOOR), Bounds(ROUND_CEILING)
    least, most = (
        bound.add(bound.exp(one), Decimal(-1)) for bound, one in ((low, epsilon), (high, threshold))
    )
    chance = low.divide(least, most)
    return max(int(low.decimal(Fraction(chance) * CHANCE_UNITS)), 0)


def squared_error(offers: Sequence[Fraction], sizes: Sequence[int], threshold: Fraction) -> float:
    """Return the mean square error of a count that leaves customers out and adds noise; free."""
    variance = left_out = 0.0
    for offer, size in zip(offers, sizes, strict=True):
        chance = chance_units(offer, threshold) / CHANCE_UNITS
        variance += size * chance * (1 - chance)
        left_out += size * (1 - chance)
    return variance + left_out**2 + 2 / float(threshold) ** 2


def best_threshold(offers: Sequence[Fraction], sizes: Sequence[int]) -> tuple[Fraction, float]:
    """Return the offered epsilon with the least error of an answer, and that error; free.

    Source: Du et al. 2025, optimal budget selection, after Jorgensen, Yu and Cormode 2015.
    """
    found = min((squared_error(offers, sizes, offer), offer) for offer in set(offers))
    return found[1], math.sqrt(found[0])


Integers = NDArray[np.int64]


def sampled(
    counts: Integers, offers: Sequence[Fraction], threshold: Fraction, noise: NoiseSource
) -> Integers:
    """Return how many customers of each series take part in one answer, (n_series,), of all classes: raw.

    counts: by class and series. offers: what each class may lose by the answer. Privacy: Lemma 22.
    """
    total = np.zeros(counts.shape[1], dtype=np.int64)
    for own, offer in zip(counts, offers, strict=True):
        chance = chance_units(offer, threshold)
        if chance == CHANCE_UNITS:
            total += own
            continue
        drawn = noise.uniform_below(np.full(int(own.sum()), CHANCE_UNITS, dtype=np.int64)) < chance
        series = np.repeat(np.arange(own.size), own)
        total += np.bincount(series[drawn], minlength=own.size)
    return total


def noisy_counts(
    counts: Integers, offers: Sequence[Fraction], threshold: Fraction, noise: NoiseSource
) -> Integers:
    """Return the noisy counts of a sample, (n_series,), too low by those who were left out.

    Privacy: Lemma 22: a customer of a class loses at most its offer, and at most the threshold.
    """
    part = sampled(counts, offers, threshold, noise)
    return part + noise.discrete_laplace(round_up_to_float(1 / threshold), part.shape)


def noisy_distance(
    counts: Integers, last: Integers, offers: Sequence[Fraction], threshold: Fraction, noise: NoiseSource
) -> int:
    """Return how far a sample of a step is from the last release, summed over the series, noisy.

    Privacy: Lemma 22: one customer moves the sum by at most 1, for `last` is noisy already.
    """
    away: int = sum(np.abs(sampled(counts, offers, threshold, noise) - last).tolist())
    return away + int(noise.discrete_laplace(round_up_to_float(1 / threshold), (1,))[0])


@dataclass(frozen=True)
class PersonalisedRelease:
    """Counts of a finite stream, (n_series, n_steps), the steps that were published, and each class's spends.

    spends: for each class what distances and publications cost one of its customers, step by step.
    """

    values: NDArray[np.float64]
    published: tuple[int, ...]
    spends: tuple[tuple[StepSpend, StepSpend], ...]


@dataclass(frozen=True)
class Personalised(ABC):
    """Counts of customers by classes, of whom each keeps the epsilon of its class in windows of its class.

    One noise serves all: customers of classes that may lose less take part with a chance that makes up for it
    (Lemma 22). One customer counts at most once at a step, in one series.

    Source: Du, Cheng, Chen, Shen, Lin and Xi 2025, Infinite Stream Estimation under Personalized w-Event
    Privacy (PVLDB 18(6)); the sampling: Jorgensen, Yu and Cormode 2015.
    """

    classes: tuple[CustomerClass, ...]
    distance_share: Fraction = HALF
    name: ClassVar[str]

    def __post_init__(self) -> None:
        share = checked_share(self.distance_share, f"distance_share of {self.name}")
        object.__setattr__(self, "distance_share", share)
        object.__setattr__(self, "classes", tuple(self.classes))
        names = [one.name for one in self.classes]
        if not names or len(set(names)) < len(names):
            raise ParameterError(f"classes of {self.name} must be one or more, each with a name of its own")

    def release(self, counts: ArrayLike, *, noise: NoiseSource) -> PersonalisedRelease:
        """Release counts, (n_classes, n_series, n_steps); each class loses at most its epsilon in a window.

        A count outside 0 and its class's public size is cut to them, which moves it no further than before.
        Raises ParameterError for another shape, and where counts are no integers.
        """
        noise = check_noise(noise)
        array = np.asarray(counts)
        if array.ndim != 3 or len(array) != len(self.classes) or not array.size:
            wanted = f"({len(self.classes)} classes, series, steps)"
            raise ParameterError(f"counts of {self.name} must have the shape {wanted}; got {array.shape}")
        if not np.issubdtype(array.dtype, np.integer):
            raise ParameterError(f"counts of {self.name} must be integers; got {array.dtype}")
        sizes, (_, n_series, n_steps) = [one.n_customers for one in self.classes], array.shape
        cut = np.clip(array.astype(np.int64), 0, np.array(sizes)[:, None, None])
        asking = [one.epsilon * self.distance_share / one.window_length for one in self.classes]
        asked_at, _ = best_threshold(asking, sizes)
        rules = [self._rule(one, n_steps) for one in self.classes]
        last, published = np.zeros(n_series, dtype=np.int64), list[int]()
        values = np.zeros((n_series, n_steps))
        paid = np.zeros((2, len(rules), n_steps), dtype=object)
        for step in range(n_steps):
            grains = [rule.offer(step) for rule in rules]
            if all(grains):
                present = cut[:, :, step]
                offers = self._epsilons(grains, rules)
                threshold, error = best_threshold(offers, sizes)
                paid[0, :, step] = [min(own, asked_at) for own in asking]
                if noisy_distance(present, last, asking, asked_at, noise) > n_series * error:
                    last = noisy_counts(present, offers, threshold, noise)
                    published.append(step)
                    used = [
                        self._used(*one, threshold) for one in zip(self.classes, grains, rules, strict=True)
                    ]
                    for rule, own in zip(rules, used, strict=True):
                        rule.publish(step, own)
                    paid[1, :, step] = self._epsilons(used, rules)
            values[:, step] = last
        spends = tuple((_spend(DISTANCE, a), _spend(PUBLICATIONS, b)) for a, b in zip(*paid, strict=True))
        return PersonalisedRelease(values, tuple(published), spends)

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
    """PBD: a publication costs each class half of the remainder of its own window."""

    name: ClassVar[str] = "PersonalisedBudgetDistribution"

    def _rule(self, own: CustomerClass, n_steps: int) -> PublicationRule:
        budget = WindowBudget(GRAINS, own.window_length, 0, n_steps, ())
        return Halving(budget, GRAINS, self._fewest(own, GRAINS))


class PersonalisedBudgetAbsorption(Personalised):
    """PBA: a publication takes the equal shares that each class left unused, and as many that follow.

    The step is held until all classes have a share. What we changed: a class pays as many shares as the
    threshold costs it, which may be fewer than it offered.
    """

    name: ClassVar[str] = "PersonalisedBudgetAbsorption"

    def _rule(self, own: CustomerClass, n_steps: int) -> PublicationRule:
        window = own.window_length
        budget = WindowBudget(window, window, 0, n_steps, ())
        return Absorption(budget, window, self._fewest(own, window), 0, 0)
