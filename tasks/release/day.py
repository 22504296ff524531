"""What travels between the steps of a flow: one value a day, which only ever gains."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from optstream.catalogue import ReleaseStatement, StagedRelease
from optstream.errors import BudgetError, ContractError, DumpError, HeldError, OptStreamError
from optstream.ledger import Reservation
from optstream.stream import PrivatePeriod
from tasks.release.carry_over import Memory
from tasks.storage.failures import is_failure, unexpected

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
        """Whether nothing is left to do now: the release is out, held until its hour, or taken back."""
        return self in (Status.PUBLISHED, Status.UNCHANGED, Status.WITHDRAWN, Status.HELD)


@dataclass(frozen=True)
class Outcome:
    """The end of a day's work, in words that hold no reading.

    file: what was published, in its folder, also where something failed after that. free_at: of a day that is
    with another run, until when at least.
    """

    status: Status
    message: str
    file: str | None = None
    free_at: datetime | None = None


class PublishedError(OptStreamError):
    """What failed came after readers had the day. file: what they have, in the published folder."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


@dataclass(frozen=True)
class Work:
    """One day on its way; each step fills in what the next one needs.

    Raw values are in `ingested` and `period` alone, whose reprs show none. inputs: keyed hashes. alarms: the
    file that says what was clamped or counted as absent, if anything was; it stays in the trusted zone.
    held_since: when the reservation's lease was last taken. rows: as they will be published.
    vintage, basis, later: of a new estimate of a day that is out: its number, what identifies the
    measurements that it is made of, and the day and hash of those after the day's own.
    """

    day: date
    revision: int = 0
    outcome: Outcome | None = None
    dump: "Dump | None" = None
    ingested: "IngestedDay | None" = field(default=None, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    period: PrivatePeriod | None = None
    alarms: Path | None = None
    reservation: Reservation | None = None
    held_since: datetime | None = None
    memory: Memory = field(default=Memory(), repr=False)
    rows: "pl.DataFrame | None" = field(default=None, repr=False)
    staged: StagedRelease | None = field(default=None, repr=False)
    statement: ReleaseStatement | None = field(default=None, repr=False)
    vintage: int = 0
    basis: str = ""
    later: tuple[tuple[date, str], ...] = ()

    def ended(self, status: Status, message: str, file: str | None = None) -> "Work":
        """The same day, over; its raw values are let go."""
        return replace(
            self, outcome=Outcome(status, message, file), ingested=None, period=None, rows=None, staged=None
        )


def each(works: Iterable[Work], step: Callable[[Work], Work]) -> list[Work]:
    """Take every day that is not over one step on; a day that fails becomes a value, and stops no other."""
    return [work if work.outcome else _one(work, step) for work in works]


def _one(work: Work, step: Callable[[Work], Work]) -> Work:
    try:
        return step(work)
    except HeldError as error:
        busy = work.ended(Status.BUSY, str(error))
        return replace(busy, outcome=Outcome(Status.BUSY, str(error), free_at=error.until))
    except PublishedError as error:
        return work.ended(Status.FAILED, str(error), error.file)
    except OptStreamError as error:
        refused = isinstance(error, (BudgetError, ContractError, DumpError))
        return work.ended(Status.REFUSED if refused else Status.FAILED, str(error))
    except BaseException as error:  # a library's message may hold a raw value: say only what and where
        if not is_failure(error):
            raise
        return work.ended(Status.FAILED, unexpected(error))
