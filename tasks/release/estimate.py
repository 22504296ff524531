"""From stored measurements to the bytes that will be published. Repeatable, and free."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import polars as pl

from optstream.catalogue import StagedRelease, find_catalogue, stage
from optstream.errors import ContractError, LedgerError
from optstream.ledger import ReleaseRecord, ReleaseState
from optstream.stream import Measured, period_from
from optstream.stream.calendar import ORIGIN
from tasks.release.mechanism import Mechanism, estimate_of
from tasks.release.run import Drawn, Ended, Estimated, Run, Staged, Status, renewed, void
from tasks.release.statement import Estimate, changed_since_draw, described, read_kept
from tasks.trusted.files import NAMED, write_private
from tasks.trusted.verdicts import RELEASE


def estimate(run: Run, drawn: Drawn) -> Estimated | Staged | Ended:
    """Compute the release from its stored measurements, or take up a staged one."""
    drawn = renewed(run, drawn)
    day, revision = drawn.day, drawn.revision
    record = run.record(day, revision)
    if record is None or record.state is not ReleaseState.DRAWN:
        state = record.state if record else "not in it"
        raise LedgerError(f"the ledger does not have this day as DRAWN, but {state}: nothing is published")

    def measured() -> Measured:
        """VOID if the measurements are gone or differ, and a person decides."""
        try:
            return run.measured(day, revision, record.measurements_hash)
        except LedgerError as error:
            void(run, drawn, "the stored measurements are gone or were altered")
            raise LedgerError(f"void, and stays charged: {error}; it is never drawn again") from error

    def estimated(found: Measured) -> Estimate:
        remedy = (
            ": bring that back until the day is published, or `optstream withdraw --date "
            f"{day} --reason WHY` gives it up"
        )
        return first_estimate(run, record, found, remedy)

    if record.staged_hash:
        with suppress(LedgerError):
            # another version of the code would encode other bytes: the staged bytes are published
            kept = read_kept(run, day, revision, record.staged_hash, lambda: estimated(measured()).release)
            return Staged(day, revision, drawn.lease, kept)
        catalogue = find_catalogue(run.settings.published_folder)
        entry = catalogue.entry(day) if catalogue else None
        if entry is not None and entry.file_hash == record.staged_hash:
            # its run died between catalogue and ledger: readers have it, so it is not given up
            run.ledger.record_published(run.key(day, revision), run.clock(), drawn.reservation)
            return drawn.ended(Status.PUBLISHED, "was published already; its trusted files are lost")
    estimate = estimated(found := measured())
    check = _self_check(estimate.mechanism, found)
    return Estimated(day, revision, drawn.lease, *described(run.settings, estimate), self_check=check)


def _self_check(mechanism: Mechanism, measured: Measured) -> dict[str, Any]:
    """The mechanism's findings for the watch, in noisy numbers alone."""
    found = mechanism.self_check(measured)
    tree: Any = mechanism.tree if found.levels_off else None
    unlike = [str(ORIGIN + timedelta(days=number)) for number in found.unlike]
    return {"unlike": unlike, "levels_off": [tree.level_name(level) for level in found.levels_off]}


def first_estimate(run: Run, record: ReleaseRecord, measured: Measured, remedy: str = "") -> Estimate:
    """The first estimate of stored measurements; LedgerError where the configuration would falsify it."""
    if otherwise := changed_since_draw(run.settings, record):
        raise LedgerError(f"{otherwise}{remedy}")
    day = period_from(record.period)
    mechanism = run.mechanism_of(day, record.revision)
    return Estimate(record, mechanism, estimate_of(run.settings, day, mechanism, measured))


def judge(run: Run, days: Sequence[Estimated]) -> list[ContractError | None]:
    """Return each day's error, or None where it may be published; keep the results in the trusted zone."""
    # Great Expectations takes seconds to import: only where there is something to judge
    from data_contracts.judge import judge as judge_metrics
    from data_contracts.metrics import release_metrics
    from data_contracts.suites import RELEASE_CONTRACT, refusals
    from tasks.trusted.verdicts import judge_by_users, keep

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
            n_nodes=settings.n_published(day.day) if settings.published.levels else None,
        )
        for day in days
    )
    result, broken = judge_metrics(RELEASE_CONTRACT, metrics)
    errors = refusals(broken)
    stopped = {day: str(error) for day, error in errors.items()}
    alarms = judge_by_users(settings, RELEASE, metrics, now)
    checks = {day.day.isoformat(): day.self_check for day in days}
    of_release = settings, result, RELEASE, [day.day for day in days], now
    keep(*of_release, stopped=stopped, alarms=alarms, self_checks=checks)
    return [errors.get(day.day.isoformat()) for day in days]


def keep_staged(run: Run, day: Estimated) -> Staged:
    """Keep the bytes to be published, and record their hash in the ledger."""
    staged, key = keep_bytes(run, day), run.key(day.day, day.revision)
    run.ledger.record_staged(key, staged.file_hash, staged.name, run.clock(), day.reservation)
    return Staged(day.day, day.revision, day.lease, staged)


def keep_bytes(run: Run, day: Estimated) -> StagedRelease:
    """Write the bytes to be published into the staging, durable, the other files first."""
    staged = replace(stage(day.rows, day.statement), attachments=day.attachments)
    folder = run.settings.staging_of(day.day, day.revision)
    for digest, data in (*day.attachments.items(), (staged.file_hash, staged.data)):
        write_private(folder / digest[:NAMED], data)
    return staged
