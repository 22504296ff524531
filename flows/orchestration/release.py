"""The release flow: the graph of its steps, for the one day of a night and for the month of a backfill.

In a flow run each step is a Prefect task; where no Prefect server is configured the task's own function is
called.
"""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from os import getpid
from socket import gethostname
from uuid import uuid4

from prefect import flow, get_run_logger, tags, task
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from flows.orchestration.calls import (
    FLOW,
    STEP,
    WATCHER,
    Watcher,
    bound,
    configured,
    in_prefect,
    no_heartbeat,
    release_name,
    repeated,
    tags_of,
    taken,
    with_prefect,
)
from flows.orchestration.workers import CLUSTER, reader_of
from optstream.errors import PublicationError
from optstream.ledger import Ledger, open_ledger
from optstream.noise import secure_noise
from optstream.stream import period_from
from tasks.config import Settings
from tasks.operate.permissions import check_trusted
from tasks.pages.markdown import day_in_markdown
from tasks.pages.write import require_pages
from tasks.release import pipeline as steps
from tasks.release.due import due
from tasks.release.outcomes import budget_of
from tasks.release.publish import close_over
from tasks.release.revise import record_listed
from tasks.release.run import LEASE, Run, enrol, let_go
from tasks.release.stages import Ended, Estimated, Requested, Staged, Status, and_after

# What the orchestrator's own pages show of a run: log lines, nodes, budget, link. Public facts only.


def log_days(days: Sequence[Ended]) -> None:
    """Log how each day ended, in the words of its outcome, which hold no reading."""
    log = get_run_logger()
    for day in days:
        say = log.info if day.outcome.status.is_good else log.warning
        say("%s %s: %s", day.day, day.outcome.status.value, day.outcome.message)


def keep_artifacts(settings: Settings, ledger: Ledger, days: Sequence[Ended]) -> None:
    """Keep tables of days, nodes and budget; of the newest published file a link, and pictures."""
    stream = settings.stream.name
    released = [day for day in days if day.outcome.status is Status.PUBLISHED]
    create_table_artifact(
        key="optstream-days",
        table=[
            {
                "date": day.day.isoformat(),
                "status": day.outcome.status.value,
                "what happened": day.outcome.message,
                "file": day.outcome.file or "",
            }
            for day in days
        ],
        description=f"Days of stream {stream}",
    )
    if not released:
        return
    tree = settings.tree_of(max(day.day for day in released))
    create_table_artifact(
        key="optstream-nodes",
        table=[
            {
                "node": name,
                "level": int(depth),
                "parent": tree.nodes[parent] if parent >= 0 else "",
                "days released": len(released),
                "share of epsilon": str(settings.level_shares[depth]),
            }
            for name, parent, depth in zip(tree.nodes, tree.parents, tree.depths, strict=True)
        ],
        description=f"Nodes of stream {stream} released in this run",
    )
    budget = budget_of(settings, ledger, [day.day for day in released])
    create_table_artifact(
        key="optstream-budget",
        table=[
            {
                "window (steps)": budget.model.window_length,
                f"{budget.currency} granted": str(budget.grant),
                "spent by the worst window": f"{float(budget.spent):.9g}",
                "left": f"{float(budget.left):.3g}",
            }
        ],
        description=f"Privacy budget of {settings.privacy.population}, by the accountant",
    )
    # the table names all files: a link for each day of a month would take longer than its release
    newest = max(released, key=lambda day: day.day)
    if newest.outcome.file:
        link = (settings.published_folder / newest.outcome.file).as_uri()
        create_link_artifact(key="optstream-file", link=link, description=f"{stream}, {newest.day}")
    # read back from the published folder: a day that was withdrawn meanwhile is not drawn
    with suppress(PublicationError):
        drawn = day_in_markdown(settings.published_folder, newest.day)
        create_markdown_artifact(
            key="optstream-release", markdown=drawn, description=f"{stream}, {newest.day}"
        )


REVISED_AT_ONCE = 14
"""Days whose new estimates are in memory together, and that readers see at once."""

look_up = task(name="look up", **STEP)(steps.look_up_days)
discover = task(name="discover dumps", **STEP)(steps.discover_dumps)
ingest = task(name="ingest", **STEP)(repeated(steps.ingest_dumps))
validate = task(name="validate", **STEP)(steps.validate_days)
reserve = task(name="reserve", **STEP)(steps.reserve_budget)
draw = task(name="draw", **STEP)(steps.draw_measurements)  # a second draw would cost a second time
estimate = task(name="estimate", **STEP)(steps.estimate_releases)
stage = task(name="stage", **STEP)(steps.stage_releases)
publish = task(name="publish", **STEP)(repeated(steps.publish_releases))
estimate_anew = task(name="revise", **STEP)(steps.revise_estimates)
publish_anew = task(name="publish revisions", **STEP)(repeated(steps.publish_revisions))


def released(run: Run, days: Sequence[Requested]) -> list[Ended]:
    """Take days through the steps of a release, each to its end. What stops the run leaves days that waited
    to the next run at once: they are drawn and durable.
    """
    with reader_of(run.settings) as read:
        reading = replace(run, read=read)
        known = taken(look_up, reading, days)
        found = taken(discover, reading, known)
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
    """Give these days, and those before them, the new estimates that are due, some days at a time; return
    those that failed and stay as they are.
    """
    record_listed(run)
    ended, waiting = list[Ended](), due(run, asked)
    for first in range(0, len(waiting), REVISED_AT_ONCE):
        some = waiting[first : first + REVISED_AT_ONCE]
        done = taken(publish_anew, run, taken(estimate_anew, run, some))
        let_go(run, done)
        ended += done
    return [_unrevised(day) for day in ended if not day.outcome.status.is_good]


def _unrevised(day: Ended) -> Ended:
    """Its outcome says that only a new estimate failed: the day itself stays published."""
    words = f"only its new estimate; the day stays published as it was: {day.outcome.message}"
    return replace(day, outcome=replace(day.outcome, message=words))


@flow(name="optstream-release", flow_run_name=release_name, **FLOW)
def release_days(
    config: str,
    days: list[str],
    restate: bool = False,
    lease_minutes: float = LEASE / timedelta(minutes=1),
    report: bool = True,
    revise: bool = True,
) -> list[Ended]:
    """Release these days of the stream that the configuration file describes.

    restate: measure them once more, as their next revision, from the share of epsilon that is kept back.
    lease_minutes: how long the days stay with this run, should it die. report: whether to write the pages.
    revise: whether to give earlier days the new estimates that are due.

    Parameters are a path and dates: Prefect stores them in clear. Every day ends as a value; the days'
    outcomes are the flow's result, kept in memory only.
    """
    with configured(config) as settings:
        check_trusted(settings)
        with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
            run = replace(run_of(settings, ledger, lease_minutes), restate=restate)
            enrol(run)
            ended = released(run, [Requested(period_from(day)) for day in days])
            if revise:
                days_ended = [day.day for day in ended]
                ended = and_after(ended, lambda: revised(run, days_ended))
            if report:
                ended = and_after(ended, lambda: close_and_write_pages(run))
            if in_prefect():
                log_days(ended)
                keep_artifacts(settings, ledger, ended)
            return ended


def close_and_write_pages(run: Run) -> list[Ended]:
    """Close the days whose hours are over, and write the pages; no day ends by that."""
    close_over(run)
    require_pages(run.settings, run.ledger, run.clock())
    return []


def run_of(settings: Settings, ledger: Ledger, lease_minutes: float) -> Run:
    """A run of this process, by its clock, with real noise, under a name that no other run has."""
    owner = f"{gethostname()}:{getpid()}:{uuid4()}"
    lease = timedelta(minutes=lease_minutes)
    return Run(settings, ledger, secure_noise(), owner, lambda: datetime.now(UTC), lease)


def run_days(
    settings: Settings,
    days: Sequence[date],
    watcher: Watcher,
    *,
    restate: bool = False,
    dask: str | None = None,
) -> list[Ended]:
    """Release days here and now, showing progress to the watcher: by a flow run on the configured Prefect
    server, and where none is configured by the same steps without one.

    dask: address of the Dask cluster whose workers read large dumps; the rest is done here.
    """
    asked = (str(settings.file), [day.isoformat() for day in days], restate)
    with bound(WATCHER, watcher), bound(CLUSTER, dask), configured(str(settings.file), settings):
        if not with_prefect():
            return release_days.fn(*asked)
        with no_heartbeat(), tags(*tags_of(settings.stream.name)):
            return release_days(*asked)
