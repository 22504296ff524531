"""From stored measurements to the bytes that will be published. Repeatable, and free."""

from contextlib import suppress
from dataclasses import replace

from optstream.catalogue import StagedRelease, find_catalogue, read_staged, stage
from optstream.errors import LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState
from optstream.mechanisms import Release
from optstream.mechanisms.base import Mechanism
from optstream.stream import Measured
from tasks.release.run import Run, renewed, void
from tasks.release.stages import Drawn, Ended, Estimated, Stage, Staged, Status
from tasks.release.statement import described, meant_otherwise, with_files
from tasks.trusted.files import NAMED, read_verified, write_private


def estimate(run: Run, drawn: Drawn) -> Estimated | Staged | Ended:
    """Compute the release from its stored measurements; or take up what was staged of it before."""
    drawn = renewed(run, drawn)
    settings, day, revision = run.settings, drawn.day, drawn.revision
    record = drawn_record(run, drawn)
    if record.staged_hash:
        with suppress(LedgerError):
            # Another version of the code would encode other bytes: what was staged is what is published.
            kept = read_verified(settings.staging_of(day, revision), record.staged_hash)
            staged, statement = read_staged(kept)
            whole = with_files(run, day, staged, statement, lambda: _release(run, drawn, record)[1])
            return Staged(day, revision, drawn.lease, whole, statement)
        catalogue = find_catalogue(run.settings.published_folder)
        entry = catalogue.entry(day) if catalogue else None
        if entry is not None and entry.file_hash == record.staged_hash:
            # its run died between catalogue and ledger: readers have it, so it is not given up
            run.ledger.record_published(run.stream, day.isoformat(), revision, run.clock(), drawn.reservation)
            return drawn.ended(Status.PUBLISHED, "was published already; its trusted files are lost")
    mechanism, release = _release(run, drawn, record)
    rows, statement, beside = described(settings, record, 0, mechanism, release)
    return Estimated(day, revision, drawn.lease, rows, statement, beside=beside)


def _release(run: Run, drawn: Drawn, record: ReleaseRecord) -> tuple[Mechanism, Release]:
    """The release of the measurements as recorded; VOID if they are gone or differ, and a person decides."""
    mechanism = run.mechanism_of(drawn.day, drawn.revision)
    folder = run.settings.measurements_of(drawn.day, drawn.revision)
    try:
        data = read_verified(folder, record.measurements_hash)
    except LedgerError as error:
        void(run, drawn, "the stored measurements are gone or were altered")
        raise LedgerError(f"void, and stays charged: {error}; it is never drawn again") from error
    if otherwise := meant_otherwise(run.settings, drawn.day, record):
        raise LedgerError(
            f"{otherwise}: bring that back until the day is published, or `optstream withdraw --date "
            f"{drawn.day} --reason WHY` gives it up"
        )
    return mechanism, mechanism.estimate(Measured.from_bytes(data))


def keep_staged(run: Run, day: Estimated) -> Staged:
    """Keep the bytes to be published, and tell the ledger their hash."""
    staged, key = keep_bytes(run, day), (run.stream, day.day.isoformat(), day.revision)
    run.ledger.record_staged(*key, staged.file_hash, staged.name, run.clock(), day.reservation)
    return Staged(day.day, day.revision, day.lease, staged, day.statement)


def keep_bytes(run: Run, day: Estimated) -> StagedRelease:
    """Write the bytes to be published into the staging, durable: of the files beside the release, too."""
    staged = replace(stage(day.rows, day.statement), beside=day.beside)
    folder = run.settings.staging_of(day.day, day.revision)
    for digest, data in day.beside.items():
        write_private(folder / digest[:NAMED], data)
    write_private(folder / staged.file_hash[:NAMED], staged.data)
    return staged


def drawn_record(run: Run, day: Stage) -> ReleaseRecord:
    """The ledger's record of the day. Raises LedgerError unless it is DRAWN, and so may be published."""
    record = run.ledger.find(run.stream, day.day.isoformat(), day.revision)
    if record is None or record.state is not ReleaseState.DRAWN:
        state = record.state if record else "not in it"
        raise LedgerError(f"the ledger does not have this day as DRAWN, but {state}: nothing is published")
    return record
