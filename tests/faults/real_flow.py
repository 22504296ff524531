"""One run through the real flow, talking to the server of PREFECT_API_URL, its clock ahead by some hours.

`python -m tests.faults.real_flow optstream.toml 2016-06-01 HOURS [FLOW_RUN_ID]`; exit code 0 if the day is
out. With an id it executes that scheduled run, as a worker would that got it delivered.
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any


def ahead(hours: float) -> Any:
    """`datetime`, but for what time it is."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=hours)

    return Ahead


def scheduled(configuration: str, days: list[str]) -> str:
    """Have the server schedule one run; its id."""
    from prefect.client.orchestration import get_client

    from flows.nightly import release_days

    with get_client(sync_client=True) as client:
        run = client.create_flow_run(release_days, parameters={"config": configuration, "days": days})
    return str(run.id)


def main(configuration: str, day: str, hours: str, flow_run: str | None = None) -> int:
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow

    from flows import nightly
    from flows.terminal import Terminal
    from tasks.settings import load_settings

    assert nightly.datetime is datetime
    nightly.datetime = ahead(float(hours))  # type: ignore[misc]
    print("READY", flush=True)
    if flow_run is None:
        works = nightly.run_days(
            load_settings(Path(configuration)), [datetime.fromisoformat(day).date()], Terminal(as_json=True)
        )
    else:
        with get_client(sync_client=True) as client:
            run = client.read_flow_run(flow_run)  # type: ignore[arg-type]
        parameters = {"config": configuration, "days": [day]}
        works = run_flow(nightly.release_days, flow_run=run, parameters=parameters)
    print(*(work.outcome and work.outcome.message for work in works or []), sep="\n")
    return 0 if works and all(work.outcome and work.outcome.status.is_good for work in works) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
