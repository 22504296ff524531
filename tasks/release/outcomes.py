"""Reports to people: outcomes and budget as plain tables, without any reading."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, PlainSerializer, WithJsonSchema

from optstream.catalogue.documents import Period
from optstream.ledger import Ledger
from optstream.privacy import PrivacyModel
from optstream.privacy.model import Currency
from optstream.stream import Calendar
from tasks.config import Settings
from tasks.release.run import Ended, Status

Exact = Annotated[
    InstanceOf[Fraction] | float,
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": "^(-?[0-9]+(/[0-9]+)?|-?inf)$"}),
]
"""An exact amount, which JSON has as a text; infinite where noise was compromised."""


def listed(names: Sequence[object], most: int = 20) -> str:
    """Return names with commas between, the first ones where there are many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


class Printed(BaseModel):
    """What a command prints: a frozen value, which `--json` writes as it is."""

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        serialize_by_alias=True,
    )

    def to_json(self) -> dict[str, Any]:
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
    return value is None


def _by_epsilon(text: str) -> bool:
    return text.startswith("epsilon")  # which JSON leaves out


def _grant_words(model: PrivacyModel) -> str:
    return f"epsilon {float(model.budget):g}" if model.currency == "epsilon" else model.in_words


class Budget(Printed):
    """The budget of any window, the loss of the worst one, and its remainder, in the guarantee's currency."""

    model: InstanceOf[PrivacyModel] = Field(exclude=True)
    window_steps: int = Field(default_factory=lambda known: known["model"].window_length)
    grant: Exact = Field(default_factory=lambda known: known["model"].budget)
    grant_float: float | None = as_float("grant")
    spent: Exact
    spent_float: float | None = as_float("spent")
    left: Exact = Field(default_factory=lambda known: known["grant"] - known["spent"])
    left_float: float | None = as_float("left")
    currency: Currency = Field(default_factory=lambda known: known["model"].currency, exclude_if=_by_epsilon)
    in_words: str = Field(default_factory=lambda known: _grant_words(known["model"]), exclude_if=_by_epsilon)

    def in_epsilon(self, amount: Fraction | float) -> float:
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
        spent = max(ledger.window_spent(grant, span).epsilon for span in spans)
    else:
        spent = ledger.worst(grant).epsilon
    return Budget(model=model, spent=spent)


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


class OneOfStreams(Printed):
    """What a command did for one stream; stream: None where its configuration cannot be read."""

    stream: str | None
    exit_code: int
    summary: str
    document: dict[str, Any] | None = None


class Streams(Printed):
    """The document of each of several streams, and its exit code."""

    format: Literal["optstream.streams/1"] = "optstream.streams/1"
    streams: tuple[OneOfStreams, ...]


class ExportDocument(Printed):
    """The file that was written, of a published folder."""

    format: Literal["optstream.export/1"] = "optstream.export/1"
    file: str
    rows: int
    known_noise: tuple[tuple[Any, ...], ...] | None = left_out()


class ReportDocument(Printed):
    """The pages that were written."""

    format: Literal["optstream.report/1"] = "optstream.report/1"
    trusted: str | None
    public: str | None


class VerifiedDocument(Printed):
    """The problems of a published folder, and how it was checked."""

    format: Literal["optstream.verified/1"] = "optstream.verified/1"
    stream: str
    sequence: int | None
    days: int
    signature_checked: bool
    problems: tuple[str, ...]
    known_noise: tuple[tuple[Any, ...], ...] | None = left_out()


class DayDocument(Printed):
    model_config = ConfigDict(from_attributes=True)
    day: Period = Field(serialization_alias="date")
    status: Status
    message: str
    file: str | None


class RunDocument(Printed):
    """How each day ended, and the budget."""

    format: Literal["optstream.run/1", "optstream.backfill/1"] = "optstream.run/1"
    stream: str
    days: tuple[DayDocument, ...]
    budget: Budget
    published: str
    validation: str

    @classmethod
    def of(cls, ended: Sequence[Ended], settings: Settings, budget: Budget, **others: Any) -> Self:
        return cls(
            stream=settings.stream.name,
            days=tuple(map(DayDocument.model_validate, ended)),
            budget=budget,
            published=str(settings.published_folder),
            validation=str(settings.validation_folder),
            **others,
        )
