"""From stored measurements to the bytes that will be published. Repeatable, and free."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import polars as pl

from data_contracts.judge import judge as judge_metrics
from data_contracts.release import CONTRACT, refusals, release_metrics
from optstream.catalogue import ReleaseStatement, find_catalogue, read_staged, stage
from optstream.errors import ContractError, LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState, Vintage
from optstream.stream import Measured
from tasks.contracts.judging import judge_by_users, keep
from tasks.contracts.results import RELEASE
from tasks.release.build_mechanism import mechanism_for
from tasks.release.day import Status, Work
from tasks.release.rows import published_rows
from tasks.release.run import Run, renewed, void
from tasks.release.statement import statement_of
from tasks.storage.private_files import NAMED, read_verified, write_private


def estimate(run: Run, work: Work) -> Work:
    """Compute the release from its stored measurements; or take up what was staged of it before."""
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
    release = mechanism_for(settings, day, revision).estimate(measured)
    rows = published_rows(settings, day, release, revision, vintage=0)
    return replace(work, rows=rows, statement=statement_of(settings, day, release, revision, vintage=0))


def judge(run: Run, works: Sequence[Work]) -> list[ContractError | None]:
    """Hold the rows that are to be published against their contract: each day's error, or None."""
    settings, now = run.settings, run.clock()
    metrics = pl.concat(
        release_metrics(
            work.day,
            rows,
            settings.tree,
            settings.features(work.day),
            value_column=settings.published.value,
            resolution=settings.resolution,
            lower_bound=settings.lower_bound,
            n_steps=settings.calendar.n_steps(work.day),
            statement=statement.to_document(),
        )
        for work in works
        for rows, statement in [_estimated(work)]
    )
    result, broken = judge_metrics(CONTRACT, metrics)
    errors = refusals(broken)
    stopped = {day: str(error) for day, error in errors.items()}
    alarms = judge_by_users(settings, RELEASE, metrics, now)
    keep(settings, result, RELEASE, [work.day for work in works], now, stopped=stopped, alarms=alarms)
    return [errors.get(work.day.isoformat()) for work in works]


def keep_staged(run: Run, work: Work) -> Work:
    """Keep the bytes to be published, and tell the ledger their hash."""
    staged = stage(*_estimated(work))
    write_private(run.settings.staging_of(work.day, work.revision) / staged.file_hash[:NAMED], staged.data)
    if work.vintage and work.reservation:
        vintage = Vintage(work.vintage, work.basis, staged.file_hash, staged.name, published=False)
        run.ledger.record_vintage(work.reservation, vintage, run.clock())
        return replace(work, rows=None, staged=staged)
    key = (run.stream, work.day.isoformat(), work.revision)
    run.ledger.record_staged(*key, staged.file_hash, staged.name, run.clock(), work.reservation)
    return replace(work, rows=None, staged=staged)


def _estimated(work: Work) -> tuple[pl.DataFrame, ReleaseStatement]:
    if work.rows is None or work.statement is None:
        raise LedgerError("nothing is staged that was not estimated")
    return work.rows, work.statement


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
