"""The last runs of a stream and their steps, from Prefect's API; needs a server (`connect` was called)."""

from datetime import datetime
from urllib.parse import urlsplit

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, TaskRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL

from flows.orchestration.run_names import tags_of
from tasks.ui.runs import RunStep, StreamRun

MOST_RUNS, MOST_STEPS = 14, 200


def runs_of(stream: str) -> tuple[StreamRun, ...]:
    """Return the last runs of a stream that began, the newest first.

    Raises what Prefect's client raises where the server does not answer.
    """
    tagged = {"tags": {"all_": list(tags_of(stream))}, "start_time": {"is_null_": False}}
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate(tagged),
            sort=FlowRunSort.START_TIME_DESC,
            limit=MOST_RUNS,
        )
        if not runs:
            return ()
        of_runs = FlowRunFilter.model_validate({"id": {"any_": [run.id for run in runs]}})
        began = TaskRunFilter.model_validate({"start_time": {"is_null_": False}})
        steps = client.read_task_runs(flow_run_filter=of_runs, task_run_filter=began, limit=MOST_STEPS)
    site = _site_of(PREFECT_API_URL.value() or "")
    return tuple(
        StreamRun(
            run.name,
            run.state_name or "",
            _instant(run.start_time),
            run.end_time,
            tuple(
                RunStep(_step_name(step.name), _instant(step.start_time), step.end_time)
                for step in steps
                if step.flow_run_id == run.id
            ),
            f"{site}/runs/flow-run/{run.id}",
        )
        for run in runs
    )


def _site_of(api: str) -> str:
    """Where the server's pages are; without a user and a password, which pages of ours do not show."""
    parts = urlsplit(api.rstrip("/").removesuffix("/api"))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _step_name(name: str) -> str:
    """What the step is called, without what Prefect adds: "look up-3f2"."""
    return name.rpartition("-")[0] or name


def _instant(at: datetime | None) -> datetime:
    assert at is not None  # asked for
    return at
