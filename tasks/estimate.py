"""From stored measurements to the bytes that will be published. Repeatable, and free."""

from contextlib import suppress
from dataclasses import replace

from data_contracts.release import judge_release
from optstream.catalogue import find_catalogue, read_staged, stage
from optstream.errors import LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState
from optstream.stream import Measured
from tasks.mechanism import mechanism_for
from tasks.release import Run, renewed, void
from tasks.rows import published_rows
from tasks.statement import statement_of
from tasks.trusted_store import NAMED, read_verified, write_private
from tasks.work import Status, Work


def estimate(run: Run, work: Work) -> Work:
    """Compute the release from its stored measurements, judge it, and keep the bytes to be published."""
    work = renewed(run, work)
    settings, day, revision = run.settings, work.day, work.revision
    record = drawn_record(run, work)
    if record.staged_hash:
        with suppress(LedgerError):
            # Another version of the code would encode other bytes: what was staged is what is published.
            kept = read_verified(settings.staging_of(day, revision), record.staged_hash)
            staged, statement = read_staged(kept)
            return replace(work, staged=staged, statement=statement)
        if _is_listed(run, work, record):
            # its run died between catalogue and ledger: readers have it, so it is not given up
            run.ledger.record_published(run.stream, day.isoformat(), revision, run.clock(), work.reservation)
            return work.ended(Status.PUBLISHED, "was published already; its trusted files are lost")
    measured = _stored(run, work, record)
    mechanism = mechanism_for(settings, day, revision)
    release = mechanism.estimate(measured)
    rows = published_rows(settings, day, release, revision, vintage=0)
    statement = statement_of(settings, day, release, revision, vintage=0)
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
    write_private(settings.staging_of(day, revision) / staged.file_hash[:NAMED], staged.data)
    run.ledger.record_staged(
        run.stream, day.isoformat(), revision, staged.file_hash, staged.name, run.clock(), work.reservation
    )
    return replace(work, staged=staged, statement=statement)


def _is_listed(run: Run, work: Work, record: ReleaseRecord) -> bool:
    """Whether the catalogue lists the very bytes that the ledger has as staged."""
    catalogue = find_catalogue(run.settings.published_folder)
    entry = catalogue.entry(work.day) if catalogue else None
    return entry is not None and entry.file_hash == record.staged_hash


def drawn_record(run: Run, work: Work) -> ReleaseRecord:
    """The ledger's record of the day. Raises LedgerError unless it is DRAWN, and so may be published."""
    record = run.ledger.find(run.stream, work.day.isoformat(), work.revision)
    if record is None or record.state is not ReleaseState.DRAWN:
        state = record.state if record else "not in it"
        raise LedgerError(f"the ledger does not have this day as DRAWN, but {state}: nothing is published")
    return record


def _stored(run: Run, work: Work, record: ReleaseRecord) -> Measured:
    """The measurements as recorded; if they are gone or differ, the release is VOID and a person decides."""
    try:
        data = read_verified(run.settings.measurements_of(work.day, work.revision), record.measurements_hash)
    except LedgerError as error:
        void(run, work, "the stored measurements are gone or were altered")
        raise LedgerError(f"void, and stays charged: {error}; it is never drawn again") from error
    return Measured.from_bytes(data)
