"""The flows that the schedule runs, their deployment, and the automation that ends dead runs."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from prefect import Flow, State, flow, tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter
from prefect.client.schemas.objects import ConcurrencyLimitConfig, FlowRun
from prefect.events import emit_event
from prefect.events.schemas.automations import AutomationCore
from prefect.events.worker import EventsWorker
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.flows import load_flow_from_entrypoint
from prefect.schedules import Cron
from prefect.states import Completed, Crashed
from prefect.types.entrypoint import EntrypointType

from flows.orchestration.backfill import backfill
from flows.orchestration.environment import ALWAYS, HEARTBEAT, HEARTBEAT_SECONDS, tags_of
from flows.orchestration.release import FLOW, in_one_run, persevering, release_days, run_name, stream_of
from flows.orchestration.supervise import ALIVE
from optstream.errors import ConfigurationError, OptStreamError
from optstream.ledger import open_ledger
from tasks.config import Settings, load_settings
from tasks.monitor.facts import note_end
from tasks.operate.permissions import check_trusted
from tasks.plan.backfill import (
    UnreleasedError,
    days_of_night,
    delivered_days,
    looks_of,
    night_of,
    pages_are_made,
    plan_backfill,
)
from tasks.release.run import Ended, terms_of
from tasks.trusted.files import unexpected

# How the server knows that a scheduled run lives: its heartbeats, and a word when it is over.

REST_SECONDS = 2.0  # of two events within milliseconds the server may judge the later one first


def tell_over(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Say that a run will have no more heartbeats, a hook of flows that deployments run: the server's own
    event of the end is held back for 15 minutes where the scheduler made the run (Prefect 3.8).
    """
    if flow_run.deployment_id is None:
        return
    EventsWorker.instance().wait_until_empty()  # the last heartbeat is with the server
    time.sleep(REST_SECONDS)
    own = {"prefect.resource.id": f"prefect.flow-run.{flow_run.id}"}
    of_flow = {
        "prefect.resource.id": f"prefect.flow.{flow_run.flow_id}",
        "prefect.resource.role": "flow",
        "prefect.resource.name": flow.name,
    }
    emit_event(OVER, resource=own, related=[of_flow])


SCHEDULED: dict[str, Any] = {**FLOW, "on_completion": [tell_over], "on_failure": [tell_over]}
"""Of flows that deployments run."""


@flow(name="optstream-nightly", flow_run_name=run_name, **SCHEDULED)
def nightly(config: str) -> Any:
    """Release the newest complete days; UnreleasedError if one failed or is late."""
    settings = load_settings(Path(config))
    try:
        check_trusted(settings)
        words, left = persevering(partial(looked, settings))
    finally:
        with suppress(OSError):  # of a full disk: then it is late
            note_end(settings, "look", datetime.now(UTC))
    if left:
        raise UnreleasedError("; ".join(left))
    return Completed(message="; ".join(words))


def looked(settings: Settings) -> tuple[list[str], list[str]]:
    with closing(open_ledger(settings.ledger_url)) as ledger:
        ledger.enrol(terms_of(settings), datetime.now(UTC))
        days = days_of_night(settings, ledger, datetime.now(UTC))
        plan = plan_backfill(settings, ledger, days) if days else None
    ended = list[Ended]()
    if plan and (plan.to_run or (plan.over and not pages_are_made(settings))):
        gaps, calendar = settings.watching.accepted_gaps, settings.calendar
        given_up = [str(period) for day in gaps for period in calendar.periods(day, day)]
        by_hour = settings.stream.period == "hour"
        with in_one_run() if by_hour else nullcontext():
            release = backfill.fn if by_hour else backfill
            ended = release(str(settings.file), str(plan.first), str(plan.last), without=given_up)
    with closing(open_ledger(settings.ledger_url)) as ledger:
        delivered = [day for day in delivered_days(settings, ledger) if day not in {one.day for one in ended}]
    for _, month in groupby(delivered, key=lambda day: (day.year, day.month)):
        ended += release_days(str(settings.file), [str(day) for day in month])
    return night_of(settings, ended, plan.absent if plan else (), datetime.now(UTC))


@flow(name="optstream-nights", flow_run_name=run_name, **SCHEDULED)
def nights(configs: list[str]) -> Any:
    """Look once at each stream, in this order; UnreleasedError if one failed, which stops no other."""
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


# Deployment and automation.

MISSED_HEARTBEATS = 3  # after that many missing heartbeats a run counts as dead
OVER = "optstream.run.over"  # the event that a run sends when it is over: see `tell_over`
DEAD = "its heartbeats stopped: its process is taken for dead"
ENDS = ("Completed", "Failed", "Cancelled", "Crashed")


def night_document(
    streams: Sequence[Settings],
    work_pool: str | None = None,
    heartbeat: int = HEARTBEAT_SECONDS,
    config: str | None = None,
) -> dict[str, Any]:
    """The deployment of the night of one stream, as prefect.yaml writes it, or of several, in this order.
    config: of one stream, if not its file's. Raises ConfigurationError where it would begin after its end.
    """
    names, alone = [one.stream.name for one in streams], len(streams) == 1
    name = names[0] if alone else "-".join(sorted({one.privacy.population for one in streams}))
    files = [str(one.file) for one in streams]
    looks = {(cron, one.stream.time_zone): None for one in streams for cron in looks_of(one)}
    return {
        "name": name,
        "description": f"Stream{'' if alone else 's'} {', '.join(names)}: release the newest complete days.",
        "tags": list(dict.fromkeys(tag for one in names for tag in tags_of(one))),
        "entrypoint": f"flows.orchestration.nightly.{'nightly' if alone else 'nights'}",
        "parameters": {"config": config or files[0]} if alone else {"configs": files},
        "schedules": [{"cron": cron, "timezone": zone} for cron, zone in looks],
        "concurrency_limit": {"limit": 1, "collision_strategy": "CANCEL_NEW"},
        "work_pool": {
            "name": work_pool or f"optstream-{name}",
            "job_variables": {"env": {**ALWAYS, HEARTBEAT: str(heartbeat)}},
        },
    }


def zombie_document(heartbeat: int = HEARTBEAT_SECONDS) -> dict[str, Any]:
    """The automation, as automations.yaml writes it: a run whose heartbeats stop without an end is Crashed;
    what has none, such as a run in a terminal, is left alone.
    """
    return {
        "name": "optstream: runs whose process died",
        "description": "Marks a run as Crashed whose heartbeats stopped; the next one goes on with its days.",
        "enabled": True,
        "trigger": {
            "type": "event",
            "posture": "Proactive",
            "match": {"prefect.resource.id": ["prefect.flow-run.*"]},
            "match_related": {"prefect.resource.role": ["flow"], "prefect.resource.name": ["optstream-*"]},
            "for_each": ["prefect.resource.id"],
            "after": ["prefect.flow-run.heartbeat"],
            "expect": ["prefect.flow-run.heartbeat", OVER, *(f"prefect.flow-run.{end}" for end in ENDS)],
            "threshold": 1,
            "within": MISSED_HEARTBEATS * heartbeat,
        },
        "actions": [{"type": "change-flow-run-state", "state": "CRASHED", "message": DEAD}],
    }


def register(night: Mapping[str, Any], heartbeat: int = HEARTBEAT_SECONDS) -> str:
    """Put the night's deployment and automation on the server; return the deployment's full name."""
    flow: Any = load_flow_from_entrypoint(night["entrypoint"])
    pool, automation = night["work_pool"], AutomationCore.model_validate(zombie_document(heartbeat))
    with get_client(sync_client=True) as client:
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=pool["name"], type="process"))
        kind = client.read_work_pool(pool["name"]).type
        if kind != "process":
            raise ConfigurationError(
                f"work pool {pool['name']} is of type {kind}: runs are processes of this machine; name "
                "another with --work-pool"
            )
        known = client.read_automations_by_name(automation.name)
        if known:
            client.update_automation(known[0].id, automation)
        else:
            client.create_automation(automation)
        for tag in night["tags"]:
            with suppress(ObjectNotFound):  # until version 0.2 watches were deployments
                watch = f"optstream-watch/{tag.removeprefix('stream:')}"
                client.delete_deployment(client.read_deployment_by_name(watch).id)
    flow.to_deployment(
        night["name"],
        description=night["description"],
        tags=night["tags"],
        parameters=night["parameters"],
        schedules=[Cron(one["cron"], timezone=one["timezone"]) for one in night["schedules"]],
        concurrency_limit=ConcurrencyLimitConfig(**night["concurrency_limit"]),
        work_pool_name=pool["name"],
        job_variables=pool["job_variables"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    ).apply()
    return f"{flow.name}/{night['name']}"


def close_runs(names: Sequence[str]) -> None:
    """Mark as Crashed all runs of these deployments that seem to be running; they have no workers."""
    alive = FlowRunFilter.model_validate(ALIVE)
    ours = DeploymentFilter.model_validate({"name": {"any_": list(names)}})
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=alive, deployment_filter=ours):
            client.set_flow_run_state(run.id, Crashed(message="its worker was ended"))
