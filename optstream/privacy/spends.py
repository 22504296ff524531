"""What a measurement cost: frozen facts. How they are added up is `accounting`'s business."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optstream.errors import ParameterError


@dataclass(frozen=True)
class StepSpend:
    """A linear measurement, priced step by step.

    The measurement answers, at every node of `level`, non-negative linear queries of the node's
    integer series with Laplace noise of scale `scale`. At step `first_step + i` the queries' weights add
    up to `weights[i]`, so a change of that step by at most `alpha_units` at `nodes_changed` nodes loses at
    most

        charges[i] = nodes_changed * alpha_units * weights[i] / scale

    (Lemma 3, docs/privacy.md). Steps count from the stream's origin. The ledger keeps weights and scale,
    not only their quotient, so that an old spend can be priced anew when alpha changes.

    level: depth in the tree, root 0. stage: what was measured ("samples", "features/day").
    scale: in units of the model's resolution, > 0.
    """

    level: int
    stage: str
    first_step: int
    weights: tuple[int | Fraction, ...]
    scale: Fraction
    alpha_units: int
    nodes_changed: int = 1

    @property
    def n_steps(self) -> int:
        return len(self.weights)

    @property
    def unit_charge(self) -> Fraction:
        """What a step of weight 1 is charged."""
        return self.nodes_changed * self.alpha_units / self.scale

    @property
    def charges(self) -> tuple[Fraction, ...]:
        """What each step of the period is charged, as exact fractions, shape (n_steps,)."""
        priced = {weight: weight * self.unit_charge for weight in set(self.weights)}
        return tuple(priced[weight] for weight in self.weights)


@dataclass(frozen=True)
class PeriodSpend:
    """A joint or data-dependent measurement, priced by how many of its steps lie in the window.

    charges[n] is its loss when at most n of its steps change: charges[0] = 0, non-decreasing, one entry
    for each n in 0 .. n_steps.
    """

    level: int
    stage: str
    first_step: int
    charges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        rising = all(low <= high for low, high in zip(self.charges, self.charges[1:], strict=False))
        if len(self.charges) < 2 or self.charges[0] != 0 or not rising:
            raise ParameterError("charges of PeriodSpend must start at 0 and never decrease")

    @property
    def n_steps(self) -> int:
        return len(self.charges) - 1


Spend = StepSpend | PeriodSpend


def spend_to_document(spend: Spend) -> dict[str, Any]:
    """The spend as JSON-ready text and integers; fractions as "numerator/denominator"."""
    if isinstance(spend, StepSpend):
        return {
            "kind": "step",
            "level": spend.level,
            "stage": spend.stage,
            "first_step": spend.first_step,
            "weights": [str(weight) for weight in spend.weights],
            "scale": str(spend.scale),
            "alpha_units": spend.alpha_units,
            "nodes_changed": spend.nodes_changed,
        }
    return {
        "kind": "period",
        "level": spend.level,
        "stage": spend.stage,
        "first_step": spend.first_step,
        "charges": [str(charge) for charge in spend.charges],
    }


def spend_from_document(document: Mapping[str, Any]) -> Spend:
    """Read a spend back. Raises ParameterError for a kind that is not known: it cannot be priced."""
    common = (int(document["level"]), str(document["stage"]), int(document["first_step"]))
    match document.get("kind"):
        case "step":
            return StepSpend(
                *common,
                weights=tuple(_weight(weight) for weight in document["weights"]),
                scale=Fraction(document["scale"]),
                alpha_units=int(document["alpha_units"]),
                nodes_changed=int(document["nodes_changed"]),
            )
        case "period":
            return PeriodSpend(*common, charges=tuple(Fraction(charge) for charge in document["charges"]))
        case kind:
            raise ParameterError(f"a spend of kind {kind!r} cannot be priced; known kinds: step, period")


def _weight(text: str) -> int | Fraction:
    weight = Fraction(text)
    return weight.numerator if weight.denominator == 1 else weight
