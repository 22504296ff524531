"""One file for each published mechanism, composed of the rooms below."""

from optstream.mechanisms.budget_absorption import BudgetAbsorption
from optstream.mechanisms.budget_distribution import BudgetDistribution
from optstream.mechanisms.fast import Fast
from optstream.mechanisms.fourier import Fourier
from optstream.mechanisms.hierarchical import Hierarchical
from optstream.mechanisms.history_informed import HistoryInformed
from optstream.mechanisms.history_informed_tree import HistoryInformedTree
from optstream.mechanisms.laplace import Laplace
from optstream.mechanisms.optstream import OptStream
from optstream.mechanisms.pegasus import PeGaSus
from optstream.mechanisms.pegasus_tree import PeGaSusTree
from optstream.mechanisms.release import Release
from optstream.mechanisms.sample import Sample
from optstream.mechanisms.uniform import Uniform

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
