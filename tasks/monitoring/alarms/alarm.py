"""What a person should act on: a frozen value that holds no reading, no count of rows, and no secret."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

Key = tuple[str, str, str]
"""Kind, day and node: what makes two alarms the same one."""


class Severity(StrEnum):
    """Whether a day is lost if nobody acts, or will be."""

    ALARM = "alarm"
    WARNING = "warning"


class Kind(StrEnum):
    """What happened; the name of the event is `optstream.alarm.` and this."""

    LATE = "late"
    UNKNOWN_REGION = "unknown-region"
    MISSING = "missing"
    FAILED = "failed"
    STUCK = "stuck"
    VOID = "void"
    UNLISTED = "unlisted"
    LOST = "lost"
    WITHDRAWN = "withdrawn"
    COMPROMISED = "compromised"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    BUDGET = "budget"
    LEDGER = "ledger"
    AUDIT = "audit"
    UNLIKE = "unlike-history"
    FAR = "far-from-history"
    SUSPECT = "suspect-readings"
    USER_SUITE = "user-suite"
    COVARIATE = "covariate-missing"
    CLOCK = "clock-ahead"
    NOT_BEGUN = "not-begun"
    BLIND = "blind"

    @property
    def depends_on_readings(self) -> bool:
        """Whether it may be shown in the trusted zone alone, and told to no channel."""
        return self in (Kind.SUSPECT, Kind.USER_SUITE)


@dataclass(frozen=True)
class Alarm:
    """What a person should act on; it holds no reading, no count of rows and no secret.

    words: which rule is broken, and the remedy. day, node: None where it is about none. suggestion: the node
    that was probably meant, if any. severity: whether a day is lost if nobody acts.
    """

    kind: Kind
    stream: str
    words: str
    day: date | None = None
    node: str | None = None
    suggestion: str | None = None
    severity: Severity = Severity.ALARM

    @property
    def key(self) -> Key:
        """Kind, day and node, as text: what makes two alarms the same one."""
        return (self.kind.value, "" if self.day is None else self.day.isoformat(), self.node or "")

    def to_document(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON; the day as YYYY-MM-DD."""
        return {
            "kind": self.kind.value,
            "severity": self.severity.value,
            "stream": self.stream,
            "day": None if self.day is None else self.day.isoformat(),
            "node": self.node,
            "suggestion": self.suggestion,
            "words": self.words,
        }
