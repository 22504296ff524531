"""Budget Distribution: half of what is left of a window's budget for every publication."""

from dataclasses import dataclass
from typing import ClassVar

from optstream.mechanisms.w_event.publish_by_distance import PublishByDistance
from optstream.privacy.rules.publication_rules import Halving, PublicationRule
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.stream import State

GRAINS = 2**16
"""The parts of a publication budget: sixteen halvings in a row, as many as any window will see of use."""


@dataclass(frozen=True)
class BudgetDistribution(PublishByDistance):
    """A step that lies far from the last release is published with half of what its window has left.

    The first publications after a quiet window get much, later ones exponentially less: made for streams that
    move seldom, and then a few times in a row. What leaves a window behind it comes back. At each step a
    noisy distance to the last release, summed over the series, is compared with the error that publishing
    would bring; the last release is held where it is smaller. At the start of a stream the last release is
    zero.

    Costs epsilon in any window at most: w distances, and the publications' part. What we changed: budgets are
    counted in grains of 1 / 65,536, rounded down; where nothing can be offered the distance is not asked,
    which costs less; periods that are released late count the later ones, too.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 5.1 (Algorithm 1).

    Args:
        model: What is protected.
        distance_share: Of epsilon, for the distances of a window, exact, in (0, 1); in the paper half.

    Raises:
        ParameterError: For a share outside its range, or noise that would outgrow the integers.
    """

    name: ClassVar[str] = "BudgetDistribution"

    @property
    def _n_grains(self) -> int:
        return GRAINS

    def _rule(self, budget: WindowBudget, fewest: int, first_step: int, memory: State) -> PublicationRule:
        return Halving(budget, GRAINS, fewest)
