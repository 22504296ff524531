"""Blocks measured on a tree, carried over a change of it by a public, linear map of noisy sums. Shares that
were guessed, of a part or a new unit, are learned again from the blocks since. Privacy: none
(docs/privacy.md, Lemma 18)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optstream.history.blocks import BlockHistory
from optstream.history.filter import Histories
from optstream.stream import AggregationTree
from optstream.stream.changes import TreeMap
from optstream.stream.private_period import ORDER

GUESSED = "guessed"
"""Key of a state: the leaves whose share of the days before was not measured, and since when each is."""
SPLIT_DEVIATION, ADDED_DEVIATION = 0.5, 1.0
"""How far, relative, the share of a part may lie from the public one; of a new unit from a typical one's."""


def carried_levels(levels: Mapping[str, Any], between: TreeMap) -> dict[str, Any]:
    """Return the levels' states for the tree that follows, in the order of its nodes; a history is left out
    where it does not exist for all of them."""
    histories = {
        int(level): BlockHistory.from_document(own["history"])
        for level, own in levels.items()
        if own and own.get("history")
    }
    found = {}
    for level, own in levels.items():
        history = _carried(histories, int(level), between) if int(level) in histories else None
        kept = {key: value for key, value in (own or {}).items() if key != "history"}
        if any(
            len(nodes) > 1
            for tree in (between.before, between.after)
            for nodes in tree.levels[int(level) :][:1]
        ):
            # what customers of one node share noise with may be another node now (Lemma 18)
            kept.pop(ORDER, None)
        found[level] = kept if history is None else {**kept, "history": history.to_document()}
    return found


def guesses(between: TreeMap, first_step: int) -> list[dict[str, Any]]:
    """Return the leaves whose size on earlier days was not measured, JSON-ready: level and row, those that
    each has a share of, the share, its uncertainty, and the rows above that lack it."""
    tree, found = between.after, []
    level_of, row_of = _places(tree)
    made_of = dict(zip(tree.leaves, between.leaves, strict=True))
    # of single parts alone: what was merged with a neighbour since has a row that holds more than its share
    shares = {
        leaf: (old, float(share))
        for leaf, parts in made_of.items()
        for old, share in parts.items()
        if len(parts) == 1 and share < 1
    }
    past = {leaf for leaf, parts in made_of.items() if parts}
    for leaf, parts in made_of.items():
        above: list[str] = []
        if leaf in shares:
            old, own = shares[leaf]
            siblings = [one for one in shares if shares[one][0] == old and level_of[one] == level_of[leaf]]
            share = own / sum(shares[one][1] for one in siblings)
        elif not parts:
            parent = tree.parents[tree.nodes.index(leaf)]
            while parent >= 0:  # the nearest first
                above.append(tree.nodes[parent])
                parent = tree.parents[parent]
            # the leaves with a past that stand nearest to a new one, on its level
            families = (np.array(tree.leaves)[tree.leaves_in([node]) > 0].tolist() for node in above)
            alike = (
                [one for one in family if one in past and level_of[one] == level_of[leaf]]
                for family in families
            )
            siblings = next(filter(None, alike), [])
            share = 1.0 / max(len(siblings), 1)
        else:
            continue
        if len(siblings) > bool(parts):
            found.append(
                {
                    "at": [level_of[leaf], row_of[leaf]],
                    "since": first_step,
                    "beside": [row_of[one] for one in siblings],
                    "share": share,
                    "doubt": SPLIT_DEVIATION if parts else ADDED_DEVIATION,
                    "parts": bool(parts),
                    "above": [[level_of[node], row_of[node]] for node in above],
                }
            )
    return found


def refined(guessed: Sequence[Mapping[str, Any]], histories: Histories) -> dict[int, BlockHistory]:
    """Return the blocks with the rows of `guessed` leaves on earlier days corrected by the later blocks."""
    if not guessed:
        return dict(histories)
    found = {level: replace(one, sums=one.sums.astype(np.float64)) for level, one in histories.items()}
    shares = [_share(one, histories) for one in guessed]
    # the parts of one unit, whose shares add up to 1; a new unit is by itself
    groups = [(one["at"][0], *(one["beside"] if one["parts"] else one["at"])) for one in guessed]
    wholes = dict.fromkeys(groups, 0.0)
    for group, share in zip(groups, shares, strict=True):
        wholes[group] += share
    for one, share, group in zip(guessed, shares, groups, strict=True):
        level, row = one["at"]
        if level not in found:
            continue
        # where noise leaves no part anything, or readings are negative, the guesses stand: they add up to 1
        whole = wholes[group]
        of_all = share if not one["parts"] else share / whole if whole > 0 else float(one["share"])
        was = histories[level].starts < one["since"]
        sums = of_all * histories[level].sums[one["beside"]][:, was].sum(axis=0)
        found[level].sums[row, was] = sums
        for upper, place in one["above"]:
            if upper in found and _same_blocks(found[upper], found[level]):
                found[upper].sums[place, was] += sums
    return found


def _share(one: Mapping[str, Any], histories: Histories) -> float:
    """Return the share of a leaf in its siblings, by the blocks since the change, joined with the guess."""
    level, row = one["at"]
    guess = float(one["share"])
    if level not in histories:
        return guess
    history = histories[level]
    since = history.starts >= one["since"]
    weight = 1.0 / history.scales[since] ** 2
    own, siblings = history.sums[row, since], history.sums[one["beside"]][:, since].sum(axis=0)
    whole = float(siblings @ weight)
    if whole == 0:  # nothing was measured, or nothing was there
        return guess
    measured = float(own @ weight) / whole
    # noise of own and of its siblings, over the siblings' sum
    noise = 2.0 * float(weight.sum()) * (1 + len(one["beside"]) * measured**2) / whole**2
    variance = (float(one["doubt"]) * guess) ** 2
    return max((measured / noise + guess / variance) / (1.0 / noise + 1.0 / variance), 0.0)


def _places(tree: AggregationTree) -> tuple[dict[str, int], dict[str, int]]:
    """Return the level of each node, and its row within that."""
    levels = dict(zip(tree.nodes, tree.depths.tolist(), strict=True))
    return levels, {tree.nodes[index]: row for level in tree.levels for row, index in enumerate(level)}


def _carried(histories: Histories, level: int, between: TreeMap) -> BlockHistory | None:
    """Return one level's blocks at the current nodes; None where they do not follow from the old ones."""
    before, after = between.before, between.after
    if level >= after.n_levels:
        return None
    level_of, row_of = _places(before)
    base, nodes = histories[level], after.levels[level]
    sums = np.zeros((len(nodes), base.n_blocks))
    for row, index in enumerate(nodes):
        for old, weight in _made_of(between, after.nodes[index], histories, level_of).items():
            source = histories.get(level_of[old])
            if source is None or not _same_blocks(source, base):
                return None
            sums[row] += weight * source.sums[row_of[old]]
    return replace(base, sums=np.round(sums))


def _made_of(
    between: TreeMap, node: str, measured: Histories, level_of: Mapping[str, int]
) -> dict[str, float]:
    """Return the old nodes whose sums add up to a current node, each with its weight."""
    weights = defaultdict[str, float](float)
    for inside, parts in zip(between.after.leaves_in([node]).tolist(), between.leaves, strict=True):
        for old, share in parts.items() if inside else ():
            weights[old] += float(share)
    same = between.nodes.get(node)
    if same is None or level_of[same] not in measured:
        return weights
    for old, inside in zip(between.before.leaves, between.before.leaves_in([same]).tolist(), strict=True):
        if inside:
            weights[old] -= 1.0
    rest = {old: weight for old, weight in weights.items() if abs(weight) > 1e-12}
    return {same: 1.0 + rest.pop(same, 0.0), **rest}


def _same_blocks(one: BlockHistory, other: BlockHistory) -> bool:
    return np.array_equal(one.starts, other.starts) and np.array_equal(one.lengths, other.lengths)
