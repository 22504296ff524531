"""Which steps are measured: public rules, and the sparse vector technique with its price."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.measurement.sums import check_leaves
from optstream.noise import NoiseSource
from optstream.privacy.exact import Exact, exact, make_plain, one_of, plain, round_up_to_float, whole
from optstream.privacy.rules import WindowBudget
from optstream.stream import AggregationTree, PrivatePeriod
from optstream.stream.private_period import LONGEST_IN_INT64, open_private_period

Allocation = Literal["even", "optimal"]


@dataclass(frozen=True)
class EquallySpaced:
    """`n_samples` steps at fixed residues of the running step index modulo the window.

    A public rule: choosing costs no privacy. Every window of w steps holds exactly `n_samples` of them. A
    period that starts at residue 0 and is w steps long has a point at both its ends.

    Source: OptStream, section 4.1; the fixed residues are ours (docs/privacy.md, Lemma 4).

    Args:
        n_samples: Steps of any window, at least 2.
    """

    n_samples: int

    def __post_init__(self) -> None:
        make_plain(self)

    def residues(self, window_length: int) -> tuple[int, ...]:
        """Return the sampled residues modulo w, rising. Privacy: none; a public rule."""
        whole(self.n_samples, "n_samples of EquallySpaced", 2, window_length)
        # Half up in integers; the step between points is at least 1, so no two coincide.
        gaps = self.n_samples - 1
        return tuple((2 * i * (window_length - 1) + gaps) // (2 * gaps) for i in range(self.n_samples))

    def positions(self, n_steps: int, first_step: int, window_length: int) -> tuple[int, ...]:
        """Return the sampled steps of a period, rising, counted from its start. Privacy: none; any window
        meets n_samples of its steps (Lemma 4)."""
        chosen = set(self.residues(window_length))
        return tuple(step for step in range(n_steps) if (first_step + step) % window_length in chosen)


@dataclass(frozen=True, init=False)
class L1Sampling:
    """Steps chosen where straight lines fail: greedy over noisy L1 scores, decided once for a level.

    From the last point on, the first step at which the line back to it misses the series in between by more
    than `threshold` (unit of the readings times steps, a node of the level on average) becomes a point. The
    first step is always one; after the last point the reconstruction holds its value. At most `n_samples`
    points lie in any window: a step that would exceed this is skipped.

    Source: OptStream, Algorithm 3; the window rule and the level's common decision are ours (docs/privacy.md,
    Lemmas 5 to 7). Raises ParameterError for a threshold below 0 or another allocation.

    Args:
        n_samples: The most points of any window.
        threshold: Of the score, at least 0.
        allocation: Of the sparse vector's epsilon between threshold and queries, "even" or "optimal".
    """

    n_samples: int
    threshold: Fraction
    allocation: Allocation

    def __init__(self, n_samples: int, threshold: Exact, allocation: Allocation = "even") -> None:
        n_samples, amount = plain(n_samples), exact(threshold, "threshold of L1Sampling")
        if amount < 0:
            raise ParameterError(f"threshold of L1Sampling must be at least 0; got {threshold!r}")
        one_of(allocation, "allocation of L1Sampling", ("even", "optimal"))
        for name, value in {"n_samples": n_samples, "threshold": amount, "allocation": allocation}.items():
            object.__setattr__(self, name, value)

    def points_of_period(self, n_steps: int, window_length: int) -> int:
        """Return the most points of a period: its part of a window's, rounded up. Privacy: none."""
        whole(self.n_samples, "n_samples of L1Sampling", 2, window_length)
        return min(self.n_samples, -(-self.n_samples * n_steps // window_length), n_steps)

    def longest_segment(self, n_steps: int, window_length: int) -> int:
        """Return the steps of the longest segment ever scored, or 1. Privacy: none; it bounds Lemma 6."""
        points = self.points_of_period(n_steps, window_length)
        return max(n_steps - points, 1) if points > 1 else 1


Sampling = EquallySpaced | L1Sampling


# The cost of the sparse vector technique, and its scales of noise.


@dataclass(frozen=True)
class SparseVectorScales:
    """Noise scales, in units, of the one draw on the threshold and of that on each query. The instance stops
    at `n_positive` positive answers (c in the papers)."""

    threshold: Fraction
    query: Fraction
    n_positive: int

    def loss(self, change: Fraction) -> Fraction:
        """Return epsilon when no query moves by more than `change` units, rounded up. Privacy: Lemma 5."""
        moved = math.ceil(change)
        return moved * (1 / self.threshold + 2 * self.n_positive / self.query)


def sparse_vector_scales(
    sensitivity: int, n_positive: int, epsilon: Fraction, allocation: Allocation = "even"
) -> SparseVectorScales:
    """Return the scales, rounded up, at which queries of sensitivity D (units) cost at most epsilon. "even":
    threshold 2 D / epsilon, queries 4 c D / epsilon (OptStream, Algorithm 1). "optimal": epsilon is split 1 :
    (2c)^(2/3) (Lyu, Su and Li 2017, section 4.2). Privacy: none; it prices Lemma 5."""
    ratio = Fraction(1)
    if allocation == "optimal":
        ratio = Fraction((2 * n_positive) ** (2 / 3)).limit_denominator(10**6)
    of_threshold = epsilon / (1 + ratio)
    of_queries = epsilon - of_threshold
    return SparseVectorScales(
        threshold=Fraction(round_up_to_float(sensitivity / of_threshold)),
        query=Fraction(round_up_to_float(2 * n_positive * sensitivity / of_queries)),
        n_positive=n_positive,
    )


def l1_score_change(n_changed: int, longest: int) -> Fraction:
    """Return the most that an L1 score moves when n_changed steps change, in units of alpha; no segment has
    more than `longest` steps. Privacy: Lemma 6."""
    inner = longest - 1
    if inner < 1:
        return Fraction(0)
    return max(
        ends * Fraction(inner, 2) + min(n_changed - ends, inner) for ends in range(min(2, n_changed) + 1)
    )


# Choosing a level's points by their noisy L1 scores: the sparse vector technique on integers.

AT_ONCE = 2**16
"""Numbers of one pass, whatever they are: memory would run out for some readings alone otherwise."""


@dataclass(frozen=True)
class Choice:
    """The rule for a level's points: number, threshold of the score a node, legal steps, noise scales."""

    level: int
    n_points: int
    threshold_units: int
    rule: WindowBudget
    scales: SparseVectorScales | None


def choose_level_points(
    period: PrivatePeriod, tree: AggregationTree, choices: Sequence[Choice], noise: NoiseSource
) -> dict[int, tuple[int, ...]]:
    """Return each level's chosen steps, rising, by level. Privacy: Lemma 5 for each level; levels add up."""
    check_leaves(period, tree)
    totals = tree.add_up(open_private_period(period))
    levels = ((choice, tree.levels[choice.level]) for choice in choices)
    return {
        choice.level: choose_points(totals[nodes.start : nodes.stop], choice, noise)
        for choice, nodes in levels
    }


def choose_points(exact: NDArray[np.int64], choice: Choice, noise: NoiseSource) -> tuple[int, ...]:
    """Return the chosen steps of a period, rising, decided for all nodes of a level at once. Privacy: Lemma 5
    (sparse vector) over queries whose change Lemma 6 bounds; it stops after n_points - 1 positive answers.
    Forced and forbidden steps are free (Lemma 7)."""
    n_nodes, n_steps = exact.shape
    n_points, rule, scales = choice.n_points, choice.rule, choice.scales
    free = np.flatnonzero(rule.allowed())
    if not free.size:
        return ()
    chosen = [int(free[0])]
    rule.take(chosen[0])
    if scales is None:
        # No sampling was charged, so nothing is drawn: the last steps that may be points are.
        for step in range(n_steps - (n_points - 1), n_steps):
            if rule.allowed()[step]:
                rule.take(step)
                chosen.append(step)
        return tuple(chosen)
    level_threshold = choice.threshold_units * n_nodes
    on_threshold = int(noise.discrete_laplace(float(scales.threshold), (1,))[0])
    on_queries = noise.discrete_laplace(float(scales.query), (n_steps,))
    while len(chosen) < n_points:
        last, forced = chosen[-1], n_steps - (n_points - len(chosen))
        asked = [step for step in np.flatnonzero(rule.allowed()).tolist() if last < step < forced]
        for step, score in zip(asked, _scores(exact, last, asked), strict=True):
            # score is over (step - last): compared exactly, without dividing
            if score >= (step - last) * (level_threshold + on_threshold - int(on_queries[step])):
                chosen.append(step)
                rule.take(step)
                break
        else:
            break
    return tuple(chosen)


def _scores(exact: NDArray[np.int64], first: int, ends: Sequence[int]) -> Iterator[int]:
    """Yield (b - a) times the L1 score of [a, b], summed over nodes, for a = first and each b of ends; exact,
    in memory that depends on the period's shape alone. Privacy: Lemma 6; the scores never leave this file."""
    kind = np.int64 if exact.shape[1] <= LONGEST_IN_INT64 else object
    for end in ends:
        length, score = end - first, 0
        offset = np.arange(length).astype(kind)
        n_rows = max(1, AT_ONCE // length)
        for row in range(0, len(exact), n_rows):
            values = exact[row : row + n_rows, first : end + 1].astype(kind)
            line = (length - offset) * values[:, :1] + offset * values[:, -1:]
            # Steps are added up as Python's integers: 64 bits hold the sum over nodes alone.
            score += sum(np.abs(length * values[:, :-1] - line).sum(axis=0).tolist())
        yield score
