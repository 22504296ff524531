"""The stages of a day's release, a frozen type for each: Requested, Unreleased, Found, Ingested, Judged,
Reserved, Drawn, Estimated, Staged, Ended. A day that an earlier run drew joins as TakenOver or Drawn.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar, cast

from optstream.catalogue import ReleaseStatement, StagedRelease
from optstream.errors import BudgetError, ContractError, DumpError, HeldError, OptStreamError
from optstream.ledger import Reservation
from optstream.stream import PrivatePeriod
from tasks.release.mechanism import Memory
from tasks.trusted.files import is_failure, unexpected

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
    """How a day ended, free of readings. free_at: when another run's lease ends."""

    status: Status
    message: str
    file: str | None = None
    free_at: datetime | None = None


@dataclass(frozen=True)
class Stage:
    """One revision of a day on its way. No repr of a stage shows a reading."""

    day: date
    revision: int

    @property
    def reservation(self) -> Reservation | None:
        """What holds the day; None for one that this run does not hold."""
        return None

    def ended(
        self, status: Status, message: str, file: str | None = None, free_at: datetime | None = None
    ) -> "Ended":
        """Return the same day, over, without its raw values."""
        return Ended(self.day, self.revision, Outcome(status, message, file, free_at), self.reservation)


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


# A step for several days: each is taken on by itself, and its errors become its end.

At = TypeVar("At", bound=Stage)
Passed = TypeVar("Passed", bound=Stage)
Next = TypeVar("Next", bound=Stage)
Result = TypeVar("Result")


class PublishedError(OptStreamError):
    """What failed came after readers had the day. file: what they have, in the published folder."""

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


def each(
    days: Iterable[At | Passed], at: type[At], step: Callable[[At], Next]
) -> list[Next | Passed | Ended]:
    """Take the days at a stage one step on, and pass the others; one that fails ends, and stops no other."""
    return [_one(day, step) if isinstance(day, at) else cast("Passed", day) for day in days]


def together(
    days: Sequence[At | Passed],
    at: type[At],
    step: Callable[[Sequence[At]], Sequence[Result]],
    then: Callable[[At, Result], Next],
) -> list[Next | Passed | Ended]:
    """Take the days at a stage one step on, all at once, or one by one should a library fail on them."""
    results = _results([day for day in days if isinstance(day, at)], step)

    def take(day: At) -> Next:
        result = results[day.day]
        if isinstance(result, BaseException):
            raise result
        return then(day, result)

    return [_one(day, take) if isinstance(day, at) else cast("Passed", day) for day in days]


def and_after(ended: Sequence[Ended], work: Callable[[], Sequence[Ended]]) -> list[Ended]:
    """The days that are over, and those that `work` ends after them; should it fail, the last once more."""
    after = list[Ended]()
    if not ended:
        return [*work()]

    def take(day: Ended) -> Ended:
        after.extend(work())
        return day

    last = each(ended[-1:], Ended, take)
    after += [
        one.ended(
            one.outcome.status,
            "only what follows the days, new estimates or pages (`optstream report` writes them); the days "
            f"are as told: {one.outcome.message}",
        )
        for one in last
        if one is not ended[-1]
    ]
    return [*ended, *after]


def _results(
    days: Sequence[At], step: Callable[[Sequence[At]], Sequence[Result]]
) -> dict[date, Result | BaseException]:
    if not days:
        return {}
    try:
        return dict(zip([day.day for day in days], step(days), strict=True))
    except BaseException as error:  # what a library says may hold a reading: it is not passed on
        if not is_failure(error):
            raise
        if len(days) == 1:
            return {days[0].day: error}
    return {day: result for one in days for day, result in _results([one], step).items()}


def _one(day: At, step: Callable[[At], Next]) -> Next | Ended:
    try:
        return step(day)
    except HeldError as error:
        return day.ended(Status.BUSY, str(error), free_at=error.until)
    except PublishedError as error:
        return day.ended(Status.FAILED, str(error), error.file)
    except OptStreamError as error:
        refused = isinstance(error, (BudgetError, ContractError, DumpError))
        return day.ended(Status.REFUSED if refused else Status.FAILED, str(error))
    except BaseException as error:  # a library's message may hold a raw value: say only what and where
        if not is_failure(error):
            raise
        return day.ended(Status.FAILED, unexpected(error))
