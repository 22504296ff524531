"""The last runs of a stream, or those of a day, from Prefect's API; needs a server (`connect` was called)."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter, TaskRunFilter
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL

from flows.orchestration.environment import tags_of
from tasks.pages.snapshot import RunLink, RunStep, StreamRun

MOST_RUNS, MOST_STEPS = 14, 200
MOST_OF_MONTH = 200
"""Runs that are asked for to find those of a day: what Prefect gives at once."""
FLOWS = ("optstream-release", "optstream-backfill", "optstream-nightly")
"""Those that release. The watch runs every hour, and would leave no room for them."""
SECONDS = 10
"""To wait for an answer: a page waits with it."""


def runs_of(stream: str, day: date | None = None) -> tuple[StreamRun, ...]:
    """Return runs of a stream, or of a day, that began, the newest first. Raises what the client raises."""
    asked: dict[str, Any] = {"tags": {"all_": list(tags_of(stream))}, "start_time": {"is_null_": False}}
    if day is not None:
        # a name has the first and the last day: of a run over three months or more its middle is not found
        asked["name"] = {"like_": f"{day:%Y-%m}-"}
    with get_client(sync_client=True, httpx_settings={"timeout": SECONDS}) as client:
        runs = client.read_flow_runs(
            flow_filter=FlowFilter.model_validate({"name": {"any_": list(FLOWS)}}),
            flow_run_filter=FlowRunFilter.model_validate(asked),
            sort=FlowRunSort.START_TIME_DESC,
            limit=MOST_RUNS if day is None else MOST_OF_MONTH,
        )
        runs = [run for run in runs if day is None or names_day(run.parameters, day)][:MOST_RUNS]
        if not runs:
            return ()
        steps = _tasks(client, {"start_time": {"is_null_": False}}, [run.id for run in runs])
        parents = _parents(client, runs)
    return tuple(_run(run, steps, parents) for run in runs)


def names_day(parameters: Mapping[str, Any], day: date) -> bool:
    """Whether a run with these parameters was asked for this day: by name, or between a first and a last."""
    words = day.isoformat()
    if "days" in parameters:
        return words in (parameters["days"] or ())
    return bool(str(parameters.get("first", "~")) <= words <= str(parameters.get("last", "")))


def _tasks(
    client: SyncPrefectClient, wanted: Mapping[str, Any], runs: Sequence[UUID] | None = None
) -> list[TaskRun]:
    of_runs = None if runs is None else FlowRunFilter.model_validate({"id": {"any_": runs}})
    return client.read_task_runs(
        flow_run_filter=of_runs, task_run_filter=TaskRunFilter.model_validate(wanted), limit=MOST_STEPS
    )


def _parents(client: SyncPrefectClient, runs: Sequence[FlowRun]) -> dict[UUID, RunLink]:
    """By the run that each started: Prefect has a task in the parent that stands for it."""
    stands_for = {run.parent_task_run_id: run.id for run in runs if run.parent_task_run_id is not None}
    if not stands_for:
        return {}
    standing = _tasks(client, {"id": {"any_": list(stands_for)}})
    started_by = {stands_for[one.id]: one.flow_run_id for one in standing if one.flow_run_id is not None}
    wanted = FlowRunFilter.model_validate({"id": {"any_": list(set(started_by.values()))}})
    known = {run.id: _link(run) for run in client.read_flow_runs(flow_run_filter=wanted)}
    return {run: known[parent] for run, parent in started_by.items() if parent in known}


def _run(run: FlowRun, steps: Sequence[TaskRun], parents: Mapping[UUID, RunLink]) -> StreamRun:
    own = (
        # without what Prefect adds: "look up-3f2"
        RunStep(step.name.rpartition("-")[0] or step.name, step.start_time, step.end_time)
        for step in steps
        if step.flow_run_id == run.id and step.start_time is not None
    )
    assert run.start_time is not None  # asked for
    parent, state = parents.get(run.id), run.state_name or ""
    return StreamRun(run.name, state, run.start_time, run.end_time, tuple(own), _link(run).page, parent)


def _link(run: FlowRun) -> RunLink:
    return RunLink(run.name, f"{_site_of(PREFECT_API_URL.value() or '')}/runs/flow-run/{run.id}")


def _site_of(api: str) -> str:
    """Where the server's pages are; without a user and a password, which pages of ours do not show."""
    parts = urlsplit(api.rstrip("/").removesuffix("/api"))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
