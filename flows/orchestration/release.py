"""The release flow; each step is a Prefect task in a flow run, and a plain function without a server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from datetime import date, timedelta
from functools import wraps
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from prefect import Flow, Task, flow, get_run_logger, tags, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

from flows.orchestration.environment import tags_of
from optstream.errors import LedgerUnavailableError, OptStreamError
from optstream.ledger import Ledger, open_ledger
from optstream.stream import period_from
from tasks.config import Settings, load_settings
from tasks.ingest.sandbox import read_apart
from tasks.operate.permissions import check_trusted
from tasks.pages.public import write_pages
from tasks.release import pipeline as steps
from tasks.release.outcomes import budget_of
from tasks.release.publish import close_over
from tasks.release.revise import due, record_listed
from tasks.release.run import (
    LEASE,
    Ended,
    Estimated,
    Requested,
    Run,
    Stage,
    Staged,
    Status,
    append_followups,
    enrol,
    let_go,
    run_of,
)

# How flows and steps are called: as runs and tasks of Prefect, or as plain functions.

PAUSES, STEP_PAUSES = (2.0, 10.0), (2.0, 2.0)
"""Seconds before work is repeated that the ledger's database refused, and a step that is safe to repeat."""
FLOW: dict[str, Any] = {"persist_result": False, "retries": 0, "validate_parameters": False}
"""Of every flow: no result on disk, and no repeat, which could draw noise again."""
STEP: dict[str, Any] = {"retries": 0, "cache_policy": NO_CACHE, "persist_result": False}
"""Of every task, which may take and give raw values: no result on disk, no hash of an input, no repeat."""
WATCHER: ContextVar[Any] = ContextVar("shows how far a run is, such as a terminal", default=None)
_ONE_RUN: ContextVar[bool] = ContextVar("no runs and tasks below the run under way", default=False)
Value = TypeVar("Value")
At = TypeVar("At", bound=Stage)
Next = TypeVar("Next", bound=Stage)


def in_prefect() -> bool:
    """Whether this is called in a flow run that is to have tasks, artifacts and log lines of its own."""
    return FlowRunContext.get() is not None and not _ONE_RUN.get()


def with_prefect() -> bool:
    """Whether flows are to be runs on a server: one is configured."""
    return bool(PREFECT_API_URL.value()) and not _ONE_RUN.get()


@contextmanager
def bound(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def in_one_run() -> AbstractContextManager[None]:
    """Make no Prefect runs and tasks in the block: they take longer than an hour's release."""
    return bound(_ONE_RUN, True)


def run_here(flow: Flow[..., list[Ended]], settings: Settings, watcher: Any, *asked: Any) -> list[Ended]:
    """Call a flow that a person waits for: a run on the configured server, or its function without one."""
    with bound(WATCHER, watcher):
        if not with_prefect():
            return flow.fn(*asked)
        # no heartbeats: their thread delays a short run's end
        quiet = temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None})
        with quiet, tags(*tags_of(settings.stream.name)):
            return flow(*asked)


def persevering(work: Callable[[], Value]) -> Value:
    """Do work that is safe to repeat; retry some times if the ledger's database does not answer."""
    for pause in PAUSES:
        try:
            return work()
        except LedgerUnavailableError:
            sleep(pause)
    return work()


def taken(step: Task[[Run, Sequence[At]], list[Next]], run: Run, days: Sequence[At]) -> list[Next]:
    """Take days one step on: as a task of the flow run, or plainly outside of one. No task for no day."""
    n_days = sum(not isinstance(day, Ended) for day in days)
    if not n_days:
        return step.fn(run, days)
    watcher = WATCHER.get()
    label = f"{step.name}, {n_days} {run.settings.stream.period}{'' if n_days == 1 else 's'}"
    with watcher.step(label) if watcher else nullcontext():
        return step(run, days) if in_prefect() else step.fn(run, days)


def repeated(step: Callable[[Run, Sequence[At]], list[Next]]) -> Callable[[Run, Sequence[At]], list[Next]]:
    """Return a step that is done again where a day failed: days end as values, so Prefect sees no failure."""

    @wraps(step)
    def attempt(run: Run, days: Sequence[At]) -> list[Next]:
        for pause in STEP_PAUSES:
            done = step(run, days)
            new = [now for day, now in zip(days, done, strict=True) if now is not day]
            if not any(isinstance(now, Ended) and now.status is Status.FAILED for now in new):
                return done
            sleep(pause)
        return step(run, days)

    return attempt


def run_name() -> str:
    """Return stream and days of the flow run under way: "french-load backfill 2016-02-01 to 2016-03-31"."""
    given = flow_run.parameters
    streams = [tag.removeprefix("stream:") for tag in flow_run.tags if tag.startswith("stream:")][:1]
    if "configs" in given or not streams:
        streams = [stream_of(config) for config in given.get("configs") or [given["config"]]]
    what = "" if "days" in given else "backfill" if "first" in given else "night"
    days = given.get("days") or [given[key] for key in ("first", "last") if key in given]
    span = dict.fromkeys([min(days), max(days)]) if days else ()
    return " ".join(filter(None, [", ".join(streams), what, " to ".join(span)]))


def stream_of(config: str) -> str:
    """The stream's name, by its configuration; "optstream" if that cannot be read."""
    try:
        return load_settings(Path(config)).stream.name
    except OptStreamError:
        return "optstream"


# What the orchestrator's own pages show of a run: log lines, days, budget. Public facts only.


def log_days(days: Sequence[Ended]) -> None:
    """Log how each day ended, in words that hold no reading."""
    log = get_run_logger()
    for day in days:
        say = log.info if day.status.is_good else log.warning
        say("%s %s: %s", day.day, day.status.value, day.message)


def keep_artifacts(settings: Settings, ledger: Ledger, days: Sequence[Ended]) -> None:
    stream = settings.stream.name
    table = [
        {"date": str(day.day), "status": day.status, "what happened": day.message, "file": day.file or ""}
        for day in days
    ]
    create_table_artifact(key="optstream-days", table=table, description=f"Days of stream {stream}")
    published = [day.day for day in days if day.status is Status.PUBLISHED]
    if not published:
        return
    budget = budget_of(settings, ledger, published)
    facts = {
        "window (steps)": budget.model.window_length,
        f"{budget.currency} granted": str(budget.grant),
        "spent by the worst window": f"{float(budget.spent):.9g}",
        "left": f"{float(budget.left):.3g}",
    }
    of = f"Privacy budget of {settings.privacy.population}, by the accountant"
    create_table_artifact(key="optstream-budget", table=[facts], description=of)


REVISED_AT_ONCE = 14  # days whose new estimates are in memory together, and that readers see at once

look_up = task(name="look up", **STEP)(steps.look_up_days)
discover = task(name="discover dumps", **STEP)(steps.discover_dumps)
ingest = task(name="ingest", **STEP)(repeated(steps.ingest_dumps))
validate = task(name="validate", **STEP)(steps.validate_days)
reserve = task(name="reserve", **STEP)(steps.reserve_budget)
draw = task(name="draw", **STEP)(steps.draw_measurements)  # a second draw would cost a second time
estimate = task(name="estimate", **STEP)(steps.estimate_releases)
stage = task(name="stage", **STEP)(steps.stage_releases)
publish = task(name="publish", **STEP)(repeated(steps.publish_releases))
estimate_again = task(name="revise", **STEP)(steps.revise_estimates)
publish_again = task(name="publish revisions", **STEP)(repeated(steps.publish_revisions))


def released(run: Run, days: Sequence[Requested]) -> list[Ended]:
    """Take days through the steps of a release, each to its end."""
    reading = replace(run, read=read_apart)
    found = taken(discover, reading, taken(look_up, reading, days))
    judged = taken(validate, reading, taken(ingest, reading, found))
    groups, ended = steps.groups(run, judged), list[Ended]()
    estimated = list[Estimated | Staged | Ended]()
    del judged  # nothing else holds raw values once they are drawn
    try:
        while groups:
            drawn = taken(draw, run, taken(reserve, run, groups.pop(0)))
            estimated += taken(estimate, run, drawn)
            if not (groups and steps.may_wait(run, estimated)):
                ended += taken(publish, run, taken(stage, run, estimated))
                estimated = []
    finally:
        let_go(run, [*ended, *estimated])
    return ended


def revised(run: Run, asked: Sequence[date]) -> list[Ended]:
    """Give these days, and those before them, the new estimates that are due; return those that failed."""
    record_listed(run)
    ended, waiting = list[Ended](), due(run, asked)
    for first in range(0, len(waiting), REVISED_AT_ONCE):
        some = waiting[first : first + REVISED_AT_ONCE]
        done = taken(publish_again, run, taken(estimate_again, run, some))
        let_go(run, done)
        ended += done
    only = "only its new estimate; the day stays published as it was: "
    return [replace(day, message=only + day.message) for day in ended if not day.status.is_good]


@flow(name="optstream-release", flow_run_name=run_name, **FLOW)
def release_days(
    config: str,
    days: list[str],
    restate: bool = False,
    lease_minutes: float = LEASE / timedelta(minutes=1),
    report: bool = True,
    revise: bool = True,
) -> list[Ended]:
    """Release these days. restate: as their next revision. Prefect stores parameters in clear."""
    settings = load_settings(Path(config))
    check_trusted(settings)
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        run = replace(run_of(settings, ledger, timedelta(minutes=lease_minutes)), restate=restate)
        enrol(run)
        ended = released(run, [Requested(period_from(day)) for day in days])
        if revise:
            days_ended = [day.day for day in ended]
            ended = append_followups(ended, lambda: revised(run, days_ended))
        if report:
            ended = append_followups(ended, lambda: close_and_write_pages(run))
        if in_prefect():
            if settings.counts_warning is not None:
                get_run_logger().warning(settings.counts_warning)
            log_days(ended)
            keep_artifacts(settings, ledger, ended)
        return ended


def close_and_write_pages(run: Run) -> None:
    """Close the days whose hours are over, and write the pages."""
    close_over(run)
    write_pages(run.settings, run.ledger, run.clock())


def run_days(settings: Settings, days: Sequence[date], watcher: Any, *, restate: bool = False) -> list[Ended]:
    """Release days here and now, on the configured Prefect server, or by the same steps without one."""
    asked = (str(settings.file), [day.isoformat() for day in days], restate)
    return run_here(release_days, settings, watcher, *asked)
