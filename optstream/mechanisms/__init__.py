"""One file or package for each mechanism, of the packages below. A name loads when it is first used.

A method that lists no arguments overrides one of `optstream.mechanisms.base` or
`optstream.mechanisms.series`, where they are listed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optstream.mechanisms.fast import Fast as Fast
    from optstream.mechanisms.fourier import Fourier as Fourier
    from optstream.mechanisms.hierarchical import Hierarchical as Hierarchical
    from optstream.mechanisms.history_informed.history_informed import HistoryInformed as HistoryInformed
    from optstream.mechanisms.history_informed.tree import HistoryInformedTree as HistoryInformedTree
    from optstream.mechanisms.laplace import Laplace as Laplace
    from optstream.mechanisms.optstream.optstream import OptStream as OptStream
    from optstream.mechanisms.pegasus.pegasus import PeGaSus as PeGaSus
    from optstream.mechanisms.pegasus.tree import PeGaSusTree as PeGaSusTree
    from optstream.mechanisms.period_release import Release as Release
    from optstream.mechanisms.sample import Sample as Sample
    from optstream.mechanisms.uniform import Uniform as Uniform
    from optstream.mechanisms.w_event.budget_absorption import BudgetAbsorption as BudgetAbsorption
    from optstream.mechanisms.w_event.budget_distribution import BudgetDistribution as BudgetDistribution

MECHANISMS = {
    "OptStream": "optstream.optstream",
    "Laplace": "laplace",
    "Uniform": "uniform",
    "Sample": "sample",
    "Fourier": "fourier",
    "BudgetDistribution": "w_event.budget_distribution",
    "BudgetAbsorption": "w_event.budget_absorption",
    "PeGaSus": "pegasus.pegasus",
    "Fast": "fast",
    "HistoryInformed": "history_informed.history_informed",
}
"""Every mechanism and where it stands. A row makes it one that a configuration may name, and that the
conformance suite, the audit's field and the tests of the release run through."""
_OTHERS = {
    "Hierarchical": "hierarchical",
    "HistoryInformedTree": "history_informed.tree",
    "PeGaSusTree": "pegasus.tree",
    "Release": "period_release",
}

__all__ = sorted([*MECHANISMS, *_OTHERS])


def __getattr__(name: str) -> Any:
    place = MECHANISMS.get(name) or _OTHERS.get(name)
    if place is None:
        raise AttributeError(f"module 'optstream.mechanisms' has no attribute {name!r}")
    return getattr(import_module(f"optstream.mechanisms.{place}"), name)


def on_tree(pattern: Any, tree: Any, level_shares: Any, lower_bound: float | None = 0.0) -> Any:
    """Return a mechanism on a tree, by the class that it names; itself where it has its tree already.

    Arguments and errors as `Hierarchical`.
    """
    if pattern.tree_class is None:
        return pattern
    return __getattr__(pattern.tree_class)(pattern, tree, level_shares, lower_bound)
