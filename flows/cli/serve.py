"""`optstream serve`: a server if there is none, the schedule, the worker that runs it, and the pages."""

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
import uvicorn

from flows.cli.options import (
    DEFAULT_CONFIG,
    Configs,
    asks,
    every_stream,
    examples,
    files_of,
    new_app,
    read_streams,
)
from flows.cli.output import Terminal
from flows.orchestration.environment import LOOPBACK, connect, heartbeat_seconds, password_of, served
from flows.orchestration.listening import BOUNDED, listen, raise_open_files
from flows.orchestration.serve import (
    LEAST_SECONDS,
    LOOK_SECONDS,
    MOST_MEMORY,
    OWN_PAGES,
    PAGES_PORT,
    Child,
    Supervisor,
    found_by_runs,
    is_idle,
    notify_systemd,
    own_server,
    pages_of,
    pages_socket,
    pulse_of,
    systemd_address,
    watching,
    worker_of,
)
from flows.web.app import application
from flows.web.poll import Looks, RunsOf
from flows.web.prefect_log_in import add_log_in
from optstream.errors import ConfigurationError
from tasks.config import Settings
from tasks.config.schema import next_fire
from tasks.operate.permissions import check_trusted
from tasks.plan.nightly import looks_of
from tasks.trusted.files import make_private_folder

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
app = new_app()


@app.command(
    epilog=examples(
        "optstream serve",
        "optstream serve --config population.toml",
        "optstream serve --api https://prefect.example.org/api",
    )
)
def serve(
    config: Configs = None,
    api: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A Prefect server that runs already; or PREFECT_API_URL.", show_default=False
        ),
    ] = None,
    work_pool: Annotated[
        str | None, asks("NAME", "A process pool; the default is one of the stream's own.")
    ] = None,
    ui_port: Annotated[
        int | None,
        typer.Option(
            min=1024,
            max=65535,
            metavar="PORT",
            help=f"Of the operators' pages (`optstream ui`); the default is {PAGES_PORT}, or a free one.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the stream every night, and its watch every hour.

    Until Ctrl-C or SIGTERM. Starts a Prefect server on this machine's loopback, unless one is named, a
    worker, and the operators' pages. Several streams have one night, in which each is released in turn.
    Exit code 2 if it cannot begin, or if server or worker ends or hangs: have systemd start it again
    (docs/schedule.md).
    """
    before = dict(os.environ)
    systemd = systemd_address()
    # a service that started without one of them would be taken for one that has it
    streams, terminal = every_stream(files_of(config)), Terminal()
    for one in streams:
        check_trusted(one)
        looks_of(one)
    settings = streams[0]  # whose trusted folder has the server's own files
    heartbeat = heartbeat_seconds(os.environ)
    for number in STOPPING:
        signal.signal(number, _stop)
    api = api or os.environ.get("PREFECT_API_URL")
    with ExitStack() as running:
        listening = running.enter_context(pages_socket(ui_port))
        port = listening.getsockname()[1]
        make_private_folder(settings.serve_folder)
        running.enter_context(watching(streams))
        children: list[Child] = []
        if api:
            os.environ["PREFECT_API_URL"] = api
            os.environ.setdefault("PREFECT_HOME", str(settings.serve_folder))
            connect(settings.trusted_folder)
        else:
            children.append(running.enter_context(own_server(settings, settings.serve_folder)))
            add_log_in(settings.serve_folder / OWN_PAGES)
        running.enter_context(found_by_runs(streams, own=not api))
        from flows.orchestration import nightly  # prefect has read its settings now

        night = nightly.night_document(streams, work_pool, heartbeat)
        pool, deployment = night["work_pool"]["name"], nightly.register(night, heartbeat)
        if not api:  # so no run of this server is alive
            nightly.close_runs([night["name"], *(one.stream.name for one in streams)])
        worker = f"{settings.stream.name}-{socket.gethostname()}-{os.getpid()}"
        children.append(running.enter_context(worker_of(settings, pool, worker)))
        supervisor = Supervisor(pulse_of(pool, worker, deployment))
        running.callback(supervisor.stop)
        pages: Child | None = running.enter_context(pages_of(streams, listening))
        terminal.say(f"operators' pages: http://{LOOPBACK}:{port}/")
        terminal.say(f"dashboard: {os.environ['PREFECT_API_URL'].rstrip('/').removesuffix('/api')}")
        password = settings.serve_folder / "password"
        if not api and password.exists():
            terminal.say(f"user and password: {password}")
        fires = [(_next(looks_of(one), one), one.stream.time_zone) for one in streams]
        _say_next(deployment, min(fire for fire, _ in fires), fires[0][1], terminal)
        for one in streams:
            watches = _next([one.scheduling.watch_cron], one)
            _say_next(f"watch of {one.stream.name}", watches, one.stream.time_zone, terminal)
        seconds = nightly.MISSED_HEARTBEATS * heartbeat
        terminal.say(
            f"work pool {pool}; a run that is silent for {seconds} s is taken for dead, marked Crashed"
        )
        for one in streams:
            if one.watch is None:
                terminal.say(
                    f"no [watch] in {one.file.name} of {one.stream.name}: alarms are Prefect's events alone"
                )
        terminal.say("Ctrl-C or SIGTERM ends it")
        notify_systemd(systemd, "READY=1")
        running.push(lambda kind, *_: notify_systemd(systemd, "STOPPING=1") if kind else None)
        started = time.monotonic()
        while not (
            time.monotonic() - started > LEAST_SECONDS
            and any(child.memory > MOST_MEMORY for child in children)
            and is_idle()
        ):
            for child in children:
                child.check()
            supervisor.check()
            if pages:
                pages.bound_log()
                if pages.process.poll() is not None:
                    terminal.say(f"the {pages.name} ended: see {pages.log}; nights go on")
                    pages = None
            notify_systemd(systemd, "WATCHDOG=1")
            time.sleep(LOOK_SECONDS)
        terminal.say("server or worker has grown: they begin again, while no run is under way")
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], before)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    """End `serve`, and on the way its worker and its server, once."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def _next(crons: Sequence[str], settings: Settings) -> datetime:
    return next_fire(crons, datetime.now(ZoneInfo(settings.stream.time_zone)))


def _say_next(what: str, fire: datetime, zone: str, terminal: Terminal) -> None:
    terminal.say(f"{what}: next at {fire.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})")


# `optstream ui`: the operators' pages of several streams, as a web application.


@app.command(
    epilog=examples("optstream ui", "optstream ui --config north.toml --config south.toml --port 8484")
)
def ui(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            help="A configuration file, or a folder of them (*.toml); may be repeated.",
            show_default=str(DEFAULT_CONFIG),
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = PAGES_PORT,
    every: Annotated[
        int, typer.Option(min=5, max=3600, metavar="SECONDS", help="How often each stream is looked at.")
    ] = 30,
    inherited: Annotated[
        int | None,
        typer.Option("--socket", hidden=True, help="An open one to listen at, of `optstream serve`."),
    ] = None,
    textfile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the metrics there, too, after each look: for Prometheus' node exporter.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve the operators' pages of several streams.

    Until Ctrl-C or SIGTERM. Reads only. Runs are shown where PREFECT_API_URL names a server.
    Asks for the password of `optstream serve`. /metrics is for
    Prometheus, /healthz says whether the streams are looked at. Exit code 2 if it cannot begin, such as where
    its port is taken.
    """
    files = configurations_of(config or [DEFAULT_CONFIG])
    streams, broken = read_streams(files)
    if not streams:
        raise ConfigurationError(next(iter(broken.values())))
    settings, terminal = streams[0], Terminal()
    home = settings.serve_folder
    raise_open_files()
    listening = listen(host, port, "--port") if inherited is None else socket.socket(fileno=inherited)
    port = listening.getsockname()[1]
    runs: RunsOf | None = None
    if os.environ.get("PREFECT_API_URL") or served(settings.trusted_folder):
        connect(settings.trusted_folder)
        from flows.web.prefect_runs import runs_of  # prefect has read its settings now

        runs = runs_of
    clock = partial(datetime.now, UTC)
    looks, stop = Looks(files, every, clock, textfile, runs), Event()
    server = uvicorn.Server(
        uvicorn.Config(
            application(looks, password_of(home), clock),
            **BOUNDED,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
        )
    )
    terminal.say(f"pages: http://{f'[{host}]' if ':' in host else host}:{port}/")
    terminal.say(f"user and password: {home / 'password'}, or PREFECT_SERVER_API_AUTH_STRING")
    terminal.say("Ctrl-C or SIGTERM ends it")
    Thread(target=looks.run, args=(stop,), daemon=True).start()
    try:
        server.run([listening])
    finally:
        stop.set()


def configurations_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files, and those of folders, each once. Raises ConfigurationError for an empty folder."""
    found: dict[Path, None] = {}
    for path in paths:
        files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
        if not files:
            raise ConfigurationError(
                f"{path} has no configuration: name a folder with files *.toml, or a file"
            )
        found |= dict.fromkeys(file.resolve() for file in files)
    return list(found)
