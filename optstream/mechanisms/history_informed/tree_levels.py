"""What the levels of a tree measure: common blocks, for which all levels together have headroom."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from optstream.errors import ParameterError
from optstream.mechanisms.history_informed.block_choice import Figures
from optstream.mechanisms.history_informed.block_plan import NAME, PARTS
from optstream.mechanisms.history_informed.history_informed import HistoryInformed
from optstream.mechanisms.history_informed.small_counts import small_blocks
from optstream.mechanisms.history_informed.tree_choice import choose_level_shares, choose_plan_blocks
from optstream.privacy import PrivacyModel, Spend
from optstream.privacy.joint_spend import groups_to_document
from optstream.privacy.rules.headroom import Layer, layers_with_headroom
from optstream.stream import AggregationTree

Levels = tuple[tuple[int, HistoryInformed], ...]
"""Measured levels and their mechanisms, root first."""


def chosen_shares(pattern: HistoryInformed, tree: AggregationTree, wanted: str) -> tuple[Fraction, ...]:
    """Return the shares that the model chooses, one for each level, where `wanted` is "model". pattern: made
    with the whole stream's model. Raises ParameterError for another word, or without a public scale. Privacy:
    none; public figures alone.
    """
    figures = tree_figures(pattern, tree)
    if wanted != "model" or figures.relative_noise is None:
        raise ParameterError(
            'level_shares of HistoryInformedTree must be a list of shares, or "model" beside a public '
            f"`scale`; got {wanted!r}" + ("" if wanted != "model" else " without a scale")
        )
    return choose_level_shares(tree, figures)


def tree_figures(pattern: HistoryInformed, tree: AggregationTree) -> Figures:
    """Return what blocks and shares are chosen by, and errors expected by: at which levels noise may be joint
    included. Privacy: none; public figures alone.

    pattern: made with the whole stream's model. Raises ParameterError where joint noise was asked for at a
    level that may not have it.
    """
    if pattern.figures.relative_noise is None:
        return pattern.figures
    terms = pattern.joint_terms
    joint = tuple(replace(terms, n_nodes=len(level)).allowed(pattern.model) for level in tree.levels)
    return pattern.with_joint(pattern.figures, joint)


def with_the_same_blocks(
    levels: Levels,
    tree: AggregationTree,
    pattern: HistoryInformed,
    shares: tuple[Fraction, ...],
    small: int | None,
) -> Levels:
    """Return the levels' mechanisms, each with its part of epsilon, with the blocks of the tree's plan.

    pattern: made with the whole stream's model. shares: of epsilon, one for each level. small: the level of
    small counts, with blocks of its own.

    What is learned, covariates among it, is the tree's and no level's. Privacy: none; public figures alone.
    """
    count, length = pattern.blocks.n_blocks, pattern.blocks.length
    figures = tree_figures(pattern, tree)
    if figures.relative_noise is not None:
        count, length = choose_plan_blocks(tree, figures, shares)
    common: dict[str, Any] = {"n_blocks": count, "block_length": length, "relearn_days": 0, "covariates": ()}
    found = [(level, replace(own, **common) if level != small else _small(own)) for level, own in levels]
    sizes = {own.joint_groups.size for _, own in found if own.joint_groups is not None}
    if len(sizes) > 1:  # where noise is small beside the grid some level may have smaller groups alone
        found = [
            (level, replace(own, group_size=min(sizes)) if level != small else own) for level, own in found
        ]
    return tuple(found)


def _small(own: HistoryInformed) -> HistoryInformed:
    """Return the mechanism of small counts: a block of a window has no other to share noise with."""
    count, length = small_blocks(own.model.window_length)
    return replace(
        own,
        n_blocks=count,
        block_length=length,
        relearn_days=0,
        covariates=(),
        noise="laplace",
        group_size=None,
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

    sets: the measured levels, those together that are measured at the same blocks. states: by level. others:
    what other periods spent near this one, on any level. model: the whole stream's. period: running indices
    of its steps.
    """
    chosen = layers_with_headroom(
        [_layer(levels, period) for levels in sets],
        period.start, others, model.window_length, model.pure_epsilon,
    )  # fmt: skip
    return {
        str(level): {
            "mechanism": NAME,
            **(states.get(str(level)) or {}),
            PARTS: groups_to_document(groups),
        }
        for levels, groups in zip(sets, chosen, strict=True)
        for level, _ in levels
    }


def _layer(levels: Levels, period: range) -> Layer:
    """Return what levels measure at common blocks: every group by itself, at what they charge together."""
    joint = [own for _, own in levels if own.joint_groups is not None]
    apart = [own for _, own in levels if own.joint_groups is None]
    groups = (joint or apart)[0].groups(len(period), period.start)
    prices = (sum((own.unit_charge for own in kind), Fraction(0)) for kind in (joint, apart))
    return Layer(groups, *prices)
