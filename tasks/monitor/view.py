"""A stream's calendar, budget and alarms at one moment, and `status --json` of them. Nothing is changed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field

from optstream.catalogue.documents import (
    Count,
    Instant,
    OrAbsent,
    Part,
    PeriodText,
    Positive,
    Several,
    Text,
    absent,
)
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.monitor.alarms import DEPENDS, Alarm, alarms_of
from tasks.monitor.days import DayState, State, days_of
from tasks.monitor.facts import Facts, look
from tasks.release.outcomes import budget_document


@dataclass(frozen=True)
class StreamView:
    """A stream's days, rising, what a person should act on, and the facts that they were judged from."""

    stream: str
    at: datetime
    facts: Facts
    days: tuple[DayState, ...]
    alarms: tuple[Alarm, ...]

    @property
    def counts(self) -> Mapping[State, int]:
        """How many days are in each state."""
        return dict(sorted(Counter(day.state for day in self.days).items()))


def watch(settings: Settings, ledger: Ledger | None, now: datetime, *, live: bool = True) -> StreamView:
    """Look and judge; `live`: whether days up to yesterday are expected. Raises LedgerError as `look`."""
    facts = look(settings, ledger, now, live=live)
    days = days_of(settings, facts, now)
    return StreamView(settings.stream.name, now, facts, days, alarms_of(settings, facts, days, now))


# The document of `optstream status --json` and `optstream watch --json`: versioned, for machines.


Amount = Annotated[
    str,
    BeforeValidator(str),
    Field(pattern="^-?([0-9]+(/[0-9]+)?|inf)$", description="exact; inf where noise was compromised"),
]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(lambda share: round(share, 4))]
Begin = Annotated[str, BeforeValidator(datetime.isoformat)]


class Level(Part):
    """A level of the hierarchy."""

    level: Count
    nodes: Positive
    share: str


class Left(Part):
    """What is left, exact and to read."""

    left: Amount
    left_float: Annotated[
        float | None, BeforeValidator(lambda amount: float(amount) if isfinite(amount) else None)
    ] = Field(validation_alias=AliasPath("left"))


class Window(Left):
    """Windows that have the same left."""

    first_step: int
    last_step: int
    begin_first: Begin | None
    begin_last: Begin | None


class DayLeft(Left):
    """What a day could still be charged."""

    date: PeriodText = Field(validation_alias="day")
    may_be_released: bool | None = Field(validation_alias="may", description="null for a day with a release")


class Budget(Part):
    """The privacy budget, by the accountant."""

    window_steps: Positive
    grant: Amount
    grant_float: float | None
    spent: Amount
    spent_float: float | None
    left: Amount
    left_float: float | None
    currency: OrAbsent[Literal["rho"]] = absent("where amounts are rho of zero-concentrated privacy")
    in_words: OrAbsent[Text] = absent()
    windows: list[Window] = Field(description="those that the last release or a later one meets")
    days: list[DayLeft]


class Audit(Part):
    """The newest audit of the stream."""

    at: Instant
    passed: bool
    same_configuration: bool = Field(validation_alias="same")


class Region(Part):
    """The readings of a region that were replaced, as shares."""

    region: str
    clamped: Share = Field(validation_alias=AliasPath("newest", "clamped"))
    absent: Share = Field(validation_alias=AliasPath("newest", "absent"))
    doubled: Share = Field(validation_alias=AliasPath("newest", "doubled"))
    unusable: Share = Field(validation_alias=AliasPath("newest", "unusable"))
    most: Share
    most_day: PeriodText


class ReplacedReadings(Part):
    """Regions with readings that were clamped, absent or doubled."""

    day: PeriodText | None
    note: Text
    regions: list[Region]


class Status(Part):
    """The whole document."""

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
        "alarms": view.alarms,
        "budget": {**budget_document(facts.budget).to_json(), **left},
        "last_audit": facts.audit,
        "replaced_readings": {"day": facts.replaced_day, "note": DEPENDS, "regions": facts.replaced()},
        "published": str(settings.published_folder),
    }
    return Status.model_validate(document).model_dump(mode="json", by_alias=True)
