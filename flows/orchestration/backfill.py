"""The backfill flow: months of a span as subflows, here, in processes, or on a cluster. Wiring only."""

import fcntl
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from prefect import flow, tags, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.context import FlowRunContext
from prefect.task_runners import ProcessPoolTaskRunner

from flows.orchestration import release as one_run
from flows.orchestration.environment import tags_of
from flows.orchestration.release import FLOW, STEP, WATCHER, in_prefect, persevering, release_days, run_name
from optstream.errors import ConfigurationError, LedgerUnavailableError, OptStreamError, ParameterError
from optstream.ledger import open_ledger
from optstream.stream import period_from
from tasks.config import Settings, load_settings
from tasks.ingest.sandbox import end_with_parent
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import plan_backfill
from tasks.release.run import LEASE, Ended, Requested, Status, append_followups, run_of, terms_of
from tasks.trusted.files import make_private_folder, private_opener, unexpected

LEASE_MINUTES = 2.0
"""Of a month's days: should their run die, another takes them up after that. A live run renews it."""
MARGIN_SECONDS = 1.0
MARK = ".backfill-"
ENDED_FROM_OUTSIDE = (
    "a process of --workers was ended from outside, as where memory is short, and the others with it: run "
    "the same backfill again, with fewer --workers; what was drawn is finished, and nothing is drawn twice"
)
POOL: ContextVar[ProcessPoolExecutor | None] = ContextVar("processes for months", default=None)


@flow(name="optstream-backfill", flow_run_name=run_name, **FLOW)
def backfill(
    config: str,
    first: str,
    last: str,
    at_once: bool = False,
    lease_minutes: float = LEASE_MINUTES,
    without: Sequence[str] = (),
) -> list[Ended]:
    """Release the missing days of a span, one subflow a month; at_once: all months to the task runner."""
    settings = load_settings(Path(config))
    span = settings.calendar.periods(period_from(first), period_from(last))
    if not span:
        raise ParameterError(f"the last day, {last}, comes before the first, {first}")
    check_trusted(settings)
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        ledger.enrol(terms_of(settings), datetime.now(UTC))
        plan = plan_backfill(settings, ledger, [day for day in span if day.isoformat() not in without])
        artifact: Any = in_prefect() and create_progress_artifact(
            0.0,
            key="optstream-backfill",
            description=f"Backfill of stream {settings.stream.name}, {len(plan.to_run)} days",
        )
        with _marked(settings) as mark:
            release = partial(_run, settings, lease_minutes, mark, artifact, len(plan.to_run))
            done = release(plan.months(), at_once, [])
            longest = max(timedelta(minutes=lease_minutes), LEASE)
            # by the clock that the leases go by, which may be the database's
            now = ledger.lease_time(datetime.now(UTC))
            done, until = held_by_others(done, now, longest)
            if until is not None:
                time.sleep(max(0.0, (until - now).total_seconds()) + MARGIN_SECONDS)
                busy = tuple(day.day for day in done if day.free_at)
                done = release([busy], False, [day for day in done if not day.free_at])
        run = run_of(settings, ledger, timedelta(minutes=lease_minutes))
        done = append_followups(done, lambda: one_run.revised(run, span))
        if FlowRunContext.get() is not None:
            one_run.log_days(done)
        done = append_followups(done, lambda: one_run.close_and_write_pages(run))
        return sorted(done, key=lambda day: day.day)


@task(name="release a month", **STEP)
def release_month(config: str, stream: str, days: list[str], lease_minutes: float, mark: str) -> list[Ended]:
    """Release a month wherever this is called; mark: a file of the trusted folder, to be seen from there."""
    if not Path(mark).exists():
        raise ConfigurationError(
            "the trusted folder is another one here than where the backfill was started, without what was "
            "drawn: mount the same one on every worker; nothing was released"
        )
    release = release_days if one_run.with_prefect() else release_days.fn
    with tags(*tags_of(stream)):  # a worker's process does not know those of the run that sent it here
        return release(config, days, lease_minutes=lease_minutes, report=False, revise=False)


def release_month_here(*chunk: Any) -> list[Ended]:
    return release_month.fn(*chunk)


@contextmanager
def _processes(n_workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for months; what has not begun when the block ends is not begun."""
    pool = ProcessPoolExecutor(n_workers, get_context("spawn"), begin_worker)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _marked(settings: Settings) -> Iterator[Path]:
    """A file in the trusted folder, locked while workers may look for it; those of the dead are removed."""
    folder = settings.trusted_folder
    make_private_folder(folder)
    for left in folder.glob(f"{MARK}*"):
        with suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()
    mark = folder / f"{MARK}{token_hex(16)}"
    aside = mark.with_name(f".new{mark.name}")
    with open(aside, "xb", opener=private_opener) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # before others can see it under its name
        aside.rename(mark)
        try:
            yield mark
        finally:
            mark.unlink(missing_ok=True)


def _run(
    settings: Settings,
    lease_minutes: float,
    mark: Path,
    artifact: Any,
    n_days: int,
    months: Sequence[tuple[date, ...]],
    at_once: bool,
    done: list[Ended],
) -> list[Ended]:
    """Release months, elsewhere, or here where the ledger's database failed them; return all that is done."""
    chunks = [
        (str(settings.file), settings.stream.name, [str(day) for day in month], lease_minutes, str(mark))
        for month in months
    ]
    here: Callable[..., list[Ended]] = release_month if in_prefect() else release_month.fn
    pool, submit = POOL.get(), cast(Callable[..., Any], release_month.submit)
    if pool is not None:
        submit = partial(pool.submit, release_month_here)
    futures: list[Any] = [submit(*chunk) if at_once else None for chunk in chunks]
    watcher = WATCHER.get()  # of months, and later of the steps of new estimates
    for chunk, future in zip(chunks, futures, strict=True):
        ended: list[Ended] | None = None
        try:
            if future is not None:
                with suppress(LedgerUnavailableError):
                    ended = future.result()
            if ended is None:
                with one_run.bound(WATCHER, None):
                    ended = persevering(partial(here, *chunk))
        except Exception as error:  # noqa: BLE001 - a month that fails stops no other, and says where
            why = str(error) if isinstance(error, OptStreamError) else unexpected(error)
            if isinstance(error, BrokenExecutor):
                why = ENDED_FROM_OUTSIDE
            ended = [Requested(period_from(day)).ended(Status.FAILED, why) for day in chunk[2]]
        done = [*done, *ended]
        if artifact:
            n_over = sum(day.status is not Status.BUSY for day in done)
            update_progress_artifact(artifact, min(100.0, 100 * n_over / max(1, n_days)))
        if watcher is not None:
            watcher.months(ended)
    return done


def held_by_others(
    days: Sequence[Ended], now: datetime, longest: timedelta
) -> tuple[list[Ended], datetime | None]:
    """Return the outcomes, and until when to wait for days of other runs, None for none."""
    judged = []
    for day in days:
        if day.free_at is not None and day.free_at > now + longest:
            words = (
                f"{day.message}; no run takes a day for so long: its clock ran ahead, and this run did not "
                f"wait; if that run is gone, `optstream ledger release-lease {day.day} --why …` frees the day"
            )
            day = replace(day, message=words, free_at=None)
        judged.append(day)
    return judged, max((day.free_at for day in judged if day.free_at), default=None)


def begin_worker() -> None:
    """Have this process, one of a pool's, end with its parent, and by Ctrl-C at once: a KeyboardInterrupt
    that it sent back would end the thread that receives results (Prefect 3.8), and the caller would wait
    without end. Polars, imported with the sandbox, must be before: it takes Ctrl-C over.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent()


def run_backfill(
    settings: Settings,
    first: date,
    last: date,
    watcher: Any = None,
    n_workers: int = 1,
    dask: str | None = None,
    lease_minutes: float = LEASE_MINUTES,
) -> list[Ended]:
    """Run the flow, or its function without a server. watcher: shows `months` and each `step`."""
    runner: Any = None
    pool: Any = nullcontext()
    at_once = n_workers > 1 or dask is not None
    if dask is not None:
        try:
            from prefect_dask.task_runners import DaskTaskRunner
        except ImportError:
            raise ConfigurationError(
                "--dask needs the package prefect-dask: install optstream[dask]"
            ) from None
        runner = DaskTaskRunner(address=dask)
    elif n_workers > 1 and one_run.with_prefect():
        runner = ProcessPoolTaskRunner(max_workers=n_workers, initializer=begin_worker)
    elif n_workers > 1:
        pool = _processes(n_workers)
    asked = (str(settings.file), str(first), str(last), at_once, lease_minutes)
    with pool as processes, one_run.bound(POOL, processes):
        return one_run.run_here(backfill.with_options(task_runner=runner), settings, watcher, *asked)
