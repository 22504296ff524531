"""One run of the first day through the real flow, talking to the server of PREFECT_API_URL.

`python -m tests.faults.flow.real_flow optstream.toml '{"hours": 1}'`; exit code 0 if the day is published.
hours: how far its clock is ahead. flow_run: the id of a scheduled run to execute, as a worker does that got
it delivered. stop_at: the point at which to stand still. schedule: only have the server schedule a run, and
print its id.
"""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.faults.hook import Hook
from tests.faults.points.acts import stopper
from tests.faults.world import DAYS

DAY = DAYS[0].isoformat()


def ahead(hours: float) -> Any:
    """`datetime`, but for what time it is."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=hours)

    return Ahead


def database_ahead(hours: float) -> Any:
    """`lease_time`, but that a database server's clock is ahead too; a caller's own is already."""
    from optstream.ledger.database import lease_time

    def later(connection: Any, now: datetime) -> datetime:
        found = lease_time(connection, now)
        return found if found is now else found + timedelta(hours=hours)

    return later


def schedule(configuration: Path) -> str:
    """Have the server schedule one run; its id."""
    from prefect.client.orchestration import get_client

    from flows.orchestration.release import release_days

    with get_client(sync_client=True) as client:
        parameters = {"config": str(configuration), "days": [DAY]}
        return str(client.create_flow_run(release_days, parameters=parameters).id)


def deliver(configuration: Path, flow_run: str) -> Any:
    """Execute a scheduled run. Returns the works, or None if the server did not let it."""
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow

    from flows.orchestration.release import release_days

    with get_client(sync_client=True) as client:
        run = client.read_flow_run(flow_run)  # type: ignore[arg-type]
    return run_flow(release_days, flow_run=run, parameters={"config": str(configuration), "days": [DAY]})


def release(configuration: Path, hours: float = 0.0, flow_run: str | None = None, stop_at: str = "") -> int:
    """Run the flow; the exit code."""
    from flows.cli.output import Terminal
    from flows.orchestration import release as nightly
    from optstream.ledger import reserve, transitions
    from optstream.ledger import transitions as leases
    from tasks.config import load_settings

    assert nightly.datetime is datetime
    nightly.datetime = ahead(hours)  # type: ignore[misc]
    for module in (leases, reserve, transitions):
        module.lease_time = database_ahead(hours)
    hooked: AbstractContextManager[None] = nullcontext()
    if stop_at:
        hooked = Hook(configuration.parent, stopper(stop_at)).installed()
    settings = load_settings(configuration)
    print("READY", flush=True)
    with hooked:
        works = (
            deliver(configuration, flow_run)
            if flow_run
            else nightly.run_days(settings, DAYS[:1], Terminal(as_json=True))
        )
    print(*(work.outcome and work.outcome.message for work in works or []), sep="\n")
    return 0 if works and all(work.outcome and work.outcome.status.is_good for work in works) else 1


if __name__ == "__main__":
    given, wishes = Path(sys.argv[1]), json.loads(sys.argv[2])
    if wishes.pop("schedule", False):
        print(schedule(given))
    else:
        sys.exit(release(given, **wishes))
