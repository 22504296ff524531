"""What an audit found."""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, for one pair of neighbours.

    Attributes:
        mechanism: Its name.
        neighbours: The pair's name.
        method: "sampling" of runs, or "enumeration" of exact probabilities.
        claimed: The epsilon that the mechanism claims, at `delta`.
        lower_bound: Its true epsilon is at least this, unless the audit was unlucky, which happens with
            probability at most `error`.
        error: 0 for an enumeration.
        runs: Of each side, all told; 0 for an enumeration.
        event: The output that gave it away.
        likely: How many of `tested` runs of the likelier side showed it; 0 for an enumeration, whose
            probabilities are exact.
        unlikely: How many of the other side did.
        tested: Runs of each side that were counted.
        delta: At which it claims it; 0 for pure differential privacy.
    """

    mechanism: str
    neighbours: str
    method: Literal["sampling", "enumeration"]
    claimed: float
    lower_bound: float
    error: float
    runs: int
    event: str
    likely: int = 0
    unlikely: int = 0
    tested: int = 0
    delta: float = 0.0

    @classmethod
    def enumerated(
        cls,
        mechanism: str,
        neighbours: str,
        claimed: float,
        lower_bound: float,
        event: str,
        delta: float = 0.0,
    ) -> "AuditResult":
        """Return what was computed and not drawn: it holds for certain.

        neighbours: the pair's name. claimed: the epsilon that the mechanism claims. lower_bound: the largest
        logarithm of a ratio of probabilities. event: the output with that ratio. delta: at which it is
        claimed.
        """
        return cls(mechanism, neighbours, "enumeration", claimed, lower_bound, 0.0, 0, event, delta=delta)

    @property
    def exceeds(self) -> bool:
        """Whether the mechanism is shown to cost more than it claims."""
        return self.lower_bound > self.claimed

    def to_document(self) -> dict[str, Any]:
        """Return the result as a JSON-ready document."""
        return {**asdict(self), "confidence": 1.0 - self.error, "exceeds": self.exceeds}
