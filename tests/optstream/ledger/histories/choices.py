"""What a history chooses among: hierarchies, days, mechanisms, guarantees, shares and fates."""

from fractions import Fraction

from hypothesis import strategies as st

from optstream.mechanisms import (
    BudgetAbsorption,
    BudgetDistribution,
    Fast,
    Fourier,
    Gaussian,
    Hierarchical,
    HistoryInformed,
    HistoryInformedTree,
    Laplace,
    PeGaSus,
    Sample,
)  # fmt: skip
from optstream.stream import AggregationTree, Lattice
from tests.optstream.estimation.lattices import product

TREES = {
    "cells": product(2, 2),
    "one leaf": AggregationTree.from_parents({"root": None}),
    "three leaves": AggregationTree.from_parents({"root": None, "a": "root", "b": "root", "c": "root"}),
}
SHARES = {"cells": ("0", "0", "1/2", "1/2"), "one leaf": ("1",), "three leaves": ("1/2", "1/2")}
"""Of epsilon by level; of cells, half for them and half for their margin."""
MARGIN = 3
"""The number of the margin, which no level of the other hierarchies has."""
CHANGING = tuple(name for name in TREES if not isinstance(TREES[name], Lattice))
"""Hierarchies that change on a day: beside a margin none does."""
DAYS = (0, 4, 8, 13, 16, 20, 25, 29, 33, 36)
"""First steps: days of three, four and five steps."""


def joint_blocks(model):
    """Blocks of one or two steps in groups of joint noise, as many as a window holds."""
    length = 2 if model.window_length > 3 else 1
    return HistoryInformed(
        model, model.window_length // length, length, history_days=3, noise="joint", group_size="3/2",
        period_lengths=(3, 4, 5), declared_leaves=1,
    )  # fmt: skip


MECHANISMS = {
    "Laplace": Laplace,
    "Sample": Sample,
    "PeGaSus": PeGaSus,
    "BudgetDistribution": BudgetDistribution,
    "BudgetAbsorption": BudgetAbsorption,
    "Fast": lambda model: Fast(model, n_samples=min(2, model.window_length)),
    "Fourier": lambda model: Fourier(model, n_coefficients=1, shortest_period=3),
    "JointLaplace": lambda model: Laplace(model, "joint", (3, 4, 5), declared_leaves=1),
    "JointBlocks": joint_blocks,
}
JOINT = ("JointLaplace", "JointBlocks")
BY_CURRENCY = {"epsilon": ("0", MECHANISMS), "rho": ("1/1000000", {"Gaussian": Gaussian})}
"""The delta of every guarantee, and what is released under it."""
FATES = ("published", "published", "published", "redrawn", "died thrice", "raised", "given up", "reserved")
GUARANTEE = {
    "epsilon": ("1/4", "1", "3"),
    "window_length": (2, 3, 5, 8),
    "alpha": ("1", "2", "3", "10"),
    "unit": (("customer", 1), ("roaming", 1), ("roaming", 3)),
}
"""What all streams of the budget agree on; what a stream has of its own follows."""
RATIOS = ("1", "1", "3", "1/2", "7/3")
"""Of a stream's alpha to the budget's; other than 1, its resolution is its own, too."""
CHOSEN = (None, Fraction(1, 5), Fraction(1, 2), Fraction(3, 5))
"""Shares of epsilon that public facts chose; None for one that is written."""
GUARANTEES = st.fixed_dictionaries({name: st.sampled_from(legal) for name, legal in GUARANTEE.items()})
PRODUCT = st.tuples(st.sampled_from(RATIOS), st.sampled_from(tuple(TREES)), st.sampled_from(CHOSEN))


def on_tree(pattern, name):
    """A pattern with its part of epsilon for each level."""
    made = HistoryInformedTree if isinstance(pattern, HistoryInformed) else Hierarchical
    return made(pattern, TREES[name], SHARES[name])
