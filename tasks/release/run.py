"""A run, and the stages of a day's release, a frozen type for each: Requested, Unreleased, Found, Ingested,
Judged, Reserved, Drawn, Estimated, Staged, Ended. A day that an earlier run drew joins as TakenOver or Drawn.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from os import getpid
from socket import gethostname
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from optstream.catalogue import ReleaseStatement, StagedRelease
from optstream.errors import BudgetError, ContractError, DumpError, HeldError, LedgerError, OptStreamError
from optstream.ledger import (
    Key,
    Ledger,
    ReleaseOutline,
    ReleaseRecord,
    ReleaseState,
    Reservation,
    StreamTerms,
)
from optstream.noise import NoiseSource, secure_noise
from optstream.stream import Measured, PrivatePeriod
from tasks.config import Settings
from tasks.ingest import LateDumpError, days_with_dumps, discover
from tasks.release.mechanism import Mechanism, Memory, mechanism_for
from tasks.trusted.files import destroy_raw, fence_off, is_failure, read_verified, unexpected

if TYPE_CHECKING:
    import polars as pl

    from tasks.ingest import Dump, IngestedDay, Reader


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
        return Ended(self.day, self.revision, status, message, file, free_at, self.reservation)


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
    """A day that may be drawn, once. memory: the state of earlier days."""

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
    """A release as rows that no contract judged yet. attachments: the files its statement names, by hash.
    self_check: findings of the mechanism's own, JSON-ready."""

    rows: "pl.DataFrame" = field(repr=False)
    statement: ReleaseStatement = field(repr=False)
    attachments: Mapping[str, bytes] = field(repr=False)
    self_check: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class Staged(Held):
    """A day's release as the bytes to be published, durable, whose hash the ledger has."""

    staged: StagedRelease = field(repr=False)


@dataclass(frozen=True)
class Ended(Stage):
    """A day that is over, free of readings. free_at: when another run's lease ends. reservation: if held."""

    status: Status
    message: str
    file: str | None = None
    free_at: datetime | None = None
    reservation: Reservation | None = None


Ahead = TakenOver | Drawn | Ended  # what the steps that read and reserve pass on as it is


# A step for several days: each is taken on by itself, and its errors become its end.

At = TypeVar("At", bound=Stage)
Passed = TypeVar("Passed", bound=Stage)
Next = TypeVar("Next", bound=Stage)
Result = TypeVar("Result")


class PublishedError(OptStreamError):
    """A failure after readers had the day. file: their file, in the published folder."""

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
    step: Callable[[Sequence[At]], Sequence[Result | OptStreamError | None]],
    then: Callable[[At, Result], Next],
) -> list[Next | Passed | Ended]:
    """Take the days at a stage one step on, all at once, or one by one should a library fail on them."""
    results = iter(_results([day for day in days if isinstance(day, at)], step))

    def take(day: At) -> Next:
        result = next(results)
        if isinstance(result, BaseException):
            raise result
        return then(day, cast("Result", result))

    return [_one(day, take) if isinstance(day, at) else cast("Passed", day) for day in days]


def _results(
    days: Sequence[At], step: Callable[[Sequence[At]], Sequence[Result]]
) -> list[Result | BaseException]:
    try:
        return [result for _, result in zip(days, step(days) if days else (), strict=True)]
    except BaseException as error:  # a library's text may hold a reading: it is not passed on
        if not is_failure(error):
            raise
        if len(days) == 1:
            return [error]
    return [result for day in days for result in _results([day], step)]


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


def append_followups(ended: Sequence[Ended], work: Callable[[], Sequence[Ended] | None]) -> list[Ended]:
    """Return the ended days, and those that `work` ends after them; should it fail, the last once more."""
    if not ended:
        return [*(work() or ())]
    after = list[Ended]()

    def take(day: Ended) -> Ended:
        after.extend(work() or ())
        return day

    (last,) = each(ended[-1:], Ended, take)
    if last is not ended[-1]:
        what = "only what follows the days, new estimates or pages (`optstream report` writes them)"
        words = f"{what}; the days are as reported: {last.message}"
        after.append(last.ended(last.status, words))
    return [*ended, *after]


# Who releases, under which guarantee; and which days the run holds.

PUBLISHED_IN = "published"
"""In the terms' document: where other streams of the privacy budget look for the head of this one."""
BY_THE_HOUR = ", by the hour"
"""In the terms' calendar: no stream goes over from days to hours, which would be released twice."""
LEASE = timedelta(minutes=15)
PATIENCE = timedelta(minutes=10)
MOST_MECHANISMS = 32  # in memory: those of a month
HeldDay = TypeVar("HeldDay", bound=Held)


@dataclass(frozen=True)
class Run:
    """Who releases, with what; a durable draw waits for the ledger as long as its patience lasts."""

    settings: Settings
    ledger: Ledger
    noise: NoiseSource
    owner: str
    clock: Callable[[], datetime]
    lease: timedelta = LEASE
    restate: bool = False
    read: "Reader | None" = None
    patience: timedelta = PATIENCE

    @property
    def stream(self) -> str:
        return self.settings.stream.name

    def key(self, day: date, revision: int) -> Key:
        return Key(self.stream, day.isoformat(), revision)

    def record(self, day: date, revision: int) -> ReleaseRecord | None:
        return self.ledger.find(self.key(day, revision))

    def measured(self, day: date, revision: int, digest: str | None) -> Measured:
        """The stored measurements of this hash. Raises LedgerError if they are gone or differ."""
        return Measured.from_bytes(read_verified(self.settings.measurements_of(day, revision), digest))

    @cached_property
    def mechanism_of(self) -> Callable[[date, int], Mechanism]:
        """What gives the mechanism of a day and revision, each built once. Raises as `mechanism_for`."""
        return lru_cache(maxsize=MOST_MECHANISMS)(partial(mechanism_for, self.settings))


def run_of(settings: Settings, ledger: Ledger, lease: timedelta = LEASE) -> Run:
    """A run of this process, by its clock, with real noise, under a name that no other run has."""
    owner = f"{gethostname()}:{getpid()}:{uuid4()}"
    return Run(settings, ledger, secure_noise(), owner, lambda: datetime.now(UTC), lease)


def terms_of(settings: Settings) -> StreamTerms:
    """The privacy guarantee under which the configured stream is released."""
    calendar, hashes = settings.calendar, settings.dated_hierarchy.hashes
    hourly = BY_THE_HOUR if calendar.period == "hour" else ""
    return StreamTerms(
        stream=settings.stream.name,
        grant=settings.privacy.population,
        model=settings.model,
        hierarchy_hash=hashes[-1][1],
        calendar=f"{calendar.step_minutes} min, {calendar.time_zone}, {calendar.day}{hourly}",
        document=json.dumps({PUBLISHED_IN: str(settings.published_folder)}),
        trees=tuple((None if day is None else calendar.first_step(day), name) for day, name in hashes),
        budget_alpha=settings.privacy.budget_alpha,
    )


def enrol(run: Run) -> None:
    """Make the stream and its guarantee known to the ledger. Raises LedgerError if it has another."""
    run.ledger.enrol(terms_of(run.settings), run.clock())


def look_up(run: Run, asked: Requested) -> Unreleased | Drawn | Ended:
    """Return the next stage by the ledger: nothing to do, a draw to finish, a new release or restatement."""
    run.settings.calendar.check_period(asked.day)
    found = run.ledger.latest(run.stream, asked.day.isoformat())
    if found is None:
        if run.restate:
            return asked.ended(Status.REFUSED, "it was never released: run it without --restate")
        if asked.day > (today := run.settings.local_period(run.clock())):
            return asked.ended(
                Status.REFUSED,
                f"it is {'a day' if type(today) is date else 'an hour'} to come, for in "
                f"{run.settings.stream.time_zone} it is {today}: nothing was "
                "read or spent; run it once it is over",
            )
        return Unreleased(asked.day, 0)
    if (run.restate and not found.state.is_under_way) or is_due(run.settings, asked.day, found):
        run.settings.model_of(found.revision + 1)  # which refuses one that no share is kept for
        return Unreleased(asked.day, found.revision + 1)
    day = Unreleased(asked.day, found.revision)
    if found.withdrawn is not None:
        return day.ended(Status.WITHDRAWN, f"{found.withdrawn}; a restatement may take its place")
    match found.state:
        case ReleaseState.PUBLISHED:
            settings, said = run.settings.delivered(found.revision + 1), "nothing changed, nothing spent"
            if settings is not run.settings and asked.day in days_with_dumps(settings):
                dump = discover(settings, [asked.day])[asked.day]
                said += f"; its next delivery: {dump}" if isinstance(dump, LateDumpError) else ""
            return day.ended(Status.UNCHANGED, f"published already; {said}")
        case ReleaseState.VOID:
            return day.ended(Status.VOID, f"void, and stays charged: {found.reason}")
        case ReleaseState.DRAWN:
            now = run.clock()
            held = run.ledger.adopt(run.key(day.day, day.revision), run.owner, now, run.lease)
            return Drawn(day.day, day.revision, Lease(held, now))
    return day


def is_due(settings: Settings, day: date, newest: ReleaseRecord | ReleaseOutline) -> bool:
    """Return whether the next planned revision of a day that nobody took back was delivered."""
    revision, is_lost = newest.revision + 1, newest.withdrawn is not None or newest.compromised is not None
    if revision > (settings.budget.revisions or 0) or newest.state.is_under_way or is_lost:
        return False
    return not isinstance(discover(settings.delivered(revision), [day])[day], LateDumpError)


def renewed(run: Run, day: HeldDay) -> HeldDay:
    """Hold the day for longer, once a third of the lease is over; raises LedgerError if it was taken over."""
    now = run.clock()
    if now - day.lease.since < run.lease / 3:
        return day
    run.ledger.renew(day.reservation, now, run.lease)
    return replace(day, lease=Lease(day.reservation, now))


def let_go(run: Run, days: Iterable[Stage]) -> None:
    """Free the days that failed, are held until their hour, or are under way: this run is over."""
    for day in days:
        is_over = isinstance(day, Ended) and day.status not in (Status.FAILED, Status.HELD)
        if day.reservation and not is_over:
            # taken over by another run, or the ledger is away: the lease will end
            with suppress(LedgerError):
                run.ledger.end_lease(day.reservation, run.clock())


def void(run: Run, day: Stage, reason: str) -> None:
    """Give the day up, charged. The ledger first: it refuses an owner that was taken over."""
    run.ledger.void(run.key(day.day, day.revision), reason, run.clock(), day.reservation)
    destroy_raw(run.settings.measurements_of(day.day, day.revision))


def release_lease(settings: Settings, ledger: Ledger, day: date, why: str, now: datetime) -> datetime:
    """End the lease on the newest revision of a day and fence its run off; return the end."""
    now = ledger.lease_time(now)
    record = ledger.latest(settings.stream.name, day.isoformat())
    if record is None or record.lease_until <= now:
        raise LedgerError(f"{day} is held by no run: there is no lease to end, and any run may take it")
    fence_off(settings.measurements_of(day, record.revision))
    ledger.release_lease(record.key, why, now)
    return record.lease_until
