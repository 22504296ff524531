"""Choosing a level's points by their noisy L1 scores: the sparse vector technique on integers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optstream.measurement.linear import check_leaves
from optstream.noise import NoiseSource
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.privacy.sparse_vector import SparseVectorScales
from optstream.stream import AggregationTree, PrivatePeriod
from optstream.stream.private_period import open_private_period

LARGEST_INT64 = 2**62


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
        start = max(n_steps - (n_points - 1), chosen[0] + 1)
        return (*chosen, *_forced(rule, start, n_steps))
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
                chosen += _forced(rule, max(forced, last + 1), n_steps)
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


def _scores(exact: NDArray[np.int64], first: int, ends: Sequence[int]) -> list[int]:
    """Return (b - a) times the L1 score of [a, b], summed over nodes, for a = first and each b of ends.

    Exact integers in one vectorised pass over nodes, ends and inner steps.

    Privacy: Lemma 6 bounds how far a score moves; the scores themselves never leave this file.
    """
    if not ends:
        return []
    steps = np.arange(first, ends[-1] + 1)
    largest = int(np.max(np.abs(exact[:, first : ends[-1] + 1])))
    fits = 4 * largest * steps.size**2 * exact.shape[0] < LARGEST_INT64
    values = exact[:, first : ends[-1] + 1].astype(np.int64 if fits else object)
    length = (np.array(ends) - first).astype(values.dtype)[:, None]
    offset = np.arange(steps.size).astype(values.dtype)[None, :]
    at_start, at_end = values[:, :1, None], values[:, [end - first for end in ends], None]
    distance = np.abs(length * values[:, None, :] - (length - offset) * at_start - offset * at_end)
    inner = offset < length
    return [int(score) for score in (distance * inner).sum(axis=(0, 2))]
