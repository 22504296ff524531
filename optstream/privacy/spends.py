"""What a measurement cost: frozen facts. How they are added up is `accounting`'s business."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text, whole
from optstream.privacy.model import Currency

# What measurements cost that share joint noise: by groups, each at its most.

Group = tuple[range, ...]
"""The parts of one group: steps of a period, counted from its first one. A part is a sum that is measured."""


@dataclass(frozen=True)
class JointSpend:
    """Sums over disjoint parts of a period, measured with joint noise, a group of parts at a time.

    At every node of `level`, and for each group by itself, the parts' sums get `joint_noise` of scale `scale`
    (Lemma 15). A window is charged, for each group, the most of its steps that lie in one part of the group:

        leaves_changed * alpha_units / scale * max over parts of |part in the window|

    (Lemma 16). That holds where all changes of one customer in a period move one node of the level: the level
    has one node, or unit is "customer" and the readings of a period lie in one leaf (`rules.may_be_joint`). A
    spend of several nodes is never one of unit "roaming". Steps count from the stream's origin.

    Attributes:
        level: Depth in the tree, root 0.
        stage: Name of the measurement ("samples", "blocks").
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        groups: Of parts, rising and disjoint, all inside the period.
        scale: In units of the model's resolution, greater than 0.
        alpha_units: The most by which one changed reading moves a leaf.
        n_nodes: Of the level, at least 1.
        leaves_changed: The most leaves that one customer changes at a step.

    Raises:
        ParameterError: An empty group or part, parts that overlap, fall or leave the period, no scale or no
            node.
    """

    level: int
    stage: str
    first_step: int
    n_steps: int
    groups: tuple[Group, ...]
    scale: Fraction
    alpha_units: int
    n_nodes: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "epsilon"

    def __post_init__(self) -> None:
        _check_parts(self)
        whole(self.n_nodes, "n_nodes of JointSpend", 1)

    @property
    def parts(self) -> Group:
        """All parts, in order of time."""
        return tuple(chain.from_iterable(self.groups))

    @property
    def unit_charge(self) -> Fraction:
        """What a group is charged for each step of the part that has the most of them in the window."""
        return self.leaves_changed * self.alpha_units / self.scale

    @property
    def weights(self) -> tuple[int, ...]:
        """Whether each step of the period is measured: 1 or 0, shape (n_steps,)."""
        return _weights_of(self)

    @property
    def largest_parts(self) -> tuple[int, ...]:
        """The steps of each group's largest part: its charge if all of it changes, in unit charges."""
        return tuple(max(map(len, group)) for group in self.groups)

    def steps_charged(self, window_length: int) -> NDArray[np.int64]:
        """Return the unit charges of each window that touches the period, first window first.

        Args:
            window_length: Steps.

        Returns:
            Shape (n_steps + window_length - 1,); entry i is of the window whose last step is step i.
        """
        charged = np.zeros(self.n_steps + window_length - 1, dtype=np.int64)
        for group in self.groups:
            charged += _most_of_one_part(group, charged.size, window_length)
        return charged


def _most_of_one_part(group: Group, n_windows: int, window_length: int) -> NDArray[np.int64]:
    """Return the most steps of one part that each window holds, shape (n_windows,); as `steps_charged`."""
    if all(len(part) == 1 for part in group):
        # many parts, as on every step of a day in minutes: windows end at a step and w - 1 steps after it
        steps, entered = np.array([part.start for part in group]), np.zeros(n_windows + 1, dtype=np.int64)
        entered[steps] += 1
        entered[steps + window_length] -= 1
        return (np.cumsum(entered[:-1]) > 0).astype(np.int64)
    last = np.arange(n_windows)
    inside = (
        np.minimum(last + 1, part.stop) - np.maximum(last + 1 - window_length, part.start) for part in group
    )
    most: NDArray[np.int64] = np.maximum.reduce([np.zeros_like(last), *inside])
    return most


# What measurements with Gaussian noise cost, in rho: by the squares of what moves each of them.


@dataclass(frozen=True)
class GaussianSpend:
    """Sums over disjoint parts of a period, each with discrete Gaussian noise of its own, priced in rho.

    At every node of `level` each part's sum gets independent noise with P(k) proportional to
    exp(-k^2 / (2 scale^2)). A window is charged, in rho of zero-concentrated privacy,

        (leaves_changed * alpha_units)^2 / (2 scale^2) * sum over parts of |part in the window|^2

    (Lemma 20, docs/privacy.md), in whatever leaves the customer is at each step. It holds for any set of
    changed steps, so for windows of any length. Changed steps of one part add up before they are squared: the
    charge of a part is no sum over its steps. Steps count from the stream's origin.

    Attributes:
        level: Depth in the tree, root 0.
        stage: Name of the measurement ("samples", "blocks").
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        parts: Rising and disjoint, all inside the period, counted from its first step; a single step is one.
        scale: The noise's sigma, in units of the model's resolution, greater than 0.
        alpha_units: The most by which one changed reading moves a leaf.
        leaves_changed: The most leaves that one customer changes at a step.

    Raises:
        ParameterError: An empty part, parts that overlap, fall or leave the period, or no scale.
    """

    level: int
    stage: str
    first_step: int
    n_steps: int
    parts: Group
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "rho"

    def __post_init__(self) -> None:
        _check_parts(self)

    @property
    def unit_charge(self) -> Fraction:
        """What a part is charged of which one step lies in the window."""
        return (self.leaves_changed * self.alpha_units) ** 2 / (2 * self.scale**2)

    @property
    def weights(self) -> tuple[int, ...]:
        """Whether each step of the period is measured: 1 or 0, shape (n_steps,)."""
        return _weights_of(self)

    @property
    def whole_charge(self) -> Fraction:
        """What all parts are charged if all of their steps change."""
        return sum(len(part) ** 2 for part in self.parts) * self.unit_charge

    def squares_charged(self, window_length: int) -> NDArray[np.int64]:
        """Return the unit charges of each window that touches the period, first window first.

        Args:
            window_length: Steps.

        Returns:
            Shape (n_steps + window_length - 1,); entry i is of the window whose last step is step i.
        """
        n_windows = self.n_steps + window_length - 1
        stop = np.arange(1, n_windows + 1)
        single = np.zeros(n_windows + 1, dtype=np.int64)
        total = np.zeros(n_windows, dtype=np.int64)
        for part in self.parts:
            if len(part) == 1:
                single[part.start] += 1
                single[min(part.start + window_length, n_windows)] -= 1
                continue
            inside = np.minimum(stop, part.stop) - np.maximum(stop - window_length, part.start)
            total += np.maximum(inside, 0) ** 2
        return total + np.cumsum(single[:-1])


def _check_parts(spend: JointSpend | GaussianSpend) -> None:
    """Raise ParameterError for an empty group, parts that fall, overlap or leave the period, and no scale."""
    name = type(spend).__name__
    fits = all(part.step == 1 and 0 <= part.start < part.stop <= spend.n_steps for part in spend.parts)
    rises = all(before.stop <= part.start for before, part in pairwise(spend.parts))
    if not (fits and rises and (isinstance(spend, GaussianSpend) or all(spend.groups))):
        raise ParameterError(
            f"the parts of {name} must be such that they rise, do not overlap and lie inside the period"
        )
    if spend.scale <= 0:
        raise ParameterError(f"the scale of {name} must be greater than 0; got {spend.scale}")


def _weights_of(spend: JointSpend | GaussianSpend) -> tuple[int, ...]:
    measured = set(chain.from_iterable(spend.parts))
    return tuple(int(step in measured) for step in range(spend.n_steps))


@dataclass(frozen=True)
class StepSpend:
    """A linear measurement, priced step by step.

    The measurement answers, at every node of `level`, non-negative linear queries of the node's
    integer series with Laplace noise of scale `scale`. At step `first_step + i` the queries' weights add
    up to `weights[i]`, so a change of that step by at most `alpha_units` in each of `leaves_changed` leaves,
    which moves the level by at most their sum, loses at most

        charges[i] = leaves_changed * alpha_units * weights[i] / scale

    (Lemma 3, docs/privacy.md). Steps count from the stream's origin. The ledger keeps weights and scale,
    not only their quotient, so that an old spend can be repriced when alpha changes.

    Attributes:
        level: Depth in the tree, root 0.
        stage: Name of the measurement ("samples", "features/day").
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
        stage: Name of the measurement.
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
    """A plan whose steps are not chosen yet: the worst outcome of a rule that limits each window.

    Any of the period's steps may be measured with a weight of at most 1, charged `unit_charge` times the
    weight, but no window will hold more than `cap` in weight, `taken` ones of other periods included. A
    window with n of the period's steps is charged for a weight of min(n, cap - taken in it). Settled to a
    `StepSpend`.

    Attributes:
        level: Depth in the tree, root 0.
        stage: Name of the measurement.
        first_step: Running index of the period's first step.
        n_steps: Of the period.
        cap: The most weight of a window.
        taken: Running indices of measured steps of other periods, rising.
        scale: Of the noise of weight 1, in units of the model's resolution.
        alpha_units: The most by which one changed reading moves a leaf.
        leaves_changed: The most leaves that one customer changes at a step.
        taken_weights: Of the steps in `taken`; 1 each if empty.

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
    """Raise ParameterError for spends in two currencies, or in another than `currency`: no sum of epsilons
    and rhos is a privacy guarantee.
    """
    # the accountant refuses anything else
    found = {getattr(spend, "currency", "epsilon") for spend in spends} | ({currency} if currency else set())
    if len(found) > 1:
        raise ParameterError(
            "charges in epsilon (Laplace and joint noise) and in rho (Gaussian noise) are never added up: a "
            "privacy budget has one of them, epsilon alone, or epsilon with a delta"
        )


def spend_to_document(spend: Spend) -> dict[str, Any]:
    """Return the spend, JSON-ready: its kind and fields, fractions as "numerator/denominator"."""
    kind = next(kind for kind, known in KINDS.items() if isinstance(spend, known))
    return {"kind": kind} | {field.name: _plain(getattr(spend, field.name)) for field in fields(spend)}


def groups_to_document(groups: tuple[Group, ...]) -> list[list[list[int]]]:
    """Return groups JSON-ready: [start, stop] of each part, a list for each group."""
    document: list[list[list[int]]] = _plain(groups)
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_entry(entry) for entry in value]
    return str(value) if isinstance(value, Fraction) else value


def _entry(value: Any) -> Any:
    if isinstance(value, range):
        return [value.start, value.stop]
    if isinstance(value, tuple):
        return _plain(value)
    # a whole number is written as one, whatever its type, so that documents are stable
    return int(value) if value == int(value) else str(value)


def spend_from_document(document: Mapping[str, Any]) -> Spend:
    """Return the spend that `spend_to_document` wrote; one that cannot be priced is refused."""
    try:
        return _read(dict(document))
    except ParameterError:
        raise
    except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise ParameterError(
            "a spend lacks what its price needs: another version of OptStream wrote it; read it with that one"
        ) from error


def _weight(text: str | int) -> int | Fraction:
    if type(text) is int:
        return text
    weight = exact_from_text(text)
    return weight.numerator if weight.denominator == 1 else weight


def _weights(listed: Iterable[str | int]) -> tuple[int | Fraction, ...]:
    return tuple(_weight(one) for one in listed)


def _parts(listed: object) -> Iterator[range]:
    if not isinstance(listed, list):
        raise TypeError("groups are lists of parts")
    for part in listed:
        if not isinstance(part, list):
            raise TypeError("groups are lists of parts")
        start, stop = part
        if type(start) is not int or type(stop) is not int:
            raise TypeError("a part is two integers")
        yield range(start, stop)


def groups_from_document(document: object) -> tuple[Group, ...]:
    """Return the groups that `groups_to_document` wrote, unchecked. Raises TypeError or ValueError for other
    things.
    """
    if not isinstance(document, list):
        raise TypeError("groups are lists of parts")
    return tuple(tuple(_parts(group)) for group in document)


_READ: Mapping[str, Callable[[Any], Any]] = {
    "stage": str,
    "scale": exact_from_text,
    "cap": _weight,
    "weights": _weights,
    "taken_weights": _weights,
    "charges": lambda listed: tuple(map(Fraction, _weights(listed))),
    "taken": lambda listed: tuple(map(int, listed)),
    "groups": groups_from_document,
    "parts": lambda listed: tuple(_parts(listed)),
}
"""How fields are read; those that are not listed are whole numbers."""


def _read(given: dict[str, Any]) -> Spend:
    kind = KINDS.get(given.get("kind", ""))
    if kind is None:
        known = ", ".join(KINDS)
        raise ParameterError(f"a spend of kind {given.get('kind')!r} cannot be priced; known kinds: {known}")
    if kind is CappedSpend:
        given.setdefault("taken_weights", [])
    found: Spend = kind(**{one.name: _READ.get(one.name, int)(given[one.name]) for one in fields(kind)})
    return found
