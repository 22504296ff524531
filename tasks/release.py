"""Reserve and draw: the part of a day that touches the grant (DESIGN, section 6).

Order is the guarantee here. Noise is drawn only for a reservation, once; what was drawn is durable before
anything reads it; everything after (`tasks.estimate`) reads the stored measurements and no raw value.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from optstream.catalogue import Catalogue, find_catalogue
from optstream.catalogue.places import open_place
from optstream.errors import LedgerError
from optstream.ledger import Ledger, ReleaseRecord, ReleaseState, StreamTerms
from optstream.noise import NoiseSource
from optstream.privacy.spends import spend_to_document
from optstream.stream.state import raw_bytes, with_raw
from tasks.inputs import keep_inputs
from tasks.mechanism import mechanism_for
from tasks.memory import recall
from tasks.settings import Settings
from tasks.trusted_store import DrawingFile, deferred_stop, destroy_raw, take_raw
from tasks.work import Status, Work

PUBLISHED_IN = "published"
"""In the terms' document: where other streams of the grant look for the head of this one."""
LEASE = timedelta(minutes=15)


@dataclass(frozen=True)
class Run:
    """Who releases, with what. clock: the time, asked at each step. owner: unique to the run.

    restate: a person asks for another revision of days that were released.
    """

    settings: Settings
    ledger: Ledger
    noise: NoiseSource
    owner: str
    clock: Callable[[], datetime]
    lease: timedelta = LEASE
    restate: bool = False

    @property
    def stream(self) -> str:
        return self.settings.stream.name


def terms_of(settings: Settings) -> StreamTerms:
    """The promise under which the configured stream is released."""
    tree = json.dumps([settings.tree.nodes, settings.tree.parents])
    calendar = settings.calendar
    return StreamTerms(
        stream=settings.stream.name,
        grant=settings.privacy.population,
        model=settings.model,
        hierarchy_hash=hashlib.sha256(tree.encode()).hexdigest(),
        calibration=settings.privacy.calibration,
        calendar=f"{calendar.step_minutes} min, {calendar.time_zone}, {calendar.day}",
        document=json.dumps({PUBLISHED_IN: str(settings.published_folder)}),
    )


def enrol(run: Run) -> None:
    """Make the stream and its promise known to the ledger. Raises LedgerError if it promised otherwise."""
    run.ledger.enrol(terms_of(run.settings), run.clock())


def look_up(run: Run, work: Work) -> Work:
    """What the ledger knows of the day: nothing to do, a draw to finish, or a fresh release.

    A restatement is the next revision of what is PUBLISHED or VOID; one that was begun goes on.
    """
    found = run.ledger.latest(run.stream, work.day.isoformat())
    if found is None:
        if run.restate:
            return work.ended(Status.REFUSED, "it was never released: run it without --restate")
        return work
    over = found.state in (ReleaseState.PUBLISHED, ReleaseState.VOID)
    if over and run.restate:
        return replace(work, revision=found.revision + 1)
    work = replace(work, revision=found.revision)
    if found.withdrawn is not None:
        return work.ended(Status.WITHDRAWN, f"{found.withdrawn}; a restatement may take its place")
    match found.state:
        case ReleaseState.PUBLISHED:
            return work.ended(Status.UNCHANGED, "published already; nothing changed, nothing spent")
        case ReleaseState.VOID:
            return work.ended(Status.VOID, f"void, and stays charged: {found.reason}")
        case ReleaseState.DRAWN:
            now = run.clock()
            held = run.ledger.adopt(
                run.stream, work.day.isoformat(), found.revision, run.owner, now, run.lease
            )
            return replace(work, reservation=held, held_since=now)
    return work


@dataclass(frozen=True)
class Shown:
    """What the published folders show before anything is reserved.

    catalogue: of the stream's own folder, None where nothing was published. heads: of the ledger, as it and
    the folders of the grant's other streams carry them.
    """

    catalogue: Catalogue | None
    heads: frozenset[str]


def look_at_folders(run: Run) -> Shown:
    """What the published folders carry, to be held against the ledger (docs/privacy.md, section 5).

    Of a folder's heads the newest stands for all before it. The other streams' folders too: an older copy of
    the ledger may hold the newest head of this stream, and lack what another has spent since.
    Raises LedgerError, before anything is spent, if the folder is another stream's, or has lost its
    catalogue.
    """
    folder, value = run.settings.published_folder, run.settings.published.value
    catalogue = find_catalogue(folder)
    if catalogue is None and open_place(folder).exists("data"):
        raise LedgerError(
            f"{folder} holds data but no catalogue: a publication was cut short, or the catalogue was "
            "lost. Run the day that was being published again, or restore catalogue.json"
        )
    if catalogue and (catalogue.stream, catalogue.value_column) != (run.stream, value):
        raise LedgerError(
            f"{folder} belongs to stream {catalogue.stream!r} with column {catalogue.value_column!r}; "
            "give each stream a published folder of its own"
        )
    folders = (json.loads(terms.document).get(PUBLISHED_IN) for terms in run.ledger.siblings(run.stream))
    others = (find_catalogue(other) for other in folders if other)
    return Shown(catalogue, frozenset(found.ledger_head for found in (catalogue, *others) if found))


def reserve(run: Run, work: Work, shown: Shown) -> Work:
    """Charge the day's plan to the grant.

    Raises BudgetError, with nothing spent, if a window is full; LedgerError if the folder lists a day that
    the ledger does not know.
    """
    settings, day = run.settings, work.day
    entry = shown.catalogue.entry(day) if shown.catalogue else None
    if entry is not None and entry.revision >= work.revision:
        raise LedgerError(
            f"{settings.published_folder} lists {day} already, and the ledger does not know it: this is not "
            "the ledger that the folder was written with; bring that one back"
        )
    calendar = settings.calendar
    mechanism = mechanism_for(settings, day, work.revision)
    # Plans are functions of recorded spends: what was charged is what later days may know of earlier ones.
    memory = recall(settings, run.ledger, mechanism, day, work.revision)
    plan = mechanism.plan(calendar.n_steps(day), calendar.first_step(day), memory.state)
    now = run.clock()
    reservation = run.ledger.reserve(
        run.stream,
        day.isoformat(),
        work.revision,
        plan,
        run.owner,
        now,
        run.lease,
        catalogue_heads=shown.heads,
        terms=terms_of(settings),
        restatements_epsilon=settings.model.epsilon * settings.budget.restatement_share,
    )
    return replace(work, reservation=reservation, held_since=now, memory=memory)


def renewed(run: Run, work: Work) -> Work:
    """Hold the day for longer, once a third of the lease is over: its owner lives.

    Raises LedgerError if another run has taken the day over.
    """
    now = run.clock()
    if work.reservation is None or (work.held_since and now - work.held_since < run.lease / 3):
        return work
    run.ledger.renew(work.reservation, now, run.lease)
    return replace(work, held_since=now)


def draw(run: Run, work: Work) -> Work:
    """Draw the measurements and make them durable. The only step that opens the raw values.

    A full disk, a polite stop or a refusing ledger is met before the first sample. Once one was drawn,
    any exception makes the release VOID: it stays charged, for what made it fail might depend on the draw.
    """
    work = renewed(run, work)
    reservation, period = work.reservation, work.period
    if reservation is None or period is None:
        raise LedgerError("nothing is drawn without a reservation and a period")
    mechanism = mechanism_for(run.settings, work.day, work.revision)
    plan = run.ledger.find(run.stream, work.day.isoformat(), work.revision)
    with deferred_stop():
        file = DrawingFile(run.settings.measurements_of(work.day, work.revision), reservation.fencing_token)
        if file.has_raised():
            # Whoever drew before raised and could not say so: an exception might depend on the draw.
            void(run, work, "an earlier run raised after its first noise sample")
            raise LedgerError("void, and stays charged: an earlier run raised after its first noise sample")
        # Taken for good: should this draw die, the next one starts without it, and no raw state serves twice.
        raw = take_raw(work.memory.folder, work.memory.digest)
        state = with_raw(work.memory.state, raw) if raw and mechanism.adaptive else work.memory.state
        file.preallocate(
            _room(run.settings, work, plan), 2**12 + len(raw or b"") + _cells(run.settings, work)
        )
        keep_inputs(run.settings, work.day, work.revision, reservation.fencing_token, work.inputs)
        run.ledger.begin_draw(reservation, run.clock())
        file.destroy_orphans()
        try:
            measured = mechanism.measure(period, noise=run.noise, state=state)
            digest = file.fill(measured.to_bytes(), raw_bytes(measured.state))
            run.ledger.record_drawn(reservation, digest, measured.spends, run.clock())
        except BaseException as error:
            _give_up(run, work, file, f"{type(error).__name__} after the first noise sample")
            raise
        with suppress(OSError):  # it is DRAWN and durable: a mark that stays costs no day
            file.settle()
    return replace(work, period=None)


def let_go(run: Run, works: Iterable[Work]) -> None:
    """Free the days that failed after they were reserved, and those held until their hour: the next run need
    not wait for the lease.
    """
    for work in works:
        if work.reservation and work.outcome and work.outcome.status in (Status.FAILED, Status.HELD):
            with suppress(
                LedgerError
            ):  # taken over by another run, or the ledger is away: the lease will end
                run.ledger.let_go(work.reservation, run.clock())


def _give_up(run: Run, work: Work, file: DrawingFile, reason: str) -> None:
    """Destroy what was drawn and make the day VOID, or leave word for the next run if the ledger is away."""
    marked = True
    try:
        file.mark_raised()
        file.discard()
    except OSError:
        marked = False
    try:
        void(run, work, reason)
    except LedgerError as error:
        if _is_ours(run, work):
            if marked:
                raise
            # Neither the folder nor the ledger took the word: a next run would take this owner for dead.
            raise LedgerError(
                f"{work.day} raised in its draw, and neither ledger nor trusted folder could be told: "
                "do not run it again before a person has made it VOID"
            ) from error
        # another run took the day over long ago, and it is that run's now
    if marked:
        file.forget_raised()


def _is_ours(run: Run, work: Work) -> bool:
    """Whether no other run has taken the day over, as far as the ledger can be asked."""
    try:
        record = run.ledger.find(run.stream, work.day.isoformat(), work.revision)
    except LedgerError:
        return True
    return bool(record and work.reservation and record.fencing_token == work.reservation.fencing_token)


def _room(settings: Settings, work: Work, plan: ReleaseRecord | None) -> int:
    """Bytes that surely hold the measurements, their spends, and the memory before and after them."""
    n_features = len(settings.features_.named)
    spends = sum(len(json.dumps(spend_to_document(spend))) for spend in (plan.spends if plan else ()))
    return 2**16 + 4 * spends + 4 * work.memory.size + (4 + 2 * n_features) * _cells(settings, work)


def _cells(settings: Settings, work: Work) -> int:
    """Bytes of one number for each node and step."""
    return 32 * len(settings.tree.nodes) * (work.period.n_steps if work.period else 0)


def void(run: Run, work: Work, reason: str) -> None:
    """Give the day up: it stays charged and is never drawn again. No day goes on from its raw state.

    The ledger first: it refuses an owner that was taken over, whose successor's raw state is not its own.
    """
    run.ledger.void(run.stream, work.day.isoformat(), work.revision, reason, run.clock(), work.reservation)
    destroy_raw(run.settings.measurements_of(work.day, work.revision))
