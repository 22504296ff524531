"""What is protected: adjacency, window, amount of change, resolution."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Literal, get_args

from optstream.errors import ParameterError
from optstream.privacy.exact import Exact, exact, whole

Unit = Literal["customer", "roaming"]
Windows = Literal["sliding", "aligned"]
Calibration = Literal["strict", "paper"]


@dataclass(frozen=True)
class PrivacyModel:
    """(w, alpha)-indistinguishability of one customer's readings (docs/privacy.md, section 1).

    Two streams are neighbours if they differ in the readings of one customer inside one window of
    `window_length` consecutive steps, each reading by at most `alpha`. Whatever is released of one is
    at most a factor e^epsilon more likely than of the other.

    Source: Fioretto and Van Hentenryck, OptStream, Definition 3.

    Args:
        epsilon: Exact, > 0; the most that any window may lose.
        window_length: Steps.
        alpha: Unit of the readings (MW, counts); changes up to c alpha, c a whole number, cost c times
            epsilon.
        resolution: The unit in which readings are counted as integers.
        unit: "customer" (at a step, one leaf changes by at most alpha) or "roaming" (at most
            `leaves_per_step` leaves change, each by at most alpha).
        leaves_per_step: 1 for unit "customer".
        windows: "sliding" covers every window; "aligned" only those inside one period.

    Raises:
        ParameterError: Names the parameter, its legal range and what it got.
    """

    epsilon: Fraction
    window_length: int
    alpha: Fraction
    resolution: Fraction = Fraction(1, 1000)
    unit: Unit = "customer"
    leaves_per_step: int = 1
    windows: Windows = "sliding"

    def __init__(
        self,
        epsilon: Exact,
        window_length: int,
        alpha: Exact,
        resolution: Exact = "0.001",
        unit: Unit = "customer",
        leaves_per_step: int = 1,
        windows: Windows = "sliding",
    ) -> None:
        amounts = {"epsilon": epsilon, "alpha": alpha, "resolution": resolution}
        for name, given in amounts.items():
            amount = exact(given, f"{name} of PrivacyModel")
            if amount <= 0:
                raise ParameterError(f"{name} of PrivacyModel must be greater than 0; got {given!r}")
            object.__setattr__(self, name, amount)
        counts = {"window_length": window_length, "leaves_per_step": leaves_per_step}
        for name, count in counts.items():
            object.__setattr__(self, name, whole(count, f"{name} of PrivacyModel", 1))
        for name, choice, legal in (("unit", unit, get_args(Unit)), ("windows", windows, get_args(Windows))):
            if choice not in legal:
                listed = " or ".join(f'"{option}"' for option in legal)
                raise ParameterError(f"{name} of PrivacyModel must be {listed}; got {choice!r}")
            object.__setattr__(self, name, choice)
        if unit == "customer" and leaves_per_step != 1:
            raise ParameterError(
                'leaves_per_step of PrivacyModel is 1 for unit "customer"; '
                f'use unit "roaming" for more; got {leaves_per_step}'
            )

    @property
    def alpha_units(self) -> int:
        """The most by which one changed reading can move a leaf, in units of `resolution`.

        Lemma (quantisation, docs/privacy.md): readings are rounded half up to the grid, so a change of
        at most alpha moves an integer by at most ceil(alpha / resolution).
        """
        return -((-self.alpha) // self.resolution)

    def leaves_changed(self, n_leaves: int) -> int:
        """Return how many leaves one customer can change at a single step.

        Every level of the tree then moves by at most so many alpha in all: in several nodes or, where a node
        covers several of the leaves, in one.

        Args:
            n_leaves: Of the tree.

        Returns:
            At most `leaves_per_step`.
        """
        return min(self.leaves_per_step, n_leaves)

    def with_epsilon(self, epsilon: Fraction, leaves_per_step: int) -> "PrivacyModel":
        """Return the privacy guarantee that one level of a tree keeps.

        Args:
            epsilon: The level's part of it.
            leaves_per_step: As many changes at a step as the leaves below can make.

        Returns:
            The same guarantee otherwise.
        """
        return replace(self, epsilon=epsilon, leaves_per_step=leaves_per_step)

    def to_document(self) -> dict[str, str | int]:
        """Return the model as plain text and integers, for manifests and the ledger.

        Returns:
            Its fields by name, fractions as text.
        """
        return {
            field.name: str(value) if isinstance(value := getattr(self, field.name), Fraction) else value
            for field in fields(self)
        }
