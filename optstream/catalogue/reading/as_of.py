"""Published rows in the hierarchy of another day: values are added up or left out, never divided."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from optstream.catalogue.statements.count_bands import band_columns
from optstream.catalogue.statements.standard_errors import error_columns
from optstream.errors import PublicationError
from optstream.stream import AggregationTree, DatedHierarchy
from optstream.stream.hierarchy.tree_map import TreeMap


class Made(NamedTuple):
    """A node of the wanted tree on a day: the published nodes that add up to it, one or several."""

    node: str
    parent: str | None
    level: int
    sources: tuple[str, ...]


def made_of(hierarchy: DatedHierarchy, wanted: date, day: date) -> tuple[Made, ...]:
    """Return what of the tree of one day can be told of another day, in the tree's order.

    A node is the same customers' on both days if it holds the same units: those that were split, merged or
    moved within it are the same together. A unit that had no readings on the day adds nothing to those above
    it. Nodes that the day's rows do not add up to are left out. wanted: the day whose tree is asked for. day:
    the day whose rows are there.
    """
    tree, own = hierarchy.tree_of(wanted), hierarchy.tree_of(day)
    below = _leaves_below(tree)
    by_leaves = {leaves: node for node, leaves in reversed(_leaves_below(own).items())}
    between = hierarchy.map_between(min(wanted, day), max(wanted, day))
    find = _forward if day >= wanted else _backward
    found = []
    for (node, parent), level in zip(tree.parents_by_name(), tree.depths.tolist(), strict=True):
        leaves = find(between, below[node])
        if leaves:
            # the node that is published of just these leaves, if any: its errors are known
            sources = (by_leaves[leaves],) if leaves in by_leaves else tuple(sorted(leaves))
            found.append(Made(node, parent, level, sources))
    return tuple(found)


def rows_as_of(
    rows: pl.DataFrame, hierarchy: DatedHierarchy | None, wanted: date, value: str
) -> pl.DataFrame:
    """Return published rows in the tree of one day: a row for each of its nodes at each step of each day that
    can be told.

    A node that is one published node has its row; of several the values are added up, and errors and bands
    are null, for how the errors hang together is not in the rows. hierarchy: None where it never changed.
    Raises PublicationError where a day's nodes are not those of its tree.
    """
    if hierarchy is None or rows.is_empty():
        return rows
    parts, made = [], dict[str, tuple[Made, ...]]()
    for (day,), own in rows.group_by("date", maintain_order=True):
        assert isinstance(day, date)
        nodes = hierarchy.tree_of(day).nodes
        # every node at every step: a sum that lacks one would look like any other
        if set(own["node"]) != set(nodes) or own.height != len(nodes) * own["step"].n_unique():
            raise PublicationError(
                f"the nodes of {day} are not those that hierarchy.parquet has for it; `optstream report` "
                "makes that anew"
            )
        tree = hierarchy.hash_of(day)
        if tree not in made:
            made[tree] = made_of(hierarchy, wanted, day)
        parts.append(_day_as_of(own, made[tree], value))
    return pl.concat(parts).select(rows.columns).sort("date", "step", "node")


def _day_as_of(rows: pl.DataFrame, made: Sequence[Made], value: str) -> pl.DataFrame:
    sources = pl.DataFrame(
        [
            (one.node, one.parent, one.level, source, len(one.sources))
            for one in made
            for source in one.sources
        ],
        schema={"as_of": pl.String, "above": pl.String, "depth": pl.Int32, "node": pl.String, "n": pl.Int64},
        orient="row",
    )
    errors = [name for name in (*error_columns(value), *band_columns(value)) if name in rows.columns]
    joined = sources.join(rows, on="node", how="inner")
    alone = pl.col("n").first() == 1
    summed = joined.group_by("as_of", "step", maintain_order=True).agg(
        pl.col("date", "timestamp", "revision", "vintage").first(),
        pl.col("above").first().alias("parent"),
        pl.col("depth").first().alias("level"),
        pl.col(value).sum(),
        *(pl.when(alone).then(pl.col(name).first()).alias(name) for name in errors),
    )
    return summed.rename({"as_of": "node"}).select(rows.columns)


def _leaves_below(tree: AggregationTree) -> dict[str, frozenset[str]]:
    """The leaves of each node, root first."""
    found: list[set[str]] = [set() for _ in tree.nodes]
    for index in tree.leaf_indices.tolist():
        at = index
        while at >= 0:
            found[at].add(tree.nodes[index])
            at = tree.parents[at]
    return {node: frozenset(leaves) for node, leaves in zip(tree.nodes, found, strict=True)}


def _backward(between: TreeMap, wanted: frozenset[str]) -> frozenset[str]:
    """The leaves before that leaves after are made of; none where they have but a part of one."""
    shares: dict[str, Fraction] = {}
    for leaf, parts in zip(between.after.leaves, between.leaves, strict=True):
        if leaf in wanted:
            for old, share in parts.items():
                shares[old] = shares.get(old, Fraction(0)) + share
    return frozenset(shares) if all(share == 1 for share in shares.values()) else frozenset()


def _forward(between: TreeMap, wanted: frozenset[str]) -> frozenset[str]:
    """The leaves after that leaves before have become; none where others are in them, or a part has ended."""
    shares = dict.fromkeys(wanted, Fraction(0))
    found = set()
    for leaf, parts in zip(between.after.leaves, between.leaves, strict=True):
        inside = wanted & parts.keys()
        if not inside:
            continue
        if inside != parts.keys() or leaf in between.with_new:
            return frozenset()
        found.add(leaf)
        for old in inside:
            shares[old] += parts[old]
    return frozenset(found) if all(share == 1 for share in shares.values()) else frozenset()
