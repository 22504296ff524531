"""Budget Absorption: a publication takes the shares of the steps that were held before it."""

from dataclasses import dataclass
from typing import ClassVar

from optstream.mechanisms.w_event.publish_by_distance import PublishByDistance
from optstream.privacy.rules.publication_rules import Absorption, PublicationRule
from optstream.privacy.rules.window_budget import WindowBudget
from optstream.stream import State


@dataclass(frozen=True)
class BudgetAbsorption(PublishByDistance):
    """Every step has an equal share, and one that is published takes those that were not used before it.

    A publication that takes j shares, at most a window's, is followed by j - 1 steps that are held unasked,
    for their shares are the ones it borrowed; after them shares add up again. Made for streams that move now
    and then: the longer it was quiet, the smaller the noise. At each step that is asked a noisy distance to
    the last release, summed over the series, is compared with the error that publishing would bring; the last
    release is held where it is smaller. At the start of a stream the last release is zero, and shares add up
    from its first step.

    Costs epsilon in any window at most: w distances, and the publications' part. What we changed: a step that
    is held anyway is not asked for its distance, which costs less; periods that are released late count the
    later ones, too.

    Source: Kellaris, Papadopoulos, Xiao and Papadias 2014, section 5.2 (Algorithm 2).

    Args:
        model: What is protected.
        distance_share: Of epsilon, for the distances of a window, exact, in (0, 1); in the paper half.

    Raises:
        ParameterError: For a share outside its range, or noise that would outgrow the integers.
    """

    name: ClassVar[str] = "BudgetAbsorption"

    @property
    def _n_grains(self) -> int:
        return self.model.window_length

    def _rule(self, budget: WindowBudget, fewest: int, first_step: int, memory: State) -> PublicationRule:
        # The last publication before: from the spends or, where it lies further back, from memory.
        known = [step + grains for step, grains in memory.get("spent", ()) if step < first_step]
        known += [memory["absorbing_from"]] if "absorbing_from" in memory else []
        return Absorption(budget, self._n_grains, fewest, first_step, max(known, default=first_step))

    def _memory(self, rule: PublicationRule) -> State:
        assert isinstance(rule, Absorption)
        return {"absorbing_from": rule.absorbing_from}
