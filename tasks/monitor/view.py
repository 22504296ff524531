"""A stream's calendar, budget and alarms at one moment, and `status --json` of them. Nothing is changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, InstanceOf, PlainSerializer, WithJsonSchema

from optstream.catalogue.documents import Count, Instant, Part, PeriodText, Positive, Several, Text
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.ledger.show import DayHeadroom, WindowHeadroom
from tasks.monitor.alarms import DEPENDS, Alarm, alarms_of, join_alike
from tasks.monitor.days import DayState, State, days_of
from tasks.monitor.facts import Facts, Replaced, look
from tasks.release.outcomes import Budget as Spent


@dataclass(frozen=True)
class StreamView:
    """A stream's days, rising, its alarms, each of one period or none, and the facts behind them."""

    stream: str
    at: datetime
    facts: Facts
    days: tuple[DayState, ...]
    alarms: tuple[Alarm, ...]

    @property
    def joined(self) -> tuple[Alarm, ...]:
        """The alarms, one for alike ones of periods in a row."""
        return join_alike(self.alarms)

    @property
    def counts(self) -> Mapping[State, int]:
        return dict(sorted(Counter(day.state for day in self.days).items()))


def watch(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool = True) -> StreamView:
    """Look and judge; `live`: whether days up to yesterday are expected. Raises LedgerError as `look`."""
    facts = look(settings, ledger, now, live=live)
    days = days_of(settings, facts, now)
    return StreamView(settings.stream.name, now, facts, days, alarms_of(settings, facts, days, now))


# The document of `optstream status --json` and `optstream watch --json`: versioned, for machines.

Begin = Annotated[
    InstanceOf[datetime], PlainSerializer(datetime.isoformat), WithJsonSchema({"type": "string"})
]


class Level(Part):
    level: Count
    nodes: Positive
    share: str


class Window(WindowHeadroom):
    """Windows that have the same left."""

    model_config = ConfigDict(from_attributes=True)
    begin_first: Begin | None
    begin_last: Begin | None


class DayLeft(DayHeadroom):
    """A day and its remaining budget; may_be_released is null for one with a release."""

    model_config = ConfigDict(from_attributes=True)
    because: str = Field("", exclude=True)


class Budget(Spent):
    """The privacy budget, by the accountant."""

    windows: list[Window] = Field(description="those that the last release or a later one meets")
    days: list[DayLeft]


class Audit(Part):
    """The newest audit of the stream."""

    at: Instant
    passed: bool
    same_configuration: bool = Field(validation_alias="same")


class ReplacedReadings(Part):
    """Regions with readings that were clamped, absent or doubled."""

    day: PeriodText | None
    note: Text
    regions: list[Replaced]


class Status(Part):
    """Calendar, budget by the accountant, and alarms of a stream. Holds no reading; for operators."""

    format: Literal["optstream.status/3"]
    stream: str
    at: Instant
    live: bool = Field(description="whether days are expected up to yesterday")
    first_day: PeriodText | None
    last_day: PeriodText | None
    levels: Several[Level] = Field(description="root first")
    counts: dict[State, Positive]
    days: list[DayState] = Field(description="rising, without gaps")
    alarms: list[Alarm]
    budget: Budget
    last_audit: Audit | None
    replaced_readings: ReplacedReadings = Field(description="depends on readings, for the trusted zone alone")
    published: str


def status_document(settings: Settings, view: StreamView) -> dict[str, Any]:
    """The calendar, the alarms, the budget by the accountant, and the last audit."""
    facts, page = view.facts, view.facts.page
    tree = settings.tree_of(settings.local_day(view.at))
    left = {"windows": page.windows if page else (), "days": page.days if page else ()}
    document = {
        "format": "optstream.status/3",
        "stream": view.stream,
        "at": view.at,
        "live": facts.live,
        "first_day": facts.first,
        "last_day": facts.last,
        "levels": [
            {"level": number, "nodes": len(nodes), "share": str(settings.level_shares[number])}
            for number, nodes in enumerate(tree.levels)
        ],
        "counts": view.counts,
        "days": view.days,
        "alarms": view.joined,
        "budget": dict(facts.budget) | left,
        "last_audit": facts.audit,
        "replaced_readings": {"day": facts.replaced_day, "note": DEPENDS, "regions": facts.replaced()},
        "published": str(settings.published_folder),
    }
    return Status.model_validate(document).model_dump(mode="json", by_alias=True)
