"""What a customer's readings of a month or a year lose by a release's plan, as its statement has it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text, whole

DIGITS = 4
"""Significant ones that are stated: the same figure on machines whose floats round differently."""
COMPOSED = ("draws", "windows", "plain", "rho")


@dataclass(frozen=True)
class LongSpan:
    """What all readings of one customer in several days in a row lose, each day released once by one plan.

    Attributes:
        n_days: How many days, at least 1.
        epsilon: The loss at `delta`, exact.
        delta: The most that is added to any probability beside the factor e^epsilon; between 0 and 1.
        plain_sum: The sum over all days, exact: the loss at delta 0, or rho.
        composed: What was composed, "draws" or "windows"; "plain" where that is no less than `plain_sum`,
            "rho" where `plain_sum` is that.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    n_days: int
    epsilon: Fraction
    delta: Fraction
    plain_sum: Fraction
    composed: str

    def __post_init__(self) -> None:
        whole(self.n_days, "n_days of LongSpan", 1, 2**31 - 1)
        for name in ("epsilon", "delta", "plain_sum"):
            if not isinstance(amount := getattr(self, name), Fraction) or amount < 0:
                raise ParameterError(f"{name} of LongSpan must be a Fraction of at least 0; got {amount!r}")
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta of LongSpan must be between 0 and 1; got {self.delta}")
        if self.composed not in COMPOSED:
            raise ParameterError(f"composed of LongSpan must be one of {COMPOSED}; got {self.composed!r}")

    @classmethod
    def rounded(
        cls, n_days: int, epsilon: float, delta: Fraction, plain_sum: Fraction, composed: str
    ) -> "LongSpan":
        """Return a span whose two amounts are rounded up to four significant digits.

        So the figure is the same on machines whose floats round differently, and is never understated.

        Args:
            n_days: How many days, at least 1.
            epsilon: The loss at `delta`.
            delta: Between 0 and 1; not rounded.
            plain_sum: The loss at delta 0.
            composed: "draws", "windows", "plain" or "rho".

        Returns:
            The span.

        Raises:
            ParameterError: A value is outside its range; names it.
        """
        return cls(n_days, _rounded_up(Fraction(epsilon)), delta, _rounded_up(plain_sum), composed)

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-ready document.

        Returns:
            The fields by name; amounts exact, as "numerator/denominator".
        """
        amounts = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "plain_sum")}
        return {"n_days": self.n_days, **amounts, "composed": self.composed}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "LongSpan":
        """Read back what `to_document` wrote.

        Args:
            document: With the keys of the fields.

        Returns:
            The span.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A value is out of range (ParameterError), or no exact number.
            ZeroDivisionError: A denominator is 0.
        """
        epsilon, delta, plain = (
            exact_from_text(document[name]) for name in ("epsilon", "delta", "plain_sum")
        )
        return cls(document["n_days"], epsilon, delta, plain, document["composed"])


def spans_in_words(spans: Sequence[LongSpan], decimal: Callable[[Fraction], str]) -> str:
    """Return one sentence for all spans. decimal: writes an amount, rounded up."""
    in_rho = any(span.composed == "rho" for span in spans)
    told = ", ".join(
        f"in {span.n_days} days at most epsilon {decimal(span.epsilon)} at delta {float(span.delta):g} "
        f"({'rho' if in_rho else 'plain sum'} {decimal(span.plain_sum)})"
        for span in spans
    )
    holds = "rho is that of zero-concentrated privacy" if in_rho else "the plain sum holds at delta 0"
    return (
        "Where all readings of a customer on several days in a row change, this one among them, each day "
        f"released once under this plan, they lose {told}, delta being the most that is added to any "
        f"probability beside the factor e^epsilon; {holds}."
    )


def _rounded_up(amount: Fraction) -> Fraction:
    """Return the amount rounded to `DIGITS` significant digits, never less than the amount."""
    return Fraction(Context(DIGITS, ROUND_CEILING).divide(amount.numerator, amount.denominator))
