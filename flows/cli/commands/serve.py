"""`optstream serve`: a server if there is none, the schedule, and the worker that runs it."""

import os
import signal
from contextlib import suppress
from threading import Event
from types import FrameType
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, examples, new_app
from flows.orchestration.environment import heartbeat_seconds
from flows.orchestration.supervisor import Child, alone, pages_of, server_for, tend_until, worker_for
from tasks.config import Settings, load_settings
from tasks.operations.permissions import check_trusted
from tasks.planning.nightly import looks_of

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SERVER_START_SECONDS = 180
"""At boot a machine is busy."""
app = new_app()


@app.command(epilog=examples("optstream serve", "optstream serve --api https://prefect.example.org/api"))
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
    """Run the stream every night, and its watch every hour.

    Until Ctrl-C or SIGTERM. Starts a Prefect server on this machine's loopback, unless one is named, and a
    worker.
    """
    settings, terminal = load_settings(config), Terminal()
    check_trusted(settings)
    looks_of(settings)
    heartbeat_seconds(os.environ)
    starting, stop = Event(), Event()
    starting.set()
    _heed_signals(starting, stop)
    api = api or os.environ.get("PREFECT_API_URL")
    with alone(settings, f"{settings.stream.name}.lock", "serves this stream") as own:
        if api:
            _serve(settings, terminal, api.rstrip("/"), work_pool, own, starting, stop)
        else:
            rule = "has its server here: name that one with --api"
            with alone(settings, "server.lock", rule) as lock:
                _serve(settings, terminal, None, work_pool, lock, starting, stop)


def _serve(
    settings: Settings,
    terminal: Terminal,
    api: str | None,
    work_pool: str | None,
    lock: int,
    starting: Event,
    stop: Event,
) -> None:
    server, server_child = server_for(settings, api, lock)
    children = [server_child] if server_child else []
    try:
        server.wait(SERVER_START_SECONDS)
        from flows.orchestration.deployments import close_runs, work_pool_of

        pool = work_pool or work_pool_of(settings)
        heartbeat = _register(settings, pool)
        if server_child:
            close_runs(settings.stream.name)
        children.append(worker_for(settings, pool))
        _tell(settings, terminal, server.url, pool, heartbeat, own=server_child is not None)
        starting.clear()
        tend_until(stop, children, terminal.say)
    finally:
        for child in children[1:] if server_child else children:
            _end(child, terminal)
        if server_child:
            with suppress(Exception):  # the automation closes them once there is a server again
                close_runs(settings.stream.name)
            _end(server_child, terminal)


def _end(child: Child, terminal: Terminal) -> None:
    child.end()
    terminal.say(f"the {child.name} is stopped")


def _register(settings: Settings, pool: str) -> int:
    """Tell the server of the stream; return the seconds between heartbeats."""
    from flows.orchestration.deployments import deployment_documents, register, zombie_document

    heartbeat = heartbeat_seconds(os.environ)
    register(deployment_documents(settings, str(settings.file), pool, heartbeat), zombie_document(heartbeat))
    return heartbeat


def _tell(settings: Settings, terminal: Terminal, url: str, pool: str, heartbeat: int, *, own: bool) -> None:
    """What was set up, and when it runs next."""
    from flows.orchestration.deployments import MISSED_HEARTBEATS, next_run

    terminal.say(f"dashboard: {pages_of(url)}")
    password = settings.serve_folder / "password"
    if own and password.exists():
        terminal.say(f"user and password: {password}")
    zone, name = ZoneInfo(settings.stream.time_zone), settings.stream.name
    for flow in ("optstream-nightly", "optstream-watch"):
        begins = next_run(flow, name).astimezone(zone)
        terminal.say(f"{flow}/{name}: next at {begins:%Y-%m-%d %H:%M} ({settings.stream.time_zone})")
    seconds = MISSED_HEARTBEATS * heartbeat
    terminal.say(f"work pool {pool}; a run that is silent for {seconds} s is taken for dead, marked Crashed")
    if settings.watch is None:
        terminal.say("no [watch] in the configuration: alarms are Prefect's events alone")
    terminal.say("Ctrl-C or SIGTERM ends it")


def _heed_signals(starting: Event, stop: Event) -> None:
    """Let any signal that asks to stop be heard: at the next look, or at once while everything starts."""

    def asked(_signal: int, _frame: FrameType | None) -> None:
        again = stop.is_set()
        stop.set()
        if starting.is_set() and not again:
            raise SystemExit(0)

    for number in STOPPING:
        signal.signal(number, asked)
