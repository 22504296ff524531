"""The cost of a measurement: one frozen class of priced spends, with a kind for each noise."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import chain, pairwise
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text, whole
from optstream.privacy.model import Currency

CUSTOMERS = "customers"  # the stage of counts of customers, whose share no other stage looks at
Group = tuple[range, ...]
"""The parts of one group: steps of a period, counted from its first one. A part is a sum that is measured."""


@dataclass(frozen=True)
class _Booked(ABC):
    level: int
    stage: str
    first_step: int


class Spend(_Booked):
    """The cost of one measurement of a period, at every node of a level (root 0): units times their price.
    stage: name of the measurement ("samples", "features/day"). first_step: running index, from the stream's
    origin. scale: of the noise, above 0, in units of the model's resolution. alpha_units: the most by which a
    changed reading moves a leaf. leaves_changed: the most leaves that one customer changes at a step."""

    n_steps: int
    scale: Fraction
    alpha_units: int
    leaves_changed: int
    currency: ClassVar[Currency] = "epsilon"

    @property
    def steps(self) -> range:
        """The steps of the period, as running indices."""
        return range(self.first_step, self.first_step + self.n_steps)

    @property
    def moved(self) -> int:
        """The greatest change of the level by a changed step, in units of the resolution."""
        return self.leaves_changed * self.alpha_units

    @property
    def unit_charge(self) -> Fraction:
        """The price of a step of weight 1, or of a group for each step of its largest part in the window."""
        return self.moved / self.scale

    @property
    @abstractmethod
    def whole_charge(self) -> Fraction:
        """The charge if all steps change, whatever windows hold."""

    @abstractmethod
    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return what each window that touches the period is charged, and the price of a unit. Units,
        (n_steps + window_length - 1,), are integers; entry i is of the window whose last step is step i."""


@dataclass(frozen=True)
class StepSpend(Spend):
    """Linear queries with Laplace noise at every node, priced step by step (Lemma 3, docs/privacy.md).

    A change of step `first_step + i`, where the queries' weights, at least 0, add up to `weights[i]`, loses
    at most

        leaves_changed * alpha_units * weights[i] / scale
    """

    weights: tuple[int | Fraction, ...]
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1

    @property
    def n_steps(self) -> int:  # type: ignore[override]  # mypy: a property over a read-only one
        return len(self.weights)

    @property
    def charges(self) -> tuple[Fraction, ...]:
        """The charge of each step of the period, shape (n_steps,)."""
        priced = {weight: weight * self.unit_charge for weight in set(self.weights)}
        return tuple(priced[weight] for weight in self.weights)

    @property
    def whole_charge(self) -> Fraction:
        return sum(self.weights) * self.unit_charge

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return the weights in each window."""
        parts = _denominator(self.weights)
        return _sliding_sums(_in_parts(self.weights, parts), window_length), self.unit_charge / parts


@dataclass(frozen=True)
class PeriodSpend(Spend):
    """A data-dependent measurement, priced by how many of the period's steps lie in the window. `charges` is
    its loss when at most n steps change, n in 0 .. n_steps: charges[0] = 0, non-decreasing, else
    ParameterError."""

    charges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.charges) < 2 or self.charges[0] != 0 or any(a > b for a, b in pairwise(self.charges)):
            raise ParameterError("charges of PeriodSpend must start at 0 and never decrease")

    @property
    def n_steps(self) -> int:  # type: ignore[override]  # mypy: a property over a read-only one
        return len(self.charges) - 1

    @property
    def whole_charge(self) -> Fraction:
        return self.charges[-1]

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return the charge for the steps in each window."""
        parts = _denominator(self.charges)
        units = np.array(_in_parts(self.charges, parts), dtype=object)
        return units[overlaps(self.n_steps, window_length)], Fraction(1, parts)


@dataclass(frozen=True)
class CappedSpend(Spend):
    """A plan whose steps are not chosen yet: the worst outcome of a rule that limits each window.

    Any step may be measured with a weight of at most 1, but no window will hold more than `cap` in weight,
    the `taken` steps of other periods included (running indices, rising, of `taken_weights`, 1 each if
    empty). A window with n of the period's steps is charged min(n, cap - taken in it). Settled to a
    `StepSpend`.
    """

    n_steps: int
    cap: int | Fraction
    taken: tuple[int, ...]
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    taken_weights: tuple[int | Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.taken_weights and len(self.taken_weights) != len(self.taken):
            raise ParameterError("taken_weights of CappedSpend must be empty or one for each of taken")

    @property
    def whole_charge(self) -> Fraction:
        return self.n_steps * self.unit_charge

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return the headroom in each window, at most 1 for each own step."""
        lead, weights = window_length - 1, self.taken_weights or (1,) * len(self.taken)
        parts = _denominator([self.cap, *weights])
        taken = [0] * (self.n_steps + 2 * lead)
        for step, weight in zip(self.taken, _in_parts(weights, parts), strict=True):
            if 0 <= (place := step - self.first_step + lead) < len(taken):
                taken[place] += weight
        inside = _sliding_sums(taken, window_length)[lead : lead + self.n_steps + lead]
        own = overlaps(self.n_steps, window_length).astype(object) * parts
        headroom = np.maximum(np.minimum(own, int(self.cap * parts) - inside), 0)
        return headroom, self.unit_charge / parts


class _PartsSpend(Spend):
    """A spend of sums over disjoint parts of the period."""

    parts: Group

    @property
    def weights(self) -> tuple[int, ...]:
        """Whether each step of the period is measured: 1 or 0, shape (n_steps,)."""
        measured = set(chain.from_iterable(self.parts))
        return tuple(int(step in measured) for step in range(self.n_steps))

    def __post_init__(self) -> None:
        name, parts = type(self).__name__, self.parts
        fits = all(part.step == 1 and 0 <= part.start < part.stop <= self.n_steps for part in parts)
        if not (fits and all(before.stop <= part.start for before, part in pairwise(parts))):
            raise ParameterError(
                f"the parts of {name} must be such that they rise, do not overlap and lie inside the period"
            )
        if self.scale <= 0:
            raise ParameterError(f"the scale of {name} must be greater than 0; got {self.scale}")


@dataclass(frozen=True)
class JointSpend(_PartsSpend):
    """Sums over disjoint parts of a period, measured with joint noise, a group of parts at a time. A window
    is charged, for each group (Lemma 16),

        leaves_changed * alpha_units / scale * max over parts of |part in the window|

    `groups` are of parts, rising and disjoint, all inside the period; `n_nodes`, of the level, is at least 1.
    Others raise ParameterError. All changes of one customer in a period must move one node of the level.
    """

    n_steps: int
    groups: tuple[Group, ...]
    scale: Fraction
    alpha_units: int
    n_nodes: int
    leaves_changed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.groups):
            raise ParameterError("the groups of JointSpend must have a part each")
        whole(self.n_nodes, "n_nodes of JointSpend", 1)

    @property
    def parts(self) -> Group:  # type: ignore[override]  # mypy: a property over a read-only one
        return tuple(chain.from_iterable(self.groups))

    @property
    def largest_parts(self) -> tuple[int, ...]:
        """The steps of each group's largest part: its charge if all of it changes, in unit charges."""
        return tuple(max(map(len, group)) for group in self.groups)

    @property
    def whole_charge(self) -> Fraction:
        return sum(self.largest_parts) * self.unit_charge

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return, for each window, the sum over groups of the most steps of one part inside."""
        stop = np.arange(1, self.n_steps + window_length)
        charged = np.zeros(stop.size, dtype=np.int64)
        for group in self.groups:
            charged += np.max([_inside(part, stop, window_length) for part in group], axis=0)
        return charged, self.unit_charge


ORDER_DEFECT = Fraction(1, 2**24)  # epsilon: what the rounded odds of one order cost, once (Lemma 15a)


NOT_DRAWN = -1  # the name of no order, for spends that are reserved alone


@dataclass(frozen=True)
class OrderSpend(_PartsSpend):
    """Sums over disjoint parts of a period, measured with the noise of a whole stream (Lemmas 15a and 16b).

    A window holds at most `n_blocks` blocks, dealt in turn to `orders` orders of noise, each of this scale,
    and loses, however many of their blocks it meets,

        orders * (longest * leaves_changed * alpha_units / scale + 2^-24)

    It pays at the draw of the first of them: not here where it holds the step `earlier` steps before the
    period's first one, or `later` steps after its last one, where the same orders had a block before this
    draw; 0 where they had none. Windows of more than `window_length` steps cost a multiple. All changes of
    one customer in a window must move one node of the level. parts: rising and disjoint, not empty, inside
    the period, each of at most `longest` steps. order: the running index of a step where the orders begin,
    which names them. Others raise ParameterError.
    """

    n_steps: int
    parts: Group
    scale: Fraction
    alpha_units: int
    n_nodes: int
    longest: int
    window_length: int
    n_blocks: int
    orders: int
    order: int
    earlier: int = 0
    later: int = 0
    leaves_changed: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_nodes", "longest", "window_length", "n_blocks", "orders"):
            whole(getattr(self, name), f"{name} of OrderSpend", 1)
        if min(self.earlier, self.later) < 0 or max(map(len, self.parts), default=0) > self.longest:
            raise ParameterError(
                "earlier and later of OrderSpend must be at least 0, and its parts no longer than `longest`"
            )

    @property
    def unit_charge(self) -> Fraction:
        """The price of a window that meets a part."""
        return self.orders * (self.longest * self.moved / self.scale + ORDER_DEFECT)

    @property
    def whole_charge(self) -> Fraction:
        """The charge if all steps change: of each of the windows that the period takes."""
        n_windows = -(-self.n_steps // self.window_length)
        return n_windows * self.unit_charge if self.parts else Fraction(0)

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return 1 for each window that pays here, or how many of the spend's own windows cover it."""
        met = np.convolve(self.weights, np.ones(window_length, dtype=np.int64)) > 0
        if self.earlier:
            met[: max(window_length - self.earlier, 0)] = False
        if self.later:
            met[self.n_steps - 1 + self.later :] = False
        return met * -(-window_length // self.window_length), self.unit_charge


@dataclass(frozen=True)
class GaussianSpend(_PartsSpend):
    """Sums over disjoint parts of a period, each with discrete Gaussian noise of its own, of parameter
    `scale`. A window is charged, in rho (Lemma 20),

        (leaves_changed * alpha_units)^2 / (2 scale^2) * sum over parts of |part in the window|^2

    in whatever leaves the customer is at each step. `parts` are rising and disjoint, not empty, all inside
    the period, counted from its first step. Others raise ParameterError.
    """

    n_steps: int
    parts: Group
    scale: Fraction
    alpha_units: int
    leaves_changed: int = 1
    currency: ClassVar[Currency] = "rho"

    @property
    def unit_charge(self) -> Fraction:
        """The price of a part with one step in the window."""
        return self.moved**2 / (2 * self.scale**2)

    @property
    def whole_charge(self) -> Fraction:
        return sum(len(part) ** 2 for part in self.parts) * self.unit_charge

    def charged(self, window_length: int) -> tuple[NDArray[Any], Fraction]:
        """Return, for each window, the sum over parts of the square of their steps inside."""
        if all(len(part) == 1 for part in self.parts):  # many, as on every step of a day in minutes
            return np.convolve(self.weights, np.ones(window_length, dtype=np.int64)), self.unit_charge
        stop = np.arange(1, self.n_steps + window_length)
        total = np.zeros(stop.size, dtype=np.int64)
        for part in self.parts:
            total += _inside(part, stop, window_length) ** 2
        return total, self.unit_charge


def check_currency(spends: Iterable[Spend], currency: Currency | None = None) -> None:
    """Raise ParameterError for spends in two currencies, or not in `currency`: no sum is a guarantee."""
    found = {spend.currency for spend in spends} | ({currency} if currency else set())
    if len(found) > 1:
        raise ParameterError(
            "charges in epsilon (Laplace and joint noise) and in rho (Gaussian noise) are never added up: a "
            "privacy budget has one of them, epsilon alone, or epsilon with a delta"
        )


def _denominator(amounts: Iterable[int | Fraction]) -> int:
    return lcm(*(amount.denominator for amount in set(amounts)))


def _in_parts(amounts: Sequence[int | Fraction], parts: int) -> list[int]:
    """Return amounts in units of 1 / parts; each distinct one is computed once."""
    counted = {amount: int(amount * parts) for amount in set(amounts)}
    return [counted[amount] for amount in amounts]


def _sliding_sums(values: Sequence[int], window_length: int) -> NDArray[np.object_]:
    """Return the sums over each window of a row that overlaps `values`, of any size of integer."""
    lead = window_length - 1
    running = np.cumsum(np.array([0] * (lead + 1) + list(values) + [0] * lead, dtype=object))
    sums: NDArray[np.object_] = running[window_length:] - running[:-window_length]
    return sums


def merged(steps: Iterable[range], together: Callable[[range, range], bool]) -> list[range]:
    """Return ranges by their first steps, each joined to the one before where `together` says so of both."""
    found = list[range]()
    for own in sorted(steps, key=lambda one: one.start):
        if found and together(found[-1], own):
            found[-1] = range(found[-1].start, max(found[-1].stop, own.stop))
        else:
            found.append(own)
    return found


def overlaps(n_steps: int, window_length: int) -> NDArray[np.int64]:
    """Return the steps of a period in each window that touches it, first window first: 1, 2, …, 2, 1."""
    rising = np.arange(1, n_steps + window_length)
    return np.minimum(np.minimum(rising, rising[::-1]), min(n_steps, window_length))


def _inside(part: range, stop: NDArray[np.int64], window_length: int) -> NDArray[np.int64]:
    """Return how many steps of a part each window holds that ends before a step `stop`, (n_windows,)."""
    inside = np.minimum(stop, part.stop) - np.maximum(stop - window_length, part.start)
    return np.asarray(np.maximum(inside, 0))


# Spends and groups as JSON, whose bytes ledgers and measurements keep.

KINDS: dict[str, type[Spend]] = {
    "step": StepSpend,
    "period": PeriodSpend,
    "capped": CappedSpend,
    "joint": JointSpend,
    "gaussian": GaussianSpend,
    "order": OrderSpend,
}


def spend_to_document(spend: Spend) -> dict[str, Any]:
    """Return the spend, JSON-ready: its kind and fields, fractions as "numerator/denominator"."""
    kind = next(kind for kind, known in KINDS.items() if isinstance(spend, known))
    values = {field.name: getattr(spend, field.name) for field in fields(spend)}
    return {"kind": kind} | {
        name: _plain(value)
        if isinstance(value, tuple)
        else str(value)
        if isinstance(value, Fraction)
        else value
        for name, value in values.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, range):
        return [value.start, value.stop]
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    # a whole number is written as one, whatever its type, so that documents are stable
    return int(value) if value == int(value) else str(value)


def spend_from_document(document: Mapping[str, Any]) -> Spend:
    """Return the spend that `spend_to_document` wrote; one that cannot be priced is refused."""
    try:
        kind = KINDS.get(document.get("kind", ""))
        if kind is None:
            raise ParameterError(
                f"a spend of kind {document.get('kind')!r} cannot be priced; known kinds: {', '.join(KINDS)}"
            )
        given = {"taken_weights": [], **document}  # which older ledgers lack
        found: Spend = kind(**{one.name: _READ.get(one.name, int)(given[one.name]) for one in fields(kind)})
        return found
    except ParameterError:
        raise
    except (KeyError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
        raise ParameterError(
            "a spend lacks a field for its price: another version of OptStream wrote it; read it with that"
        ) from error


def _weight(text: str | int) -> int | Fraction:
    if type(text) is int:
        return text
    weight = exact_from_text(text)
    return weight.numerator if weight.denominator == 1 else weight


def _weights(listed: Iterable[str | int]) -> tuple[int | Fraction, ...]:
    return tuple(map(_weight, listed))


def _parts(listed: object) -> Group:
    if not isinstance(listed, list) or any(list(map(type, part)) != [int, int] for part in listed):
        raise TypeError("parts are lists of two integers")
    return tuple(range(*part) for part in listed)


def groups_from_document(document: object) -> tuple[Group, ...]:
    """Return the groups of a spend's document, unchecked; else TypeError or ValueError."""
    if not isinstance(document, list):
        raise TypeError("groups are lists of parts")
    return tuple(map(_parts, document))


_READ: Mapping[str, Callable[[Any], Any]] = {
    "stage": str,
    "scale": exact_from_text,
    "cap": _weight,
    "weights": _weights,
    "taken_weights": _weights,
    "charges": lambda listed: tuple(map(Fraction, _weights(listed))),
    "taken": lambda listed: tuple(map(int, listed)),
    "groups": groups_from_document,
    "parts": _parts,
}
"""How fields are read; those that are not listed are whole numbers."""
