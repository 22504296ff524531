"""From a run's releases to a few numbers whose tails distinguish the two sides.

Everything here is learned from runs that serve no other purpose, so any function will do: a poor one makes
the bound on epsilon weaker, never wrong.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv

from studies.audit.histories import Outputs

Floats = NDArray[np.float64]

MOST_SINGLE = 24
"""How many single outputs are looked at, those first that differ most between the sides."""

FEWEST_SEEN = 10
"""A number that fewer runs released says too little about itself to be learned from."""

_HASH_BASE = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Statistics:
    """Learned functions of one run's output, from `learn`."""

    medians: Floats
    scales: Floats
    keys: NDArray[np.uint64]
    log_ratios: Floats
    single: tuple[int, ...]

    @property
    def families(self) -> tuple[str, ...]:
        """The family of events that each column of `of` belongs to."""
        joint = ("pattern of answers", "likelihood ratio and pattern") if self.keys.size > 1 else ()
        return ("likelihood ratio", "direction", *joint, *("single output",) * len(self.single))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each column of `of`."""
        joint = self.families[: len(self.families) - len(self.single)]
        n_numbers = self.medians.shape[1]
        single = (
            f"number {column}" if column < n_numbers else f"answer {column - n_numbers}"
            for column in self.single
        )
        return (*joint, *single)

    def of(self, outputs: Outputs) -> Floats:
        """Return the statistics of each run, (n_runs, n_statistics), -inf where a number was not released."""
        numbers, (one, other) = outputs.numbers, self.scales
        ratios = np.log(one / other) + (
            np.abs(numbers - self.medians[0]) / one - np.abs(numbers - self.medians[1]) / other
        )
        ratio = np.nansum(ratios, axis=1)
        weights = (self.medians[1] - self.medians[0]) / (one * other)
        columns = [ratio, np.nansum((numbers - self.medians.mean(axis=0)) * weights, axis=1)]
        if self.keys.size > 1:
            pattern = self._pattern(outputs.answers)
            columns += [pattern, ratio + pattern]
        everything = np.concatenate([numbers, outputs.answers.astype(np.float64)], axis=1)
        single = np.nan_to_num(everything[:, list(self.single)], nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        return np.concatenate([np.stack(columns, axis=1), single], axis=1)

    def _pattern(self, answers: NDArray[np.int64]) -> Floats:
        found = _keys(answers)
        places = np.minimum(np.searchsorted(self.keys, found), self.keys.size - 1)
        return np.where(self.keys[places] == found, self.log_ratios[places], 0.0)


def learn(one: Outputs, other: Outputs) -> Statistics:
    """Learn from runs of either side what distinguishes them."""
    sides = [_locations(outputs.numbers) for outputs in (one, other)]
    medians, scales = (np.stack([side[part] for side in sides]) for part in (0, 1))
    seen = np.stack([side[2] for side in sides])
    known = seen.min(axis=0) >= FEWEST_SEEN
    medians, scales = np.where(known, medians, 0.0), np.where(known, scales, 1.0)
    gap = medians[1] - medians[0]
    floor = np.maximum(1e-6 * np.abs(gap), 1e-12)
    scales = np.maximum(scales, floor)
    fewest = np.maximum(seen.min(axis=0), 1)
    gap = gap * _kept(gap, (scales**2).sum(axis=0) / fewest)
    spread = np.log(scales[1] / scales[0])
    spread = spread * _kept(spread, 2.0 / fewest)
    middle, scale = medians.mean(axis=0), np.sqrt(scales.prod(axis=0))
    keys, log_ratios = _patterns(one.answers, other.answers)
    of_numbers = np.abs(gap) / scale + np.abs(spread)
    scores = np.concatenate([of_numbers, _differences(one.answers, other.answers)])
    telling = np.argsort(-scores, kind="stable")[:MOST_SINGLE]
    return Statistics(
        medians=np.stack([middle - gap / 2, middle + gap / 2]),
        scales=np.stack([scale * np.exp(-spread / 2), scale * np.exp(spread / 2)]),
        keys=keys,
        log_ratios=log_ratios,
        single=tuple(int(column) for column in telling if scores[column] > 0),
    )


def _locations(numbers: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return median, mean distance from it, and how often it was released, of each number."""
    seen = np.count_nonzero(~np.isnan(numbers), axis=0)
    filled = np.where(seen > 0, numbers, 0.0)
    median = np.nanmedian(filled, axis=0) if filled.size else np.zeros(numbers.shape[1])
    scale = np.nanmean(np.abs(filled - median), axis=0) if filled.size else np.ones(numbers.shape[1])
    return median, scale, seen


def _kept(estimate: Floats, variance: Floats) -> Floats:
    """Return the share of an estimate that remains when its own variance is taken off its square."""
    square = estimate**2
    share: Floats = np.maximum(0.0, 1.0 - variance / np.where(square > 0, square, np.inf))
    return share


def _keys(answers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each pattern; two that collide make a coarser event, still a legal one."""
    factors = [pow(_HASH_BASE, power, 2**64) for power in range(1, answers.shape[1] + 1)]
    keys: NDArray[np.uint64] = answers.astype(np.uint64) @ np.array(factors, dtype=np.uint64)
    return keys


def _patterns(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.uint64], Floats]:
    sides = [_keys(answers) for answers in (one, other)]
    keys, places = np.unique(np.concatenate(sides), return_inverse=True)
    counts = [
        np.bincount(part, minlength=keys.size) + 1.0 for part in np.split(places, [len(one)])
    ]  # one more than seen: a pattern seen once on one side is no proof
    return keys, np.log(counts[1] / counts[0])


def _differences(one: NDArray[np.int64], other: NDArray[np.int64]) -> Floats:
    """Return by how many deviations each answer's mean differs; 0 where another column says the same."""
    if not one.shape[1]:
        return np.empty(0)
    spread = np.sqrt(one.var(axis=0) + other.var(axis=0))
    gap = np.abs(one.mean(axis=0) - other.mean(axis=0))
    scores = np.divide(gap, spread, out=np.where(gap > 0, np.inf, 0.0), where=spread > 0)
    _, first = np.unique(np.concatenate([one, other]), axis=1, return_index=True)
    return np.where(np.isin(np.arange(scores.size), first), scores, 0.0)


# From counts to a lower bound on epsilon that holds with a stated confidence.


def clopper_pearson(hits: ArrayLike, runs: int, error: float) -> tuple[Floats, Floats]:
    """Return lower and upper limits of a probability after `hits` in `runs` independent runs."""
    counted = np.asarray(hits, dtype=np.float64)
    inner: Any = np.clip(counted, 1e-9, runs - 1e-9)  # only to keep the quantile's arguments legal
    low = np.where(counted <= 0, 0.0, betaincinv(inner, runs - inner + 1, error))
    high = np.where(counted >= runs, 1.0, betainccinv(inner + 1, runs - inner, error))
    high = np.where(counted <= 0, -np.expm1(np.log(error) / runs), high)
    low = np.where(counted >= runs, np.exp(np.log(error) / runs), low)
    return low, high


def epsilon_bound(
    likely: ArrayLike, unlikely: ArrayLike, runs: int, error: float, delta: float = 0.0
) -> Floats:
    """Return log((p - delta) / q), a lower bound on epsilon, from how often an event was seen on either side.

    p is at its lower limit and q at its upper, half the error on each; -inf for an event that was never seen.
    """
    low, _ = clopper_pearson(likely, runs, error / 2)
    _, high = clopper_pearson(unlikely, runs, error / 2)
    with np.errstate(divide="ignore"):
        bound: Floats = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return bound
