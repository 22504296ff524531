"""`optstream ui`: the operators' pages of several streams, as a web application."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

import typer
import uvicorn

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, examples, new_app
from flows.orchestration.environment import connect
from flows.orchestration.listening import BOUNDED, listen, raise_open_files
from flows.orchestration.processes import LOOPBACK, PAGES_PORT, password_of
from flows.ui.application import application
from flows.ui.looking import Looks, RunsOf
from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings, load_settings

app = new_app()


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
    settings, terminal = readable(files), Terminal()
    home = settings[0].serve_folder
    raise_open_files()
    listening = listen(host, port, "--port") if inherited is None else socket.socket(fileno=inherited)
    port = listening.getsockname()[1]
    looks, stop = Looks(files, every, _now, textfile, _runs(settings[0])), Event()
    server = uvicorn.Server(
        uvicorn.Config(
            application(looks, password_of(home), _now),
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


def readable(files: Sequence[Path]) -> list[Settings]:
    """Return the settings of the configurations that can be read.

    Raises ConfigurationError where none can, or where two describe streams of one name.
    """
    if len(files) == 1:
        return [load_settings(files[0])]
    found = []
    for file in files:
        with suppress(OptStreamError):
            found.append(load_settings(file))
    names = [one.stream.name for one in found]
    for one in found:
        if names.count(one.stream.name) > 1:
            raise ConfigurationError(
                f"two configurations describe a stream {one.stream.name!r}: show each stream once"
            )
    if not found:
        raise ConfigurationError("no configuration can be read: `optstream status --config FILE` says why")
    return found


def _runs(settings: Settings) -> RunsOf | None:
    """Who knows the runs of a stream: the server that PREFECT_API_URL names; None where it names none."""
    if not os.environ.get("PREFECT_API_URL"):
        return None
    connect(settings.trusted_folder)
    from flows.ui.prefect_runs import runs_of  # prefect has read its settings now

    return runs_of


def _now() -> datetime:
    return datetime.now(UTC)
