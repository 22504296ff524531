"""Choosing a level's points by their noisy L1 scores: the sparse vector technique on integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.linear import check_leaves
from optstream.noise import NoiseSource
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.privacy.sparse_vector import SparseVectorScales
from optstream.stream import AggregationTree, PrivatePeriod
from optstream.stream.private_period import open_private_period
from optstream.stream.quantise import LONGEST_IN_INT64

AT_ONCE = 2**16
"""Numbers of one pass, whatever they are: memory would run out for some readings alone otherwise."""


@dataclass(frozen=True)
class Choice:
    """How a level's points are to be chosen.

    Attributes:
        level: Depth in the tree.
        n_points: How many are wanted.
        threshold_units: Of the score, a node.
        rule: Which steps may be taken at all.
        scales: Of the sparse vector; None where nothing is ever asked.
        take_remaining: Whether the last steps are taken unasked when only enough for n_points are left.
    """

    level: int
    n_points: int
    threshold_units: int
    rule: WindowBudget
    scales: SparseVectorScales | None
    take_remaining: bool


def choose_level_points(
    period: PrivatePeriod, tree: AggregationTree, choices: Sequence[Choice], noise: NoiseSource
) -> dict[int, tuple[int, ...]]:
    """Return each level's chosen steps of the period, rising, by level. Raises ParameterError where the
    leaves do not fit.

    Privacy: Lemma 5 for each level, whose price is the period spend of the same scales; levels add up.
    """
    check_leaves(period, tree)
    totals = tree.add_up(open_private_period(period))
    levels = ((choice, tree.levels[choice.level]) for choice in choices)
    return {
        choice.level: choose_points(totals[nodes.start : nodes.stop], choice, noise)
        for choice, nodes in levels
    }


def choose_points(exact: NDArray[np.int64], choice: Choice, noise: NoiseSource) -> tuple[int, ...]:
    """Return the chosen steps of a period, rising, decided for all nodes of a level at once; none where the
    rule lets no step in.

    Privacy: Lemma 5 (sparse vector) over queries whose change Lemma 6 bounds (L1 scores, summed over the
    level's nodes); it stops after n_points - 1 positive answers. What is forced or forbidden depends on
    earlier answers and public facts alone, hence costs nothing (Lemma 7).

    Args:
        exact: The level's values, (n_nodes, n_steps), in units.
        choice: How they are to be chosen.
        noise: Where the randomness comes from.
    """
    n_nodes, n_steps = exact.shape
    n_points, rule, scales = choice.n_points, choice.rule, choice.scales
    free = np.flatnonzero(rule.allowed())
    if not free.size:
        return ()
    chosen = [int(free[0])]
    rule.take(chosen[0])
    if scales is None:
        # Nothing was charged for asking, so nothing is asked: the last steps that may be points are.
        return (*chosen, *_forced(rule, n_steps - (n_points - 1), n_steps))
    level_threshold = choice.threshold_units * n_nodes
    on_threshold = int(noise.discrete_laplace(float(scales.threshold), (1,))[0])
    on_queries = noise.discrete_laplace(float(scales.query), (n_steps,))
    while len(chosen) < n_points:
        last, forced = chosen[-1], n_steps - (n_points - len(chosen))
        allowed = rule.allowed()
        asked = [step for step in range(last + 1, forced) if allowed[step]]
        found = next(
            (
                step
                for step, score in zip(asked, _scores(exact, last, asked), strict=True)
                # score is over (step - last): compared exactly, without dividing
                if score >= (step - last) * (level_threshold + on_threshold - int(on_queries[step]))
            ),
            None,
        )
        if found is None:
            if choice.take_remaining:
                chosen += _forced(rule, forced, n_steps)
            break
        chosen.append(found)
        rule.take(found)
    return tuple(chosen)


def _forced(rule: WindowBudget, start: int, n_steps: int) -> list[int]:
    """Return the remaining steps, as far as the rule lets them in. Privacy: none; a public rule (Lemma 7)."""
    taken = []
    for step in range(start, n_steps):
        if rule.allowed()[step]:
            rule.take(step)
            taken.append(step)
    return taken


def _scores(exact: NDArray[np.int64], first: int, ends: Sequence[int]) -> Iterator[int]:
    """Yield (b - a) times the L1 score of [a, b], summed over nodes, for a = first and each b of ends.

    Exact integers, some nodes at a time: at a step values add up to 2^50 units at most, what they are away
    from their lines to (b - a) * 2^51. How they are counted, and in which memory, is a function of the
    period's shape alone: a reading must not decide whether a draw comes to its end.

    Privacy: Lemma 6 bounds how far a score moves; the scores themselves never leave this file.
    """
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
