"""How the server knows that a scheduled run lives: its heartbeats, and a word when it is over."""

import time
from typing import Any

from prefect import Flow, State
from prefect.client.schemas.objects import FlowRun
from prefect.events import emit_event
from prefect.events.worker import EventsWorker

from flows.orchestration.calls import FLOW
from flows.orchestration.deployments import OVER

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
