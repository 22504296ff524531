"""What the doctor says: a place, the rule that it breaks, the remedy."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How bad: a secret is open or a release in danger; it may be; it is only worth knowing."""

    WRONG = "wrong"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """What the doctor found. place: a path, a key or a variable. No text holds a secret or a reading."""

    severity: Severity
    place: str
    rule: str
    remedy: str

    @property
    def is_bad(self) -> bool:
        """Whether somebody should act."""
        return self.severity is not Severity.NOTE


def wrong(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.WRONG, str(place), rule, remedy)


def warning(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, str(place), rule, remedy)


def note(place: object, rule: str, remedy: str) -> Finding:
    return Finding(Severity.NOTE, str(place), rule, remedy)


def doctor_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what `optstream doctor --json` prints; "sound": nothing has to be done."""
    return {
        "format": "optstream.doctor/1",
        "sound": not any(finding.is_bad for finding in findings),
        "findings": [asdict(finding) for finding in findings],
    }
