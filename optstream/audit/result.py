"""What an audit found."""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on the epsilon of a mechanism, for one pair of neighbours.

    claimed: the epsilon that the mechanism claims. lower_bound: its true epsilon is at least this, unless
    the audit was unlucky, which happens with probability at most `error`. runs: of each side, all told.
    event: the output that gave it away. likely, unlikely: how many of `tested` runs of either side showed it;
    for an enumeration they are 0, for its probabilities are exact and it errs with probability 0.
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

    @classmethod
    def enumerated(
        cls, mechanism: str, neighbours: str, claimed: float, lower_bound: float, event: str
    ) -> "AuditResult":
        """Return what was computed and not drawn: it holds for certain."""
        return cls(mechanism, neighbours, "enumeration", claimed, lower_bound, error=0.0, runs=0, event=event)

    @property
    def exceeds(self) -> bool:
        """Whether the mechanism is shown to cost more than it claims."""
        return self.lower_bound > self.claimed

    def to_document(self) -> dict[str, Any]:
        """Return the result as a JSON-ready document."""
        return {**asdict(self), "confidence": 1.0 - self.error, "exceeds": self.exceeds}
