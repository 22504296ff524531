"""The flows that the schedule runs: a backfill of the newest days, of one stream or of several in turn."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from prefect import Flow, State, flow, tags
from prefect.client.schemas.objects import FlowRun
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from prefect.states import Completed

from flows.orchestration.backfill import backfill
from flows.orchestration.calls import (
    FLOW,
    configured,
    in_one_run,
    night_name,
    nights_name,
    persevering,
    stream_of,
    tags_of,
)
from flows.orchestration.deployments import OVER
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.monitor.records import note_end
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import pages_are_made, plan_backfill
from tasks.plan.nightly import Night, UnreleasedError, days_of_night, night_of
from tasks.release.run import terms_of
from tasks.trusted.failures import unexpected

# How the server knows that a scheduled run lives: its heartbeats, and a word when it is over.

REST_SECONDS = 2.0
"""Of two events within milliseconds the server may judge the later one first."""


def tell_over(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Say that a run will have no more heartbeats. A hook of flows that deployments run.

    The server's own event of the end would do, but it is held back for 15 minutes where the scheduler made
    the run: it follows an event of its scheduling that is never sent (Prefect 3.8). So every run that ended
    well would be taken for a dead one.
    """
    if flow_run.deployment_id is None:
        return
    EventsWorker.instance().wait_until_empty()  # the last heartbeat is with the server
    time.sleep(REST_SECONDS)
    emit_event(
        OVER,
        resource={"prefect.resource.id": f"prefect.flow-run.{flow_run.id}"},
        related=[
            {
                "prefect.resource.id": f"prefect.flow.{flow_run.flow_id}",
                "prefect.resource.role": "flow",
                "prefect.resource.name": flow.name,
            }
        ],
    )


SCHEDULED: dict[str, Any] = {**FLOW, "on_completion": [tell_over], "on_failure": [tell_over]}
"""Of flows that deployments run."""


@flow(name="optstream-nightly", flow_run_name=night_name, **SCHEDULED)
def nightly(config: str) -> Any:
    """Look once: release what is complete of the newest days; what is not is for the next look.

    Its parameter is a path: Prefect stores it in clear. Ends as a state whose message says what was done.
    Raises UnreleasedError if a day failed, or is late: nothing of it is published, and no part of it either.
    Repeated where the ledger's database did not answer: the ledger knows how far the look came.
    """
    with configured(config) as settings, noted(settings):
        check_trusted(settings)
        night = persevering(partial(looked, settings))
    if night.left:
        raise UnreleasedError("; ".join(night.left))
    return Completed(message=night.words)


@contextmanager
def noted(settings: Settings) -> Iterator[None]:
    """Keep when the block ended, however it did."""
    try:
        yield
    finally:
        with suppress(OSError):  # of a full disk: then it is late
            note_end(settings, "look", datetime.now(UTC))


def looked(settings: Settings) -> Night:
    """Look once, and say what was done."""
    with closing(open_ledger(settings.ledger_url)) as ledger:
        ledger.enrol(terms_of(settings), datetime.now(UTC))
        days = days_of_night(settings, ledger, datetime.now(UTC))
        plan = plan_backfill(settings, ledger, days) if days else None
    ended = []
    if plan and (plan.to_run or (plan.over and not pages_are_made(settings))):
        given_up = [
            str(period)
            for day in settings.watching.accepted_gaps
            for period in settings.calendar.periods_of(day)
        ]
        by_hour = settings.stream.period == "hour"
        release = backfill.fn if by_hour else backfill
        with in_one_run() if by_hour else nullcontext():
            ended = release(str(settings.file), str(plan.first), str(plan.last), without=given_up)
    return night_of(settings, ended, plan.absent if plan else (), datetime.now(UTC))


@flow(name="optstream-nights", flow_run_name=nights_name, **SCHEDULED)
def nights(configs: list[str]) -> Any:
    """Look once at each stream, in this order: one that fails, or has a day left, stops no other.

    Its parameters are paths: Prefect stores them in clear. Ends as a state whose message says which streams
    were looked at; the run of each says what was done. Raises UnreleasedError if one of them failed.
    """
    names, left = [], []
    for config in configs:
        names.append(stream_of(config))
        try:
            with tags(*tags_of(names[-1])):
                nightly(config)
        except OptStreamError as error:
            left.append(f"{names[-1]}: {error}")
        except Exception as error:  # noqa: BLE001 - a defect in one stream stops no other, and says where
            left.append(f"{names[-1]}: {unexpected(error)}")
    if left:
        raise UnreleasedError("; ".join(left))
    return Completed(message=f"looked at {', '.join(names)}")
