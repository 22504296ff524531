"""The privacy model: adjacency, window, amount of change, resolution."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from optstream.errors import ParameterError
from optstream.privacy.exact import Exact, exact, one_of, whole
from optstream.privacy.zero_concentrated import check_delta, epsilon_of, largest_rho

Unit = Literal["customer", "roaming"]
Windows = Literal["sliding", "aligned"]
Currency = Literal["epsilon", "rho"]
"""What charges are counted in: epsilon of pure differential privacy, or rho of zero-concentrated one."""


@dataclass(frozen=True)
class PrivacyModel:
    """(w, alpha)-indistinguishability of one customer's readings (docs/privacy.md, section 1).

    Two streams are neighbours if they differ in the readings of one customer inside one window of `window`
    consecutive steps, each reading by at most `alpha`. Any release is at most a factor e^epsilon more likely
    from one than from the other.

    Source: Fioretto and Van Hentenryck, OptStream, Definition 3. Raises ParameterError, which names
    parameter, range and value.

    Args:
        epsilon: Exact, > 0; the most that any window may lose.
        window: Steps; `window_length`, its name in stored documents, is taken too.
        alpha: Unit of the readings (MW, counts); changes up to c alpha, c a whole number, cost c times
            epsilon.
        resolution: The unit in which readings are counted as integers.
        unit: "customer" (at a step, one leaf changes by at most alpha) or "roaming" (at most
            `leaves_per_step` readings change, each by at most alpha, in any leaves of the tree, several
            perhaps in one).
        leaves_per_step: Every level moves by at most so many alpha in all; 1 for unit "customer".
        windows: "sliding", every window; "aligned", windows inside one period alone, occurs in stored
            documents of earlier versions.
        delta: Exact; 0 for pure differential privacy, whose noise is Laplace's or joint. Else in
            [1e-15, 1/1000], for Gaussian noise.
        rho: Exact, with a delta alone: the largest charge of any window; None for the largest rho that gives
            (epsilon, delta), rounded down. A part of a guarantee has a smaller one.

    Examples:
        >>> model = PrivacyModel(epsilon=1, window=48, alpha=10, resolution="0.5")
        >>> model.in_words, model.window, model.alpha_units
        ('epsilon 1', 48, 20)
        >>> PrivacyModel(epsilon=0.1, window=48, alpha=10)
        Traceback (most recent call last):
            ...
        optstream.errors.ParameterError: epsilon of PrivacyModel must be exact: an integer, or ...
    """

    epsilon: Fraction
    window_length: int
    alpha: Fraction
    resolution: Fraction = Fraction(1, 1000)
    unit: Unit = "customer"
    leaves_per_step: int = 1
    windows: Windows = "sliding"
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def __init__(
        self,
        epsilon: Exact,
        window: int | None = None,
        alpha: Exact | None = None,
        resolution: Exact = "0.001",
        unit: Unit = "customer",
        leaves_per_step: int = 1,
        windows: Windows = "sliding",
        delta: Exact = 0,
        rho: Exact | None = None,
        *,
        window_length: int | None = None,
    ) -> None:
        if (window is None) == (window_length is None) or alpha is None:
            raise ParameterError(
                "PrivacyModel needs epsilon, window (steps) and alpha (the largest change of one customer's "
                "reading), each once: such as PrivacyModel(epsilon=1, window=48, alpha=10)"
            )
        amounts = {"epsilon": epsilon, "alpha": alpha, "resolution": resolution}
        for name, given in amounts.items():
            amount = exact(given, f"{name} of PrivacyModel")
            if amount <= 0:
                raise ParameterError(f"{name} of PrivacyModel must be greater than 0; got {given!r}")
            object.__setattr__(self, name, amount)
        steps: Any = window_length if window is None else window
        object.__setattr__(self, "window_length", whole(steps, "window of PrivacyModel", 1))
        leaves = whole(leaves_per_step, "leaves_per_step of PrivacyModel", 1)
        object.__setattr__(self, "leaves_per_step", leaves)
        for name, choice, legal in (("unit", unit, get_args(Unit)), ("windows", windows, get_args(Windows))):
            one_of(choice, f"{name} of PrivacyModel", legal)
            object.__setattr__(self, name, choice)
        if unit == "customer" and leaves_per_step != 1:
            raise ParameterError(
                'leaves_per_step of PrivacyModel is 1 for unit "customer"; '
                f'use unit "roaming" for more; got {leaves_per_step}'
            )
        object.__setattr__(self, "delta", exact(delta, "delta of PrivacyModel"))
        object.__setattr__(self, "rho", self._checked_rho(rho))

    def _checked_rho(self, given: Exact | None) -> Fraction | None:
        """Return rho, or None without a delta. Raises ParameterError for more than both allow."""
        if not self.delta:
            if given is not None:
                raise ParameterError("rho of PrivacyModel is for a delta greater than 0, and there is none")
            return None
        check_delta(self.delta, "delta of PrivacyModel")
        most = largest_rho(self.epsilon, self.delta)
        rho = most if given is None else exact(given, "rho of PrivacyModel")
        if not 0 < rho <= most:
            raise ParameterError(
                f"rho of PrivacyModel must be in (0, {most}], which gives epsilon {self.epsilon} at delta "
                f"{self.delta}; got {rho}"
            )
        return rho

    @property
    def window(self) -> int:
        """The steps of a window."""
        return self.window_length

    @property
    def currency(self) -> Currency:
        """What the charges of this guarantee are counted in: "rho" with a delta, else "epsilon"."""
        return "rho" if self.delta else "epsilon"

    @property
    def budget(self) -> Fraction:
        """The largest charge of any window, in `currency`."""
        return self.epsilon if self.rho is None else self.rho

    def to_epsilon(self, amount: Fraction) -> Fraction:
        """Return a charge, at least 0, in `currency`, as an epsilon at this guarantee's delta. The epsilon of
        rho is rounded up, and never more than `epsilon` for an amount within the budget."""
        if self.rho is None:
            return amount
        found = epsilon_of(amount, self.delta)
        return min(found, self.epsilon) if amount <= self.rho else found

    @property
    def in_words(self) -> str:
        """The budget of any window, with its currency."""
        if self.rho is None:
            return f"epsilon {self.epsilon}"
        return f"rho {float(self.rho):.6g} (epsilon {float(self.epsilon):g} at delta {float(self.delta):g})"

    @property
    def pure_epsilon(self) -> Fraction:
        """Epsilon as a budget for Laplace or joint noise; ParameterError with a delta."""
        if self.delta:
            raise ParameterError(
                "this mechanism draws Laplace noise, which has no price in a privacy guarantee with a delta: "
                'leave delta out ([privacy] delta), or take a mechanism of Gaussian noise ("Gaussian")'
            )
        return self.epsilon

    @property
    def alpha_units(self) -> int:
        """The most units that a changed reading moves a leaf: readings are rounded half up (Lemma 2)."""
        return -((-self.alpha) // self.resolution)

    @property
    def moved_units(self) -> int:
        """The most units that the leaves, or the nodes of a level, move together at one step."""
        return self.leaves_per_step * self.alpha_units

    def with_budget(self, budget: Fraction) -> "PrivacyModel":
        """Return the privacy guarantee of a level of a tree, or of a stream, with its own part of the budget.
        Epsilon and delta are those of the whole where the currency is rho. Raises ParameterError unless it is
        above 0 and, in rho, within epsilon and delta."""
        return replace(self, rho=budget) if self.delta else replace(self, epsilon=budget)

    def to_document(self) -> dict[str, str | int]:
        """Return the fields as text and integers; delta and rho only where there is a delta."""
        names = [field.name for field in fields(self) if self.delta or field.name not in ("delta", "rho")]
        return {
            name: str(value) if isinstance(value := getattr(self, name), Fraction) else value
            for name in names
        }
