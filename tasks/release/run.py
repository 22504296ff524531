"""A run and the days that it holds: who releases, under which guarantee, what the ledger knows, giving up."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, lru_cache, partial
from typing import TypeVar

from optstream.errors import LedgerError
from optstream.ledger import Key, Ledger, ReleaseState, StreamTerms
from optstream.noise import NoiseSource, secure_noise
from tasks.config import Settings
from tasks.ingest import Reader
from tasks.release.mechanism import Mechanism, mechanism_for
from tasks.release.stages import (
    Drawn,
    Ended,
    Held,
    Lease,
    Requested,
    Stage,
    Status,
    Unreleased,
)
from tasks.trusted.files import destroy_raw, fence_off

PUBLISHED_IN = "published"
"""In the terms' document: where other streams of the privacy budget look for the head of this one."""
BY_THE_HOUR = ", by the hour"
"""In the terms' calendar: no stream goes over from days to hours, which would be released twice."""
LEASE = timedelta(minutes=15)
PATIENCE = timedelta(minutes=10)
MOST_MECHANISMS = 32
"""In memory: those of a month."""
HeldDay = TypeVar("HeldDay", bound=Held)


@dataclass(frozen=True)
class Run:
    """Who releases, with what. owner: unique to the run. patience: how long a durable draw waits for the
    ledger.
    """

    settings: Settings
    ledger: Ledger
    noise: NoiseSource
    owner: str
    clock: Callable[[], datetime]
    lease: timedelta = LEASE
    restate: bool = False
    read: Reader | None = None
    patience: timedelta = PATIENCE

    @property
    def stream(self) -> str:
        return self.settings.stream.name

    def key(self, day: date, revision: int) -> Key:
        """The ledger's key of a release."""
        return Key(self.stream, day.isoformat(), revision)

    @cached_property
    def mechanism_of(self) -> Callable[[date, int], Mechanism]:
        """What gives the mechanism of a day and revision, each built once. Raises as `mechanism_for`."""
        return lru_cache(maxsize=MOST_MECHANISMS)(partial(mechanism_for, self.settings))


def asking(settings: Settings, ledger: Ledger) -> Run:
    """A run that only looks what there is to do; it holds no day."""
    return Run(settings, ledger, secure_noise(), "nobody: nothing is held", lambda: datetime.now(UTC))


def terms_of(settings: Settings) -> StreamTerms:
    """The privacy guarantee under which the configured stream is released."""
    calendar, hashes = settings.calendar, settings.dated_hierarchy.hashes
    return StreamTerms(
        stream=settings.stream.name,
        grant=settings.privacy.population,
        model=settings.model,
        hierarchy_hash=hashes[-1][1],
        calendar=f"{calendar.step_minutes} min, {calendar.time_zone}, {calendar.day}"
        + (BY_THE_HOUR if calendar.period == "hour" else ""),
        document=json.dumps({PUBLISHED_IN: str(settings.published_folder)}),
        trees=tuple((None if day is None else calendar.first_step(day), name) for day, name in hashes),
        budget_alpha=settings.privacy.budget_alpha,
    )


def enrol(run: Run) -> None:
    """Make the stream and its guarantee known to the ledger. Raises LedgerError if it has another."""
    run.ledger.enrol(terms_of(run.settings), run.clock())


def look_up(run: Run, asked: Requested) -> Unreleased | Drawn | Ended:
    """Return what the ledger knows: nothing to do, a draw to finish, or a new release or restatement."""
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
    over = found.state in (ReleaseState.PUBLISHED, ReleaseState.VOID)
    if over and run.restate:
        return Unreleased(asked.day, found.revision + 1)
    day = Unreleased(asked.day, found.revision)
    if found.withdrawn is not None:
        return day.ended(Status.WITHDRAWN, f"{found.withdrawn}; a restatement may take its place")
    match found.state:
        case ReleaseState.PUBLISHED:
            return day.ended(Status.UNCHANGED, "published already; nothing changed, nothing spent")
        case ReleaseState.VOID:
            return day.ended(Status.VOID, f"void, and stays charged: {found.reason}")
        case ReleaseState.DRAWN:
            now = run.clock()
            held = run.ledger.adopt(run.key(day.day, day.revision), run.owner, now, run.lease)
            return Drawn(day.day, day.revision, Lease(held, now))
    return day


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
        is_over = isinstance(day, Ended) and day.outcome.status not in (Status.FAILED, Status.HELD)
        if day.reservation and not is_over:
            # taken over by another run, or the ledger is away: the lease will end
            with suppress(LedgerError):
                run.ledger.end_lease(day.reservation, run.clock())


def void(run: Run, day: Stage, reason: str) -> None:
    """Give the day up, charged. The ledger first: it refuses an owner that was taken over."""
    run.ledger.void(run.key(day.day, day.revision), reason, run.clock(), day.reservation)
    destroy_raw(run.settings.measurements_of(day.day, day.revision))


def release_lease(settings: Settings, ledger: Ledger, day: date, why: str, now: datetime) -> datetime:
    """End the lease of whoever holds the newest revision of a day, and fence that run off; return its end."""
    now = ledger.lease_time(now)
    record = ledger.latest(settings.stream.name, day.isoformat())
    if record is None or record.lease_until <= now:
        raise LedgerError(f"{day} is held by no run: there is no lease to end, and any run may take it")
    fence_off(settings.measurements_of(day, record.revision))
    ledger.release_lease(record.key, why, now)
    return record.lease_until
