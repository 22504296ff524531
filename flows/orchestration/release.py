"""The release flow: wiring only. Nightly passes one day, a backfill a month; the steps are the same."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from os import getpid
from pathlib import Path
from socket import gethostname
from typing import Any
from uuid import uuid4

from prefect import flow, tags, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import task_run
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from flows.cli.console import Terminal
from flows.orchestration.artifacts import keep_artifacts
from flows.orchestration.run_names import release_name, tags_of
from flows.orchestration.workers import reader_of
from optstream.ledger import Ledger, open_ledger
from optstream.noise import secure_noise
from tasks.config import Settings, load_settings
from tasks.operations.permissions import check_trusted
from tasks.release import revise as vintage
from tasks.release import steps as chunk
from tasks.release.day import Status, Work
from tasks.release.run import LEASE, Run, enrol, let_go
from tasks.reports import write_pages

RETRIES = 2
"""Of the steps where a repeat is harmless."""

WATCHER: ContextVar[Terminal | None] = ContextVar("watcher", default=None)


@flow(
    name="optstream-release",
    flow_run_name=release_name,
    persist_result=False,
    retries=0,
    validate_parameters=False,
)
def release_days(
    config: str,
    days: list[str],
    restate: bool = False,
    lease_minutes: float = LEASE / timedelta(minutes=1),
    report: bool = True,
    revise: bool = True,
) -> list[Work]:
    """Release these days of the stream that the configuration file describes.

    restate: measure them once more, as their next revision, from the share of epsilon that is kept back.
    lease_minutes: how long the days stay with this run, should it die. report: whether to write the pages.
    revise: whether to give earlier days the new estimates that are due.

    Parameters are a path and dates: Prefect stores them in clear. Every day ends as a value; the days'
    outcomes are the flow's result, kept in memory only.
    """
    settings = load_settings(Path(config))
    check_trusted(settings)
    ledger = open_ledger(settings.ledger_url, database_time=True)
    try:
        run = replace(run_of(settings, ledger, lease_minutes), restate=restate)
        enrol(run)
        works = [Work(date.fromisoformat(day)) for day in days]
        with reader_of(settings) as read:
            works = _walk(chunk.READING, replace(run, read=read), works)
        works = [done for group in chunk.groups(run, works) for done in _walk(chunk.RELEASING, run, group)]
        let_go(run, works)
        works += revised(run) if revise else []
        if report:
            write_pages(settings, ledger, run.clock())
        keep_artifacts(settings, ledger, works)
        return works
    finally:
        ledger.close()


def run_of(settings: Settings, ledger: Ledger, lease_minutes: float) -> Run:
    """A run of this process, by its clock, with real noise, under a name that no other run has."""
    owner = f"{gethostname()}:{getpid()}:{uuid4()}"
    lease = timedelta(minutes=lease_minutes)
    return Run(settings, ledger, secure_noise(), owner, lambda: datetime.now(UTC), lease)


def revised(run: Run) -> list[Work]:
    """Give earlier days the new estimates that are due. Returns the days where that failed: they stay as
    they are.
    """
    vintage.record_listed(run)
    works = _walk(chunk.REVISING, run, vintage.due(run))
    let_go(run, works)
    return [_unrevised(work) for work in works if not work.outcome or not work.outcome.status.is_good]


def _unrevised(work: Work) -> Work:
    """Its outcome says that only a new estimate failed: the day itself stays published."""
    if work.outcome is None:
        return work
    entry = work.outcome
    words = f"only its new estimate; the day stays published as it was: {entry.message}"
    return replace(work, outcome=replace(entry, message=words))


class StepFailedError(Exception):
    """Some day failed a step that may be repeated: raised to let the orchestrator repeat it."""


def _attempt(step: chunk.Step, run: Run, works: Sequence[Work]) -> list[Work]:
    """One attempt at a step: fails whole while it has retries left; after the last, failures are values."""
    done = step.take(run, works)
    failed = [
        str(after.day)
        for before, after in zip(works, done, strict=True)
        if not before.outcome and after.outcome and after.outcome.status is Status.FAILED
    ]
    if failed and step.repeatable and task_run.run_count <= RETRIES:
        raise StepFailedError(f"{', '.join(failed)}: failed, repeating")
    return done


def _walk(steps: Sequence[chunk.Step], run: Run, works: list[Work]) -> list[Work]:
    for step in steps:
        works = _as_task(step, run, works)
    return works


def _as_task(step: chunk.Step, run: Run, works: list[Work]) -> list[Work]:
    """One step as a Prefect task: nothing cached, nothing persisted, nothing hashed."""
    pending = sum(work.outcome is None for work in works)
    if not pending:
        return works
    as_task = task(
        name=step.name,
        task_run_name=step.name,
        retries=RETRIES if step.repeatable else 0,
        retry_delay_seconds=2,
        cache_policy=NO_CACHE,
        persist_result=False,
    )(_attempt)
    watcher = WATCHER.get()
    days = f"{pending} day{'' if pending == 1 else 's'}"
    with watcher.step(f"{step.name}, {days}") if watcher else nullcontext():
        done = as_task(step, run, works)
    return done


def no_heartbeat() -> AbstractContextManager[Any]:
    """For flows that somebody watches: the thread that sends heartbeats would hold up the end of a short one
    by most of a second.
    """
    return temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})


def run_days(
    settings: Settings, days: Sequence[date], watcher: Terminal, *, restate: bool = False
) -> list[Work]:
    """Run the flow here and now, showing progress to the watcher."""
    token = WATCHER.set(watcher)
    try:
        with no_heartbeat(), tags(*tags_of(settings.stream.name)):
            works: list[Work] = release_days(str(settings.file), [day.isoformat() for day in days], restate)
        return works
    finally:
        WATCHER.reset(token)
