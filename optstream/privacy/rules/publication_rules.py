"""How much a step may pay for a publication: budget distribution and budget absorption, in whole grains."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from optstream.privacy.gaussian_spend import GaussianSpend
from optstream.privacy.joint_spend import JointSpend
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.privacy.spends import CappedSpend, PeriodSpend, Spend

PUBLICATIONS = "publications"


class PublicationRule(ABC):
    """What each step of a period is offered of the publication budget, and what was taken of it.

    The budget of a window is `n_grains` grains, so that nothing rounds. No offer exceeds what the fullest
    window around the step has left, counting earlier and later periods: whatever is published, no window pays
    for more than n_grains. Offers are functions of recorded outputs and public facts alone, hence free (Lemma
    7). Steps count from the period's start.

    Args:
        budget: Of the period's windows, its cap n_grains.
        n_grains: Of a window.
        fewest: A smaller offer is none, for its noise would outgrow the integers.
    """

    def __init__(self, budget: WindowBudget, n_grains: int, fewest: int) -> None:
        self.n_grains = n_grains
        self._budget, self._fewest = budget, fewest

    def offer(self, step: int) -> int:
        """Return the grains that a publication at a step of the period costs; 0 where there can be none."""
        grains = self._wanted(step, self._budget.headroom(step))
        return grains if grains >= max(self._fewest, 1) else 0

    def publish(self, step: int, grains: int) -> None:
        """Take what was offered at a step of the period: it is published."""
        self._budget.take(step, grains)

    @abstractmethod
    def _wanted(self, step: int, headroom: int) -> int:
        """Return the rule's own offer, at most the headroom."""


class Halving(PublicationRule):
    """Budget distribution: half of what is left. Source: Kellaris et al. 2014, Algorithm 1."""

    def _wanted(self, step: int, headroom: int) -> int:
        return headroom // 2


class Absorption(PublicationRule):
    """Budget absorption: a grain is one step's equal share, and a publication takes all that lie unused.

    A publication that takes j shares uses up those of the j - 1 steps that follow, which are held; the steps
    after it let theirs add up, to a window's at most. Source: Kellaris et al. 2014, Algorithm 2.

    first_step: the period's. absorbing_from: running index of the first step whose share no publication has
    used.
    """

    def __init__(
        self, budget: WindowBudget, n_grains: int, fewest: int, first_step: int, absorbing_from: int
    ) -> None:
        super().__init__(budget, n_grains, fewest)
        self._first_step = first_step
        self.absorbing_from = absorbing_from

    def publish(self, step: int, grains: int) -> None:
        """Take what was offered, as every rule does; the shares of the steps that follow are used up."""
        super().publish(step, grains)
        self.absorbing_from = self._first_step + step + grains

    def _wanted(self, step: int, headroom: int) -> int:
        absorbed = self._first_step + step - self.absorbing_from + 1
        return min(absorbed, self.n_grains, headroom)


def grains_of(spends: Iterable[Spend], epsilon: Fraction, n_grains: int) -> list[tuple[int, int]]:
    """Return (running step, grains) that spends of other periods took of a window's publication budget, which
    is `epsilon` or n_grains grains, rising; steps that paid nothing are left out.

    Exact for what was spent under the same budget; what another configuration spent is rounded up. A plan
    that was never settled, as a void day leaves it, counts as all of the budget at each of its steps: no
    publication then comes near it, and the plans beside it ask for no more than the windows have.
    """
    taken: Counter[int] = Counter()
    for spend in spends:
        if spend.stage != PUBLICATIONS or isinstance(spend, PeriodSpend | JointSpend | GaussianSpend):
            continue
        charges = (spend.unit_charge,) * spend.n_steps if isinstance(spend, CappedSpend) else spend.charges
        for step, charge in enumerate(charges):
            if charge:
                taken[spend.first_step + step] += min(ceil(charge * n_grains / epsilon), n_grains)
    return sorted(taken.items())
