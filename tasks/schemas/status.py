"""What `optstream status --json` and `optstream watch --json` print."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.monitor.days import Kind, Severity, State
from tasks.schemas.fields import Count, Instant, OrAbsent, Part, Period, Positive, Several, Text

Amount = Annotated[
    str,
    Field(pattern="^-?([0-9]+(/[0-9]+)?|inf)$", description="exact; inf where noise was compromised"),
]
Share = Annotated[float, Field(ge=0, le=1)]


class Level(Part):
    """A level of the hierarchy."""

    level: Count
    nodes: Positive
    share: str


class LevelOfDay(Part):
    """How far a level has come on a day."""

    level: Count
    state: State
    nodes_without_input: Count


class Day(Part):
    """A day of the calendar."""

    date: Period
    state: State
    revision: Count | None
    file: str | None
    note: str
    waiting_for: OrAbsent[Several[str]] = Field(
        None, description="the fewest nodes that cover the leaves without a complete dump"
    )
    levels: OrAbsent[list[LevelOfDay]] = Field(None, description="a fine day has all nodes of all levels")
    days_until_raw_expires: OrAbsent[int] = Field(None, description="negative when past")
    accepted: OrAbsent[Literal[True]] = Field(None, description="a person accepted the gap")


class Alarm(Part):
    """An alarm or a warning."""

    kind: Kind
    severity: Severity
    stream: str
    day: Period | None
    node: str | None
    suggestion: str | None = Field(description="the node that was probably meant")
    words: Text


class Window(Part):
    """Windows that have the same left."""

    first_step: int
    last_step: int
    begin_first: str | None
    begin_last: str | None
    left: Amount
    left_float: float | None


class DayLeft(Part):
    """What a day could still be charged."""

    date: Period
    left: Amount
    left_float: float | None
    may_be_released: bool | None = Field(description="null for a day with a release")


class Budget(Part):
    """The privacy budget, by the accountant."""

    window_steps: Positive
    grant: Amount
    grant_float: float | None
    spent: Amount
    spent_float: float | None
    left: Amount
    left_float: float | None
    currency: OrAbsent[Literal["rho"]] = Field(
        None, description="where amounts are rho of zero-concentrated privacy"
    )
    in_words: OrAbsent[Text] = None
    windows: list[Window] = Field(description="those that the last release or a later one meets")
    days: list[DayLeft]


class Audit(Part):
    """The newest audit of the stream."""

    at: Instant
    passed: bool
    same_configuration: bool


class Region(Part):
    """The readings of a region that were replaced, as shares."""

    region: str
    clamped: Share
    absent: Share
    doubled: Share
    unusable: Share
    most: Share
    most_day: Period


class ReplacedReadings(Part):
    """Regions with readings that were clamped, absent or doubled."""

    day: Period | None
    note: Text
    regions: list[Region]


class Status(Part):
    """The whole document."""

    format: Literal["optstream.status/3"]
    stream: str
    at: Instant
    live: bool = Field(description="whether days are expected up to yesterday")
    first_day: Period | None
    last_day: Period | None
    levels: Several[Level] = Field(description="root first")
    counts: dict[State, Positive]
    days: list[Day] = Field(description="rising, without gaps")
    alarms: list[Alarm]
    budget: Budget
    last_audit: Audit | None
    replaced_readings: ReplacedReadings = Field(description="depends on readings, for the trusted zone alone")
    published: str
