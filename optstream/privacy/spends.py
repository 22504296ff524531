"""What a measurement cost: frozen facts. How they are added up is `accounting`'s business."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text
from optstream.privacy.gaussian_spend import GaussianSpend, parts_of_document, parts_to_document
from optstream.privacy.joint_spend import JointSpend, groups_from_document, groups_to_document
from optstream.privacy.model import Currency


@dataclass(frozen=True)
class StepSpend:
    """A linear measurement, priced step by step.

    The measurement answers, at every node of `level`, non-negative linear queries of the node's
    integer series with Laplace noise of scale `scale`. At step `first_step + i` the queries' weights add
    up to `weights[i]`, so a change of that step by at most `alpha_units` in each of `leaves_changed` leaves,
    which moves the level by at most their sum, loses at most

        charges[i] = leaves_changed * alpha_units * weights[i] / scale

    (Lemma 3, docs/privacy.md). Steps count from the stream's origin. The ledger keeps weights and scale,
    not only their quotient, so that an old spend can be priced anew when alpha changes.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "features/day").
        first_step: Running index of the period's first step.
        weights: Of each step of the period.
        scale: In units of the model's resolution, > 0.
        alpha_units: The most by which one changed reading moves a leaf.
        leaves_changed: The most leaves that one customer changes at a step.
    """

    level: int
    stage: str
    first_step: int
    weights: tuple[int | Fraction, ...]
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "epsilon"

    @property
    def n_steps(self) -> int:
        """The steps of the period."""
        return len(self.weights)

    @property
    def unit_charge(self) -> Fraction:
        """What a step of weight 1 is charged."""
        return self.leaves_changed * self.alpha_units / self.scale

    @property
    def charges(self) -> tuple[Fraction, ...]:
        """What each step of the period is charged, as exact fractions, shape (n_steps,)."""
        priced = {weight: weight * self.unit_charge for weight in set(self.weights)}
        return tuple(priced[weight] for weight in self.weights)


@dataclass(frozen=True)
class PeriodSpend:
    """A joint or data-dependent measurement, priced by how many of its steps lie in the window.

    Where charges are a profile times the loss at full sensitivity, the profile is already multiplied in.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured.
        first_step: Running index of the period's first step.
        charges: Its loss when at most n of its steps change, for each n in 0 .. n_steps: charges[0] = 0,
            non-decreasing.

    Raises:
        ParameterError: Charges that do not begin at 0 or that fall.
    """

    level: int
    stage: str
    first_step: int
    charges: tuple[Fraction, ...]
    currency: ClassVar[Currency] = "epsilon"

    def __post_init__(self) -> None:
        if len(self.charges) < 2 or self.charges[0] != 0 or any(a > b for a, b in pairwise(self.charges)):
            raise ParameterError("charges of PeriodSpend must start at 0 and never decrease")

    @property
    def n_steps(self) -> int:
        """The steps of the period."""
        return len(self.charges) - 1


@dataclass(frozen=True)
class CappedSpend:
    """A plan whose steps are not chosen yet: the worst outcome of a rule that limits what a window holds.

    Any of the period's steps may be measured with a weight of at most 1, charged `unit_charge` times the
    weight, but no window will hold more than `cap` in weight together with what is already `taken` in other
    periods. A window with n of the period's steps is charged for a weight of min(n, cap - taken in it).
    Settled to a `StepSpend`.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What is measured.
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        cap: The most weight of a window.
        taken: Running indices of measured steps of other periods, rising.
        scale: Of the noise of weight 1, in units of the model's resolution.
        alpha_units: The most by which one changed reading moves a leaf.
        leaves_changed: The most leaves that one customer changes at a step.
        taken_weights: Beside `taken`; 1 each if empty.

    Raises:
        ParameterError: Another number of weights than of taken steps.
    """

    level: int
    stage: str
    first_step: int
    n_steps: int
    cap: int | Fraction
    taken: tuple[int, ...]
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    taken_weights: tuple[int | Fraction, ...] = ()
    currency: ClassVar[Currency] = "epsilon"

    def __post_init__(self) -> None:
        if self.taken_weights and len(self.taken_weights) != len(self.taken):
            raise ParameterError("taken_weights of CappedSpend must be empty or one for each of taken")

    @property
    def unit_charge(self) -> Fraction:
        """What a point of weight 1 is charged."""
        return self.leaves_changed * self.alpha_units / self.scale

    @property
    def taken_elsewhere(self) -> Iterator[tuple[int, int | Fraction]]:
        """Each step that other periods took, with its weight."""
        return zip(self.taken, self.taken_weights or (1,) * len(self.taken), strict=True)


Spend = StepSpend | PeriodSpend | CappedSpend | JointSpend | GaussianSpend
KINDS = {
    "step": StepSpend,
    "period": PeriodSpend,
    "capped": CappedSpend,
    "joint": JointSpend,
    "gaussian": GaussianSpend,
}


def check_currency(spends: Iterable[Spend], currency: Currency | None = None) -> None:
    """Raise ParameterError for charges that are not counted alike: no sum of epsilons and rhos is a privacy
    guarantee.

    spends: that are to be added up. currency: that all of them must be in; None for any, all in the same.
    """
    # what is no spend at all, the accountant refuses
    found = {getattr(spend, "currency", "epsilon") for spend in spends} | ({currency} if currency else set())
    if len(found) > 1:
        raise ParameterError(
            "charges in epsilon (Laplace and joint noise) and in rho (Gaussian noise) are never added up: a "
            "privacy budget has one of them, epsilon alone, or epsilon with a delta"
        )


def spend_to_document(spend: Spend) -> dict[str, Any]:
    """Return the spend as JSON-ready text and integers: its kind and fields, fractions as
    "numerator/denominator".
    """
    kind = next(kind for kind, known in KINDS.items() if isinstance(spend, known))
    values = {field.name: getattr(spend, field.name) for field in fields(spend)}
    if isinstance(spend, JointSpend):
        values["groups"] = groups_to_document(spend.groups)
    if isinstance(spend, GaussianSpend):
        values["parts"] = parts_to_document(spend.parts)
    return {"kind": kind} | {name: _plain(value) for name, value in values.items()}


def spend_from_document(document: Mapping[str, Any]) -> Spend:
    """Return the spend that `spend_to_document` wrote. Raises ParameterError for a kind that is not known, or
    something else: it cannot be priced.
    """
    try:
        return _read(dict(document))
    except ParameterError:
        raise
    except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise ParameterError(
            "a spend lacks what its price needs: another version of OptStream wrote it; read it with that one"
        ) from error


def _read(given: dict[str, Any]) -> Spend:
    common: dict[str, Any] = {"level": int(given["level"]), "stage": str(given["stage"])}
    common["first_step"] = int(given["first_step"])
    match given.get("kind"):
        case "step":
            weights = tuple(_weight(weight) for weight in given["weights"])
            return StepSpend(**common, weights=weights, **_scaled(given))
        case "period":
            return PeriodSpend(
                **common, charges=tuple(Fraction(_weight(charge)) for charge in given["charges"])
            )
        case "capped":
            common |= {"n_steps": int(given["n_steps"]), "cap": _weight(given["cap"])}
            common["taken"] = tuple(int(step) for step in given["taken"])
            weights = tuple(_weight(weight) for weight in given.get("taken_weights", ()))
            return CappedSpend(**common, taken_weights=weights, **_scaled(given))
        case "joint":
            common |= {"n_steps": int(given["n_steps"]), "groups": groups_from_document(given["groups"])}
            return JointSpend(**common, n_nodes=int(given["n_nodes"]), **_scaled(given))
        case "gaussian":
            common |= {"n_steps": int(given["n_steps"]), "parts": parts_of_document(given["parts"])}
            return GaussianSpend(**common, **_scaled(given))
        case kind:
            known = ", ".join(KINDS)
            raise ParameterError(f"a spend of kind {kind!r} cannot be priced; known kinds: {known}")


def _scaled(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "scale": exact_from_text(given["scale"]),
        "alpha_units": int(given["alpha_units"]),
        "leaves_changed": int(given["leaves_changed"]),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        # a whole number is written as one, whatever its type: what is read back is written the same
        return [int(entry) if entry == int(entry) else str(entry) for entry in value]
    return str(value) if isinstance(value, Fraction) else value


def _weight(text: str | int) -> int | Fraction:
    if type(text) is int:
        return text
    weight = exact_from_text(text)
    return weight.numerator if weight.denominator == 1 else weight
