"""Counts of customers of whom some are left out by chance, so that each loses what its class may."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optstream.noise import NoiseSource
from optstream.privacy.exact import round_up_to_float
from optstream.stream import PrivatePeriod
from optstream.stream.private_period import open_private_period
from studies.personalised.personal_epsilon import CHANCE_UNITS, chance_units

Integers = NDArray[np.int64]


def counts_of(period: PrivatePeriod, step: int, sizes: Sequence[int]) -> Integers:
    """Return the customers of a step by class and series, (n_classes, n_series): raw, for this package alone.

    Privacy: Lemma 22; nothing is released. A count outside 0 and its class's size, which is public, is cut to
    them, which moves it no further than before: no reading decides how many draws are asked for.
    """
    units = open_private_period(period)[:, step].reshape(len(sizes), -1)
    cut: Integers = np.clip(units, 0, np.array(sizes, dtype=np.int64)[:, None])
    return cut


def sampled(
    counts: Integers, offers: Sequence[Fraction], threshold: Fraction, noise: NoiseSource
) -> Integers:
    """Return how many customers of each series take part in one answer, (n_series,), of all classes: raw.

    Each takes part by a draw of its own, with the chance that its class has at this threshold: what the
    answer loses of whoever takes part. counts: by class and series, (n_classes, n_series). offers: what each
    class may lose by the answer.

    Privacy: Lemma 22, with what is then answered of the result; by itself it is raw.
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
    """Return the noisy counts of a sample, (n_series,), too low by those who were left out. Arguments as
    `sampled`.

    Privacy: Lemma 22: a customer of a class loses at most its offer, and at most the threshold.
    """
    part = sampled(counts, offers, threshold, noise)
    return part + noise.discrete_laplace(round_up_to_float(1 / threshold), part.shape)


def noisy_distance(
    counts: Integers, last: Integers, offers: Sequence[Fraction], threshold: Fraction, noise: NoiseSource
) -> int:
    """Return how far a sample of a step is from the last release, (n_series,), summed over the series, noisy.
    Other arguments as `sampled`.

    Privacy: Lemma 22: one customer moves the sum by at most 1, for `last` is noisy already.
    """
    away: int = sum(np.abs(sampled(counts, offers, threshold, noise) - last).tolist())
    return away + int(noise.discrete_laplace(round_up_to_float(1 / threshold), (1,))[0])
