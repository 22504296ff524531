"""One file for each published mechanism, composed of the packages below."""

from optstream.mechanisms.fast import Fast
from optstream.mechanisms.fourier import Fourier
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.history_informed.history_informed import HistoryInformed
from optstream.mechanisms.history_informed.tree import HistoryInformedTree
from optstream.mechanisms.laplace import Laplace
from optstream.mechanisms.optstream.optstream import OptStream
from optstream.mechanisms.pegasus.pegasus import PeGaSus
from optstream.mechanisms.pegasus.tree import PeGaSusTree
from optstream.mechanisms.release import Release
from optstream.mechanisms.sample import Sample
from optstream.mechanisms.uniform import Uniform
from optstream.mechanisms.w_event.budget_absorption import BudgetAbsorption
from optstream.mechanisms.w_event.budget_distribution import BudgetDistribution

__all__ = [
    "BudgetAbsorption",
    "BudgetDistribution",
    "Fast",
    "Fourier",
    "Hierarchical",
    "HistoryInformed",
    "HistoryInformedTree",
    "Laplace",
    "OptStream",
    "PeGaSus",
    "PeGaSusTree",
    "Release",
    "Sample",
    "Uniform",
]
