"""From stored measurements to the bytes that will be published. Repeatable, and free."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import polars as pl

from optstream.catalogue import StagedRelease, find_catalogue, read_staged, stage
from optstream.errors import ContractError, LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState
from optstream.mechanisms import Release
from optstream.mechanisms.base import Mechanism
from optstream.stream import Measured
from tasks.release.constraints import estimate_of
from tasks.release.run import Run, renewed, void
from tasks.release.stages import Drawn, Ended, Estimated, Staged, Status
from tasks.release.statement import described, meant_otherwise, with_files
from tasks.trusted.files import NAMED, read_verified, write_private
from tasks.trusted.verdicts import RELEASE


def estimate(run: Run, drawn: Drawn) -> Estimated | Staged | Ended:
    """Compute the release from its stored measurements; or take up what was staged of it before."""
    drawn = renewed(run, drawn)
    settings, day, revision = run.settings, drawn.day, drawn.revision
    record = run.ledger.find(run.key(day, revision))
    if record is None or record.state is not ReleaseState.DRAWN:
        state = record.state if record else "not in it"
        raise LedgerError(f"the ledger does not have this day as DRAWN, but {state}: nothing is published")
    if record.staged_hash:
        with suppress(LedgerError):
            # Another version of the code would encode other bytes: what was staged is what is published.
            kept = read_verified(settings.staging_of(day, revision), record.staged_hash)
            staged, statement = read_staged(kept)
            whole = with_files(run, day, staged, statement, lambda: _release(run, drawn, record)[1])
            return Staged(day, revision, drawn.lease, whole, statement)
        catalogue = find_catalogue(settings.published_folder)
        entry = catalogue.entry(day) if catalogue else None
        if entry is not None and entry.file_hash == record.staged_hash:
            # its run died between catalogue and ledger: readers have it, so it is not given up
            run.ledger.record_published(run.key(day, revision), run.clock(), drawn.reservation)
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
    return mechanism, estimate_of(run.settings, drawn.day, mechanism, Measured.from_bytes(data))


def judge(run: Run, days: Sequence[Estimated]) -> list[ContractError | None]:
    """Return each day's error, or None where it may be published; keep the results in the trusted zone."""
    # Great Expectations takes seconds to import: only where there is something to judge
    from data_contracts.judge import judge as judge_metrics
    from data_contracts.metrics import release_metrics
    from data_contracts.suites import RELEASE_CONTRACT, refusals
    from tasks.trusted.judging import judge_by_users, keep

    settings, now = run.settings, run.clock()
    metrics = pl.concat(
        release_metrics(
            day.day,
            day.rows,
            settings.tree_of(day.day),
            settings.features(day.day),
            value_column=settings.published.value,
            resolution=settings.privacy.resolution,
            lower_bound=settings.privacy.lower_bound,
            n_steps=settings.calendar.n_steps(day.day),
            statement=day.statement.to_json(),
            step_of_day=settings.calendar.step_of_day(day.day),
        )
        for day in days
    )
    result, broken = judge_metrics(RELEASE_CONTRACT, metrics)
    errors = refusals(broken)
    stopped = {day: str(error) for day, error in errors.items()}
    alarms = judge_by_users(settings, RELEASE, metrics, now)
    keep(settings, result, RELEASE, [day.day for day in days], now, stopped=stopped, alarms=alarms)
    return [errors.get(day.day.isoformat()) for day in days]


def keep_staged(run: Run, day: Estimated) -> Staged:
    """Keep the bytes to be published, and tell the ledger their hash."""
    staged, key = keep_bytes(run, day), run.key(day.day, day.revision)
    run.ledger.record_staged(key, staged.file_hash, staged.name, run.clock(), day.reservation)
    return Staged(day.day, day.revision, day.lease, staged, day.statement)


def keep_bytes(run: Run, day: Estimated) -> StagedRelease:
    """Write the bytes to be published into the staging, durable: of the files beside the release, too."""
    staged = replace(stage(day.rows, day.statement), beside=day.beside)
    folder = run.settings.staging_of(day.day, day.revision)
    for digest, data in day.beside.items():
        write_private(folder / digest[:NAMED], data)
    write_private(folder / staged.file_hash[:NAMED], staged.data)
    return staged
