# Every mechanism and its file: read by type checkers, and when the package is imported (docs/decisions/0017).
import typing

from .fast import Fast as Fast
from .fourier import Fourier as Fourier
from .gaussian import Gaussian as Gaussian
from .hierarchical import Hierarchical as Hierarchical
from .history_informed import HistoryInformed as HistoryInformed
from .history_informed import HistoryInformedTree as HistoryInformedTree
from .laplace import Laplace as Laplace
from .laplace import Uniform as Uniform
from .optstream import OptStream as OptStream
from .pegasus import PeGaSus as PeGaSus
from .period_release import Release as Release
from .session import Session as Session
from .w_event import BudgetAbsorption as BudgetAbsorption
from .w_event import BudgetDistribution as BudgetDistribution
from .w_event import Sample as Sample

__all__: list[str]
MECHANISMS: tuple[str, ...]

def mechanism_named(name: str) -> typing.Any: ...
def on_tree(
    pattern: typing.Any, tree: typing.Any, level_shares: typing.Any, lower_bound: float | None = ...
) -> typing.Any: ...
