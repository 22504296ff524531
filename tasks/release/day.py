"""The stages of a day's release: a frozen type for each, which a step takes and makes the next one of.

    Requested, Unreleased, Found, Ingested, Judged, Reserved, Drawn, Estimated, Staged, Ended

A day that an earlier run drew joins as TakenOver or Drawn, and any day may end at any step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from optstream.catalogue import ReleaseStatement, StagedRelease
from optstream.ledger import Reservation
from optstream.stream import PrivatePeriod
from tasks.release.carry_over import Memory

if TYPE_CHECKING:
    import polars as pl

    from tasks.ingest import Dump, IngestedDay


class Status(StrEnum):
    """How a day ended."""

    PUBLISHED = "published"
    UNCHANGED = "published already"
    WITHDRAWN = "withdrawn"
    HELD = "held"
    BUSY = "with another run"
    WAITING = "waiting"
    REFUSED = "refused"
    VOID = "void"
    FAILED = "failed"

    @property
    def is_good(self) -> bool:
        """Whether nothing is left to do now: the release is published, held until its hour, or taken back."""
        return self in (Status.PUBLISHED, Status.UNCHANGED, Status.WITHDRAWN, Status.HELD)


@dataclass(frozen=True)
class Outcome:
    """The end of a day's work, in words that hold no reading.

    file: what was published, in its folder, also where something failed after that. free_at: of a day that
    is with another run, until when at least.
    """

    status: Status
    message: str
    file: str | None = None
    free_at: datetime | None = None


@dataclass(frozen=True)
class Stage:
    """One revision of a day on its way. No repr of a stage shows a reading."""

    day: date
    revision: int

    def ended(
        self, status: Status, message: str, file: str | None = None, free_at: datetime | None = None
    ) -> "Ended":
        """Return the same day, over, without its raw values."""
        return Ended(self.day, self.revision, Outcome(status, message, file, free_at), reservation_of(self))


@dataclass(frozen=True)
class Requested(Stage):
    """A day that somebody asks for: nothing is known of it yet."""

    revision: int = 0


@dataclass(frozen=True)
class Unreleased(Stage):
    """A revision that nobody has drawn: it needs the day's dump."""


@dataclass(frozen=True)
class Found(Stage):
    """A day whose dump is complete."""

    dump: "Dump"


@dataclass(frozen=True)
class Ingested(Stage):
    """A day whose dump is read. inputs: keyed hashes of its files."""

    read: "IngestedDay" = field(repr=False)
    inputs: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Judged(Stage):
    """A day that its contracts let pass."""

    period: PrivatePeriod
    inputs: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Lease:
    """That a run holds a day. since: when the lease was last taken."""

    reservation: Reservation
    since: datetime


@dataclass(frozen=True)
class Held(Stage):
    """A day that the ledger has given to this run."""

    lease: Lease

    @property
    def reservation(self) -> Reservation:
        return self.lease.reservation


@dataclass(frozen=True)
class Charged(Held):
    """A day that is charged, and that the ledger does not have as DRAWN."""


@dataclass(frozen=True)
class Reserved(Charged):
    """A day that may be drawn, once. memory: what it goes on from."""

    period: PrivatePeriod
    inputs: Mapping[str, str] = field(repr=False)
    memory: Memory = field(repr=False)


@dataclass(frozen=True)
class TakenOver(Charged):
    """A day whose dead owner left the whole measurements: they are to be recorded, not drawn."""


@dataclass(frozen=True)
class Drawn(Held):
    """A day that the ledger has as DRAWN, with durable measurements. Its raw values are gone."""


@dataclass(frozen=True)
class Estimated(Held):
    """A release as rows that no contract judged yet. beside: the files that its statement names, by hash."""

    rows: "pl.DataFrame" = field(repr=False)
    statement: ReleaseStatement = field(repr=False)
    beside: Mapping[str, bytes] = field(default_factory=dict, repr=False, kw_only=True)


@dataclass(frozen=True)
class Staged(Held):
    """A day's release as the bytes to be published, durable, whose hash the ledger has."""

    staged: StagedRelease = field(repr=False)
    statement: ReleaseStatement = field(repr=False)


@dataclass(frozen=True)
class Ended(Stage):
    """A day that is over. reservation: of a day that was held."""

    outcome: Outcome
    reservation: Reservation | None = None


Ahead = TakenOver | Drawn | Ended
"""What the steps that read and reserve pass on as it is."""


def reservation_of(stage: Stage) -> Reservation | None:
    """Return what holds a day, None for one that this run does not hold."""
    return stage.reservation if isinstance(stage, Held) else None
