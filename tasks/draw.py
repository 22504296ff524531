"""Draw a reserved day's noise, once: the only step that opens the raw values (DESIGN, section 6).

Order is the guarantee here. Noise is drawn only for a reservation, once; what was drawn is durable before
anything reads it; everything after (`tasks.estimate`) reads the stored measurements and no raw value.
"""

import json
from contextlib import suppress
from dataclasses import replace

from optstream.errors import LedgerError
from optstream.ledger import ReleaseRecord
from optstream.privacy.spends import spend_to_document
from optstream.stream.state import raw_bytes, with_raw
from tasks.core_dumps import forbid_core_dumps
from tasks.inputs import keep_inputs
from tasks.mechanism import mechanism_for
from tasks.release import Run, renewed, void
from tasks.settings import Settings
from tasks.trusted_store import DrawingFile, deferred_stop, take_raw
from tasks.work import Work


def draw(run: Run, work: Work) -> Work:
    """Draw the measurements and make them durable. The only step that opens the raw values.

    A full disk, a polite stop or a refusing ledger is met before the first sample. Once one was drawn,
    any exception makes the release VOID: it stays charged, for what made it fail might depend on the draw.
    """
    work = renewed(run, work)
    reservation, period = work.reservation, work.period
    if reservation is None or period is None:
        raise LedgerError("nothing is drawn without a reservation and a period")
    # noise beside the raw values, and the state of its generator
    forbid_core_dumps()
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
        # what a mechanism learns before it draws may fail, and then nothing was drawn
        state = mechanism.prepared(state, period.first_step)
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
