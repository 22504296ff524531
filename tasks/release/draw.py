"""Draw a reserved day's noise, once: the only step that opens the raw values; its draw is durable."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from time import monotonic, sleep

from optstream.errors import LedgerError, LedgerUnavailableError, NoiseError
from optstream.ledger import ReleaseState, Reservation
from optstream.measurement.sums import with_customers
from optstream.noise import NoiseSource
from optstream.privacy import Spend
from optstream.privacy.spends import CUSTOMERS, spend_to_document
from optstream.stream import Measured
from optstream.stream.private_period import public_part, raw_bytes, with_raw
from tasks.release.lineage import record_of_owner
from tasks.release.mechanism import mechanism_for
from tasks.release.run import Charged, Drawn, Held, Reserved, Run, renewed, void
from tasks.release.statement import facts_of_draw
from tasks.release.witness import bear_witness
from tasks.trusted.covariates import read_covariates
from tasks.trusted.files import (
    DrawingFile,
    deferred_stop,
    forbid_core_dumps,
    is_failure,
    leave_raw,
    take_raw,
    take_up,
    unexpected,
    whole_draw,
)

PAUSE = timedelta(seconds=0.5)  # between two tries to record a draw
Durable = tuple[str, tuple[Spend, ...]]  # the hash of durable measurements, and their spends


@contextmanager
def held(run: Run, reservation: Reservation) -> Iterator[None]:
    """Renew the lease until the block ends: slow draws must not be given up (docs/privacy.md, section 5)."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(run.lease.total_seconds() / 3):
            try:
                run.ledger.renew(reservation, run.clock(), run.lease)
            except LedgerUnavailableError:
                continue
            except LedgerError:  # taken over or over: recording the draw reports it
                return

    renewing = threading.Thread(target=renew, name="lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()


def make_ready(noise: NoiseSource) -> None:
    """Load what noise needs, and throw a sample away. Raises NoiseError if it cannot be drawn here."""
    try:
        noise.discrete_laplace(1.0, (1,))
    except NoiseError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        raise NoiseError(
            f"no noise can be drawn here ({unexpected(error)}), and nothing was; `optstream doctor` tries it "
            "too. Mend the installation, then run again"
        ) from error


def draw(run: Run, day: Charged) -> Drawn:
    """Draw the measurements and make them durable. What can fail beforehand fails before the first sample; an
    exception between that and durable measurements makes the release VOID, for it might depend on the draw.
    """
    day = renewed(run, day)
    # noise next to the raw values, and the state of its generator
    forbid_core_dumps()
    with deferred_stop() as stops:
        folder = run.settings.measurements_of(day.day, day.revision)
        file = DrawingFile(folder, day.reservation.fencing_token)
        if file.has_raised():
            # an earlier owner raised and could not say so: an exception might depend on the draw
            void(run, day, "an earlier run raised after its first noise sample")
            raise LedgerError("void, and stays charged: an earlier run raised after its first noise sample")
        with held(run, day.reservation):
            durable = _drawn(run, day, file) if isinstance(day, Reserved) else _taken_up(run, day)
            _record(run, day, file, durable, stops)
        with suppress(OSError):  # it is DRAWN and durable: files that stay next to it cost no day
            if not isinstance(day, Reserved):
                file.destroy_orphans()
            file.settle()
    return Drawn(day.day, day.revision, day.lease)


def _drawn(run: Run, day: Reserved, file: DrawingFile) -> Durable:
    make_ready(run.noise)
    settings, memory = run.settings, day.memory
    mechanism = informed = run.mechanism_of(day.day, day.revision)
    record = run.record(day.day, day.revision)
    if known := read_covariates(settings, day.day).read:  # public, and changes neither spends nor noise
        informed = mechanism_for(settings, day.day, day.revision, known)
    # Taken permanently: should this draw die, the next one starts without it, and no raw state serves twice.
    raw = take_raw(memory.folder, memory.digest)
    goes_on = bool(raw and mechanism.adaptive and not memory.closed)
    state = with_raw(memory.state, raw) if raw and goes_on else memory.state
    # learning before the draw may fail, and then nothing was drawn
    state = informed.prepared(state, day.period.first_step)
    # bytes that surely hold the measurements, their spends, and the memory before and after them
    memory_bytes = len(json.dumps(public_part(state)))
    cells = 32 * len(settings.tree_of(day.day).nodes) * day.period.n_steps
    spends = sum(len(json.dumps(spend_to_document(spend))) for spend in (record.spends if record else ()))
    size = 2**16 + 4 * spends + 4 * memory_bytes + (4 + 2 * len(settings.features_)) * cells
    file.preallocate(size, 2**12 + len(raw or b"") + cells)
    try:
        kept = record_of_owner(settings, day.day, day.revision, day.reservation.fencing_token)
        kept.keep(day.inputs, facts_of_draw(settings, day.day, day.revision, mechanism))
        _begin(run, day, file, goes_on)
    except BaseException:
        with suppress(OSError):  # else it is taken for the draw of another run
            file.free()
        raise
    try:
        measured = mechanism.measure(day.period, noise=run.noise, state=state)
        for spend in record.spends if record else ():
            if spend.stage == CUSTOMERS:
                measured = with_customers(measured, day.period, spend, run.noise)
        durable = file.fill(measured.to_bytes(), raw_bytes(measured.state)), measured.spends
    except BaseException as error:
        _give_up(run, day, file, f"{type(error).__name__} after the first noise sample")
        if is_failure(error) and _is_ours(run, day):
            what = isinstance(error, OSError) and error.strerror
            raise LedgerError(
                "void, and stays charged, for it failed after the first noise sample "
                f"({what or unexpected(error)}); docs/recover.md says what a person may do"
            ) from error
        raise
    with suppress(OSError):  # a late day then has less noise to go on with, and measures less
        leave_raw(memory.folder, memory.digest, raw_bytes(measured.before))
    return durable


def _begin(run: Run, day: Reserved, file: DrawingFile, goes_on: bool) -> None:
    """Record in the ledger and with the witness that the first sample is next."""
    run.ledger.begin_draw(day.reservation, run.clock())
    try:
        if goes_on:  # checked once the draw is begun: noise that became known is not gone on from
            before = run.ledger.drawn_before(run.stream, day.period.first_step)
            if before is None or before.compromised or before.measurements_hash != day.memory.digest:
                raise LedgerError(
                    "the noise of the period before became known, or that period was given up or is another, "
                    "while this one was made ready; nothing was drawn: run it again, and its groups begin "
                    "afresh"
                )
        file.destroy_orphans()
        # after the event that says so, before the first sample: a ledger that forgets it is noticed
        bear_witness(run.settings, run.ledger)
    except BaseException:
        with suppress(LedgerError):  # else it counts as a death
            run.ledger.call_off_draw(day.reservation, run.clock())
        raise


def _taken_up(run: Run, day: Charged) -> Durable:
    """Make the whole draw that a dead owner left this owner's. Raises LedgerError if it is gone."""
    settings, token = run.settings, day.reservation.fencing_token
    found = whole_draw(settings.measurements_of(day.day, day.revision))
    if found is None:
        raise LedgerError(
            "the measurements that an earlier run drew were here a moment ago and are gone: put them back "
            "before the next run, which else takes that draw for lost"
        )
    measured = Measured.from_bytes(found.data)
    record_of_owner(settings, day.day, day.revision, found.token).hand_over(token)
    take_up(found, token)
    return found.digest, measured.spends


def _record(run: Run, day: Held, file: DrawingFile, durable: Durable, stops: Sequence[int]) -> None:
    """Record durable measurements in the ledger, patiently; where it refuses them, they are destroyed."""
    # the database may take long to refuse, which counts as well
    until = monotonic() + run.patience.total_seconds()
    while True:
        try:
            run.ledger.record_drawn(day.reservation, *durable, run.clock())
            return
        except LedgerUnavailableError as error:
            if stops or monotonic() >= until:
                raise LedgerError(
                    f"{day.day} is drawn and its measurements are durable, and the ledger's database did "
                    f"not answer. Nothing is lost and nothing will be drawn again: when it answers, run the "
                    f"day again once its lease is over. {error}"
                ) from error
            sleep(PAUSE.total_seconds())
        except LedgerError:
            if not _may_be_the_release(run, day, durable[0]):
                _give_up(run, day, file, "the ledger refused what was drawn")
            raise


def _may_be_the_release(run: Run, day: Held, digest: str) -> bool:
    """Whether the measurements may be the release: in the ledger, or whole for the next owner."""
    try:
        record = run.record(day.day, day.revision)
    except LedgerError:
        return True  # not known: a file that nobody wants is destroyed by the next owner
    if record is None or record.measurements_hash == digest:
        return record is not None
    is_open = record.state is ReleaseState.RESERVED and record.drawing
    is_fenced_off = record.fencing_token != day.reservation.fencing_token
    return is_open and is_fenced_off and record.redraws == day.reservation.redraws


def _give_up(run: Run, day: Held, file: DrawingFile, reason: str) -> None:
    """Destroy the draw and make the day VOID, or leave word for the next run if the ledger is away."""
    marked = False
    if not _is_ours(run, day):
        with suppress(OSError):
            file.discard()
        return
    with suppress(OSError):
        file.mark_raised()
        file.discard()
        marked = True
    try:
        void(run, day, reason)
    except LedgerError as error:
        if _is_ours(run, day):
            if marked:
                raise
            # Neither the folder nor the ledger has the mark: the next run would take this owner for dead.
            raise LedgerError(
                f"{day.day} raised in its draw, and neither ledger nor trusted folder could record it: "
                "do not run it again before a person has made it VOID"
            ) from error
        # another run took the day over long ago, and it is that run's now
    if marked:
        file.forget_raised()


def _is_ours(run: Run, day: Held) -> bool:
    """Whether no other run has taken the day over, as far as the ledger answers."""
    try:
        record = run.record(day.day, day.revision)
    except LedgerError:
        return True
    return record is not None and record.fencing_token == day.reservation.fencing_token
