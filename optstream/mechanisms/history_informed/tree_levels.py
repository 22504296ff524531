"""What the levels of a tree measure: common blocks, for which all levels together have headroom."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from optstream.errors import ParameterError
from optstream.mechanisms.history_informed.history_informed import NAME, PARTS, HistoryInformed
from optstream.mechanisms.history_informed.small_counts import small_blocks
from optstream.mechanisms.history_informed.tree_choice import choose_level_shares, choose_plan_blocks
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.rules.headroom import Layer, layers_with_headroom
from optstream.stream import AggregationTree

Levels = tuple[tuple[int, HistoryInformed], ...]
"""Measured levels and their mechanisms, root first."""


def chosen_shares(pattern: HistoryInformed, tree: AggregationTree, wanted: str) -> tuple[Fraction, ...]:
    """Return the level shares that the model chooses. Privacy: none; public figures alone.

    Args:
        pattern: Made with the whole stream's model.
        tree: The hierarchy.
        wanted: The word for it, "model".

    Returns:
        One share for each level.

    Raises:
        ParameterError: Another word, or no public scale.
    """
    if wanted != "model" or pattern.figures.relative_noise is None:
        raise ParameterError(
            'level_shares of HistoryInformedTree must be a list of shares, or "model" beside a public '
            f"`scale`; got {wanted!r}" + ("" if wanted != "model" else " without a scale")
        )
    return choose_level_shares(tree, pattern.figures)


def with_the_same_blocks(
    levels: Levels,
    tree: AggregationTree,
    pattern: HistoryInformed,
    shares: tuple[Fraction, ...],
    small: int | None,
) -> Levels:
    """Return the levels' mechanisms with the blocks of the tree's plan. Privacy: none; public figures alone.

    Args:
        levels: Each like the pattern, with its part of epsilon.
        tree: The hierarchy.
        pattern: Made with the whole stream's model.
        shares: Of epsilon, one for each level.
        small: The level of small counts, with blocks of its own; None without.

    Returns:
        The same levels. What is learned, covariates among it, is the tree's and no level's.
    """
    count, length = pattern.blocks.n_blocks, pattern.blocks.length
    if pattern.figures.relative_noise is not None:
        count, length = choose_plan_blocks(tree, pattern.figures, shares)
    blocks = {level: (count, length) for level, _ in levels}
    if small is not None:
        blocks[small] = small_blocks(pattern.model.window_length)
    return tuple(
        (
            level,
            replace(
                own,
                n_blocks=blocks[level][0],
                block_length=blocks[level][1],
                relearn_days=0,
                covariates=(),
            ),
        )
        for level, own in levels
    )


def states_with_parts(
    sets: Sequence[Levels],
    states: Mapping[str, Any],
    others: Sequence[Spend],
    model: PrivacyModel,
    period: range,
) -> dict[str, Any]:
    """Return the levels' states, each told which blocks are measured: one choice for the tree (Lemma 13).

    A level that looked at its own past alone would not see what another level, or another plan's shares, has
    spent: two that each have headroom may have none together. Nor would the levels that share their blocks
    see what a level of small counts takes beside them in the same night.

    Args:
        sets: The measured levels, those together that are measured at the same blocks.
        states: Of the levels, by their number.
        others: What other periods spent near this one, on any level.
        model: The whole stream's.
        period: Running indices of its steps.

    Returns:
        A state for each measured level.
    """
    chosen = layers_with_headroom(
        [_layer(levels, period) for levels in sets], period.start, others, model.window_length, model.epsilon
    )
    return {
        str(level): {
            "mechanism": NAME,
            **(states.get(str(level)) or {}),
            PARTS: [[part.start, part.stop] for (part,) in groups],
        }
        for levels, groups in zip(sets, chosen, strict=True)
        for level, _ in levels
    }


def _layer(levels: Levels, period: range) -> Layer:
    """Return what levels measure at common blocks: every part by itself, at what they charge together."""
    parts = levels[0][1].blocks.parts(period.start, len(period))
    return [(part,) for part in parts], sum((own.unit_charge for _, own in levels), Fraction(0))
