"""Reserve, draw, estimate: the part of a day that touches the grant (DESIGN, section 6).

Order is the guarantee here. Noise is drawn only for a reservation, once; what was drawn is durable before
anything reads it; everything after reads the stored measurements and no raw value.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path

from data_contracts.release import judge_release
from optstream.catalogue import find_catalogue, read_staged, stage
from optstream.errors import LedgerError, OptStreamError
from optstream.ledger import Ledger, ReleaseRecord, ReleaseState, StreamTerms
from optstream.noise import NoiseSource
from optstream.stream import Measured
from tasks.mechanism import mechanism_for
from tasks.rows import published_rows
from tasks.settings import Settings
from tasks.statement import statement_of
from tasks.trusted_store import PreallocatedFile, deferred_stop, named_by_hash, read_verified, write_private
from tasks.work import Status, Work

REVISION = 0
LEASE = timedelta(minutes=15)


@dataclass(frozen=True)
class Run:
    """Who releases, with what. clock: the time, asked at each step. owner: unique to the run."""

    settings: Settings
    ledger: Ledger
    noise: NoiseSource
    owner: str
    clock: Callable[[], datetime]
    lease: timedelta = LEASE

    @property
    def stream(self) -> str:
        return self.settings.stream.name


def enrol(run: Run) -> None:
    """Make the stream and its promise known to the ledger. Raises LedgerError if it promised otherwise."""
    settings = run.settings
    tree = json.dumps([settings.tree.nodes, settings.tree.parents])
    calendar = settings.calendar
    terms = StreamTerms(
        stream=run.stream,
        grant=settings.privacy.population,
        model=settings.model,
        hierarchy_hash=hashlib.sha256(tree.encode()).hexdigest(),
        calibration=settings.privacy.calibration,
        calendar=f"{calendar.step_minutes} min, {calendar.time_zone}, {calendar.day}",
    )
    run.ledger.enrol(terms, run.clock())


def look_up(run: Run, work: Work) -> Work:
    """What the ledger knows of the day: nothing to do, a draw to finish, or a fresh day."""
    found = run.ledger.find(run.stream, work.day.isoformat(), REVISION)
    match found.state if found else None:
        case ReleaseState.PUBLISHED:
            return work.ended(Status.UNCHANGED, "published already; nothing changed, nothing spent")
        case ReleaseState.VOID:
            assert found is not None
            return work.ended(Status.VOID, f"void, and stays charged: {found.reason}")
        case ReleaseState.DRAWN:
            now = run.clock()
            held = run.ledger.adopt(run.stream, work.day.isoformat(), REVISION, run.owner, now, run.lease)
            return replace(work, reservation=held)
    return work


def reserve(run: Run, work: Work) -> Work:
    """Charge the day's plan to the grant. Raises BudgetError, with nothing spent, if a window is full."""
    settings, day = run.settings, work.day
    calendar = settings.calendar
    mechanism, first_step, n_steps = (
        mechanism_for(settings, day),
        calendar.first_step(day),
        calendar.n_steps(day),
    )
    # Plans are functions of recorded spends: what was charged is what later days may know of earlier ones.
    state = mechanism.points_of(run.ledger.charged_near(run.stream, first_step, n_steps))
    plan = mechanism.plan(n_steps, first_step, state)
    catalogue = find_catalogue(settings.published_folder)
    reservation = run.ledger.reserve(
        run.stream,
        day.isoformat(),
        REVISION,
        plan,
        run.owner,
        run.clock(),
        run.lease,
        catalogue_head=catalogue.ledger_head if catalogue else None,
    )
    return replace(work, reservation=reservation, state=state)


def draw(run: Run, work: Work) -> Work:
    """Draw the measurements and make them durable. The only step that opens the raw values.

    A full disk, a polite stop or a refusing ledger is met before the first sample. Once one was drawn,
    any exception makes the release VOID: it stays charged, for what made it fail might depend on the draw.
    """
    reservation, period = work.reservation, work.period
    if reservation is None or period is None:
        raise LedgerError("nothing is drawn without a reservation and a period")
    mechanism = mechanism_for(run.settings, work.day)
    with deferred_stop():
        room = _room(run.settings, period.n_steps)
        file = PreallocatedFile(*_place(run.settings, work.day), reservation.fencing_token, room)
        run.ledger.begin_draw(reservation, run.clock())
        file.destroy_orphans()
        try:
            measured = mechanism.measure(period, noise=run.noise, state=work.state)
            digest = file.fill(measured.to_bytes())
            run.ledger.record_drawn(reservation, digest, measured.spends, run.clock())
        except BaseException as error:
            file.discard()
            reason = f"{type(error).__name__} after the first noise sample"
            run.ledger.void(run.stream, work.day.isoformat(), REVISION, reason, run.clock(), reservation)
            raise
    return replace(work, period=None)


def estimate(run: Run, work: Work) -> Work:
    """Compute the release from its stored measurements, judge it, and keep the bytes to be published."""
    settings, day = run.settings, work.day
    record = _drawn(run, work)
    if record.staged_hash:
        with suppress(LedgerError):
            # Another version of the code would encode other bytes: what was staged is what is published.
            kept = read_verified(*_staging(settings, day), record.staged_hash)
            staged, statement = read_staged(kept)
            return replace(work, staged=staged, statement=statement)
    measured = _stored(run, work, record)
    mechanism = mechanism_for(settings, day)
    release = mechanism.estimate(measured)
    rows = published_rows(settings, day, release, REVISION, vintage=0)
    statement = statement_of(settings, day, release, REVISION, vintage=0)
    judge_release(
        rows,
        settings.tree,
        settings.features(day),
        value_column=settings.published.value,
        resolution=settings.resolution,
        lower_bound=settings.lower_bound,
        n_steps=settings.calendar.n_steps(day),
        statement=statement.to_document(),
    )
    staged = stage(rows, statement)
    write_private(named_by_hash(*_staging(settings, day), staged.file_hash), staged.data)
    run.ledger.record_staged(
        run.stream, day.isoformat(), REVISION, staged.file_hash, staged.name, run.clock(), work.reservation
    )
    return replace(work, staged=staged, statement=statement)


def _place(settings: Settings, day: date) -> tuple[Path, str]:
    """Where the day's measurements are kept: folder in the trusted zone, and stem of the file's name."""
    return settings.measurements_folder / settings.stream.name, f"{day}-r{REVISION}"


def _staging(settings: Settings, day: date) -> tuple[Path, str]:
    """Where the bytes to be published are kept until they are."""
    return settings.staging_folder / settings.stream.name, f"{day}-r{REVISION}"


def _drawn(run: Run, work: Work) -> ReleaseRecord:
    record = run.ledger.find(run.stream, work.day.isoformat(), REVISION)
    if record is None or record.state is not ReleaseState.DRAWN:
        raise LedgerError("the ledger has no measurements of this day to estimate from")
    return record


def _stored(run: Run, work: Work, record: ReleaseRecord) -> Measured:
    """The measurements as recorded; if they are gone or differ, the release is VOID and a person decides."""
    try:
        data = read_verified(*_place(run.settings, work.day), record.measurements_hash)
        return Measured.from_bytes(data)
    except OptStreamError as error:
        reason = "the stored measurements are gone or were altered"
        run.ledger.void(run.stream, work.day.isoformat(), REVISION, reason, run.clock(), work.reservation)
        raise LedgerError(f"void, and stays charged: {error}; it is never drawn again") from error


def _room(settings: Settings, n_steps: int) -> int:
    """Bytes that surely hold the measurements: every node and step four times over, and their spends."""
    return 2**20 + 128 * len(settings.tree.nodes) * n_steps
