"""`optstream serve`: a server if there is none, the schedule, the worker that runs it, and the pages."""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import typer
import uvicorn

from flows.cli import options as cli
from flows.cli.output import Terminal
from flows.orchestration.environment import LOOPBACK, Api, ask_apart, password_of, served
from flows.orchestration.listening import BOUNDED, listen, raise_open_files
from flows.orchestration.serve import PAGES_PORT, serve_streams
from flows.web.app import application
from flows.web.poll import Looks, RunsOf, runs_of
from optstream.errors import ConfigurationError

API = "A Prefect server that runs already; or PREFECT_API_URL."
WORK_POOL = "A process pool; the default is one of the stream's own."
UI_PORT = f"Of the operators' pages (`optstream ui`); the default is {PAGES_PORT}, or a free one."
TEXTFILE = "Write the metrics there, too, after each look: for Prometheus' node exporter."
app = cli.new_app()


@app.command(
    epilog=cli.examples(
        "optstream serve",
        "optstream serve --config population.toml",
        "optstream serve --api https://prefect.example.org/api",
    )
)
def serve(
    config: cli.Configs = None,
    api: Annotated[str | None, cli.asks("URL", API)] = None,
    work_pool: Annotated[str | None, cli.asks("NAME", WORK_POOL)] = None,
    ui_port: Annotated[int | None, cli.asks("PORT", UI_PORT, min=1024, max=65535)] = None,
) -> None:
    """Run the stream every night, and its watch every hour.

    Until Ctrl-C or SIGTERM. Starts a Prefect server on this machine's loopback, unless one is named, a
    worker, and the operators' pages. Several streams have one night, in which each is released in turn.
    Exit code 2 if it cannot begin, or if server or worker ends or hangs: have systemd start it again
    (docs/schedule.md).
    """
    serve_streams(cli.every_stream(cli.files_of(config)), api, work_pool, ui_port)


# `optstream ui`: the operators' pages of several streams, as a web application.


@app.command(
    epilog=cli.examples("optstream ui", "optstream ui --config north.toml --config south.toml --port 8484")
)
def ui(
    config: Annotated[
        list[Path] | None,
        cli.config_option(
            "A configuration file, or a folder of them (*.toml); may be repeated.",
            show_default=str(cli.DEFAULT_CONFIG),
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = LOOPBACK,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = PAGES_PORT,
    every: Annotated[int, cli.asks("SECONDS", "How often each stream is looked at.", min=5, max=3600)] = 30,
    inherited: Annotated[
        int | None,
        typer.Option("--socket", hidden=True, help="An open one to listen at, of `optstream serve`."),
    ] = None,
    textfile: Annotated[Path | None, cli.asks("FILE", TEXTFILE)] = None,
) -> None:
    """Serve the operators' pages of several streams.

    Until Ctrl-C or SIGTERM. Reads only. Runs are shown where PREFECT_API_URL names a server.
    Asks for the password of `optstream serve`. /metrics is for
    Prometheus, /healthz says whether the streams are looked at. Exit code 2 if it cannot begin, such as where
    its port is taken.
    """
    files = configurations_of(config or [cli.DEFAULT_CONFIG])
    streams, broken = cli.read_streams(files)
    if not streams:
        raise ConfigurationError(next(iter(broken.values())))
    settings, terminal = streams[0], Terminal()
    home = settings.serve_folder
    raise_open_files()
    listening = listen(host, port, "--port") if inherited is None else socket.socket(fileno=inherited)
    port = listening.getsockname()[1]
    runs: RunsOf | None = None
    if os.environ.get("PREFECT_API_URL") or served(settings.trusted_folder):
        api = ask_apart("flows.orchestration.environment", str(settings.trusted_folder))
        runs = None if api is None else partial(runs_of, Api(**api))
    clock = partial(datetime.now, UTC)
    looks, stop = Looks(files, every, clock, textfile, runs), Event()

    async def end_if_idle() -> None:
        server.should_exit |= inherited is not None and looks.is_idle

    server = uvicorn.Server(
        uvicorn.Config(
            application(looks, password_of(home), clock),
            callback_notify=end_if_idle,
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
    if inherited is not None:  # for the request that began this process
        looks.look()
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
