"""`optstream serve`: a server if there is none, the schedule, and the worker that runs it."""

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from flows.options import DEFAULT_CONFIG, Config
from flows.terminal import Terminal
from optstream.errors import ConfigurationError
from tasks.settings import Settings

LOCK_SECONDS = 20
"""For what another `serve` left, to end."""
SCHEDULED_SECONDS = 60
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    config: Config = DEFAULT_CONFIG,
    api: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A Prefect server that runs already; or PREFECT_API_URL.", show_default=False
        ),
    ] = None,
    work_pool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A process pool; the default is one of the stream's own."),
    ] = None,
) -> None:
    """Run the stream every night, and its watch every hour, until Ctrl-C or SIGTERM.

    Starts a Prefect server on this machine's loopback, unless one is named, and a worker.
    """
    from tasks.night import looks_of
    from tasks.permissions import check_trusted
    from tasks.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    check_trusted(settings)
    looks_of(settings)
    stop = _stop_signals()
    api = api or os.environ.get("PREFECT_API_URL")
    with _alone(settings, f"{settings.stream.name}.lock", "serves this stream") as own:
        if api:
            _serve(settings, terminal, api.rstrip("/"), work_pool, own, stop)
        else:
            rule = "has its server here: name that one with --api"
            with _alone(settings, "server.lock", rule) as lock:
                _serve(settings, terminal, None, work_pool, lock, stop)


def _serve(
    settings: Settings, terminal: Terminal, api: str | None, work_pool: str | None, lock: int, stop: Event
) -> None:
    from flows.service import server_for, tend_until, worker_for

    server, server_child = server_for(settings, api, lock)
    children = [server_child] if server_child else []
    try:
        server.wait()
        from flows.deployments import work_pool_of

        pool = work_pool or work_pool_of(settings)
        heartbeat = _register(settings, pool)
        children.append(worker_for(settings, pool))
        _tell(settings, terminal, server.url, pool, heartbeat, own=server_child is not None)
        tend_until(stop, children, terminal.say)
    finally:
        for child in reversed(children):
            child.end()
            terminal.say(f"the {child.name} is stopped")


def _register(settings: Settings, pool: str) -> int:
    """Tell the server of the stream; return the seconds between heartbeats."""
    from flows.deployments import (
        HEARTBEAT,
        HEARTBEAT_SECONDS,
        deployment_documents,
        register,
        zombie_document,
    )

    given = os.environ.get(HEARTBEAT, "")
    heartbeat = int(given) if given.isdigit() else HEARTBEAT_SECONDS
    register(deployment_documents(settings, str(settings.file), pool, heartbeat), zombie_document(heartbeat))
    return heartbeat


def _tell(settings: Settings, terminal: Terminal, url: str, pool: str, heartbeat: int, *, own: bool) -> None:
    """What was set up, and when it runs next."""
    from flows.deployments import MISSED_HEARTBEATS
    from flows.service import pages_of

    terminal.say(f"dashboard: {pages_of(url)}")
    if own:
        terminal.say(f"user and password: {settings.serve_folder / 'password'}")
    zone, name = ZoneInfo(settings.stream.time_zone), settings.stream.name
    for flow in ("optstream-nightly", "optstream-watch"):
        begins = _next_run(flow, name, settings).astimezone(zone)
        terminal.say(f"{flow}/{name}: next at {begins:%Y-%m-%d %H:%M} ({settings.stream.time_zone})")
    seconds = MISSED_HEARTBEATS * heartbeat
    terminal.say(f"work pool {pool}; a run that is silent for {seconds} s is taken for dead, marked Crashed")
    if settings.watch is None:
        terminal.say("no [watch] in the configuration: alarms are Prefect's events alone")
    terminal.say("Ctrl-C or SIGTERM ends it")


def _next_run(flow: str, stream: str, settings: Settings) -> Any:
    """When the server will run a deployment next. Raises ConfigurationError if it schedules nothing."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    deadline = time.monotonic() + SCHEDULED_SECONDS
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name(f"{flow}/{stream}")
        while time.monotonic() < deadline:
            runs = client.read_flow_runs(
                **_scheduled(deployment.id), sort=FlowRunSort.EXPECTED_START_TIME_ASC, limit=1
            )
            if runs:
                return runs[0].expected_start_time
            time.sleep(0.5)
    raise ConfigurationError(
        f"the server planned no run of {flow}/{stream} in {SCHEDULED_SECONDS} s: its scheduler does not "
        f"work, or the deployment is paused; see its log ({settings.serve_folder / 'server.log'} if ours)"
    )


def _scheduled(deployment: Any) -> dict[str, Any]:
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType

    return {
        "deployment_filter": DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        "flow_run_filter": FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
        ),
    }


def _stop_signals() -> Event:
    """Set by any signal that asks to stop."""
    stop = Event()

    def asked(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in STOPPING:
        signal.signal(number, asked)
    return stop


@contextmanager
def _alone(settings: Settings, name: str, rule: str) -> Iterator[int]:
    """Hold a lock of the stream's folder, whose file names who holds it; yield its descriptor.

    Raises ConfigurationError if another process keeps it.
    """
    from tasks.trusted_store import make_private_folder

    make_private_folder(settings.serve_folder)
    path: Path = settings.serve_folder / name
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _locked(file.fileno()):
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"another `optstream serve` {rule} (process {file.read(20).strip() or 'unknown'}, which "
                    f"holds {path}); end that one first"
                )
            time.sleep(0.2)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield file.fileno()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
