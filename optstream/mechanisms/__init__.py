"""Mechanisms, each loaded when its name is first used. Overriding methods without Args are
documented in `optstream.mechanisms.base`."""

from typing import Any

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

MECHANISMS = (
    "OptStream",
    "Laplace",
    "Uniform",
    "Gaussian",
    "Sample",
    "Fourier",
    "BudgetDistribution",
    "BudgetAbsorption",
    "PeGaSus",
    "Fast",
    "HistoryInformed",
)
"""Every mechanism that a configuration may name, in the order of the conformance suite."""


def mechanism_named(name: str) -> Any:
    """Return the class of a mechanism, or None for an unknown name."""
    return __getattr__(name) if name in MECHANISMS else None


def on_tree(pattern: Any, tree: Any, level_shares: Any, lower_bound: float | None = 0.0) -> Any:
    """Return a mechanism on a tree, by its `tree_class`; itself where it has a tree already."""
    if pattern.tree_class is None:
        return pattern
    return __getattr__(pattern.tree_class)(pattern, tree, level_shares, lower_bound)
