"""What people are told: outcomes and budget as plain tables, free of any reading."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, PlainSerializer, WithJsonSchema

from optstream.ledger import Ledger
from optstream.privacy import PrivacyModel
from optstream.privacy.model import Currency
from optstream.stream import Calendar
from tasks.config import Settings
from tasks.release.stages import Ended

Exact = Annotated[
    InstanceOf[Fraction] | float,
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": "^(-?[0-9]+(/[0-9]+)?|-?inf)$"}),
]
"""An exact amount, which JSON has as a text; infinite where noise was compromised."""


class Printed(BaseModel):
    """What a command prints: a frozen value, which `--json` writes as it is."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, serialize_by_alias=True
    )

    def to_json(self) -> dict[str, Any]:
        """Return the document of `--json`."""
        return self.model_dump(mode="json")


def as_float(name: str, **others: Any) -> Any:
    """Return the field that has an earlier one's amount as a float to read; null where that is infinite."""

    def rounded(known: dict[str, Any]) -> float | None:
        amount = known[name]
        return None if amount is None or not isfinite(amount) else float(amount)

    return Field(default_factory=rounded, **others)


def left_out() -> Any:
    """Return the field of a key that is left out where it has no value."""
    return Field(None, exclude_if=is_none)


def is_none(value: object) -> bool:
    """Whether there is no value."""
    return value is None


@dataclass(frozen=True)
class Budget:
    """What the guarantee gives any window, and what its worst window was charged, in the model's currency."""

    model: PrivacyModel
    spent: Fraction | float

    @property
    def grant(self) -> Fraction:
        return self.model.budget

    @property
    def left(self) -> Fraction | float:
        return self.grant - self.spent

    @property
    def currency(self) -> Currency:
        return self.model.currency

    @property
    def in_words(self) -> str:
        """What any window may lose."""
        return f"epsilon {float(self.grant):g}" if self.currency == "epsilon" else self.model.in_words

    def told(self, amount: Fraction | float) -> float:
        """An amount as an epsilon: in rho, at the guarantee's delta."""
        return float(amount if isinstance(amount, float) else self.model.to_epsilon(amount))


def budget_of(settings: Settings, ledger: Ledger, days: Sequence[date] = ()) -> Budget:
    """The worst window that touches these days, or any, under the budget that the ledger has."""
    grant, calendar = settings.privacy.population, settings.calendar
    terms = ledger.terms(settings.stream.name)
    model = settings.model if terms is None else terms.model
    if terms is None:
        spent: Fraction | float = Fraction(0)
    elif days:
        spans = _spans(calendar, days)
        spent = max(ledger.window_spent(grant, span.start, len(span)).epsilon for span in spans)
    else:
        spent = ledger.worst(grant).epsilon
    return Budget(model, spent)


def _spans(calendar: Calendar, days: Sequence[date]) -> list[range]:
    """The steps of these days; days that follow each other are one span."""
    spans: list[range] = []
    for day in sorted(set(days)):
        start = calendar.first_step(day)
        stop = start + calendar.n_steps(day)
        if spans and spans[-1].stop == start:
            spans[-1] = range(spans[-1].start, stop)
        else:
            spans.append(range(start, stop))
    return spans


def outcomes_document(ended: Sequence[Ended], settings: Settings, budget: Budget) -> dict[str, Any]:
    """`optstream run --json`: versioned, for machines."""
    return {
        "format": "optstream.run/1",
        "stream": settings.stream.name,
        "days": [
            {
                "date": day.day.isoformat(),
                "status": day.outcome.status.value,
                "message": day.outcome.message,
                "file": day.outcome.file,
            }
            for day in ended
        ],
        "budget": budget_document(budget),
        "published": str(settings.published_folder),
        "validation": str(settings.validation_folder),
    }


def budget_document(budget: Budget) -> dict[str, Any]:
    """What any window may lose, what the worst one lost, and what it has left."""
    return {
        "window_steps": budget.model.window_length,
        **amount_document("grant", budget.grant),
        **amount_document("spent", budget.spent),
        **amount_document("left", budget.left),
        **({"currency": "rho", "in_words": budget.in_words} if budget.currency == "rho" else {}),
    }


def amount_document(name: str, amount: Fraction | float) -> dict[str, Any]:
    """Exact, as a fraction, and as a float for reading; JSON knows no infinity, so that is "inf" and null."""
    return {name: str(amount), f"{name}_float": float(amount) if isfinite(amount) else None}
