"""`optstream status` and `optstream watch`: look, show, and notify."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import typer

from flows.cli.console import Terminal
from flows.cli.options import Json, examples, new_app
from flows.cli.several import Configs, Done, each_stream, files_of
from flows.cli.show.stream_view import show_view
from flows.orchestration.environment import NoServerError, connect, environment
from optstream.errors import OptStreamError
from tasks.config import Settings, load_settings
from tasks.ledger.open import ledger_if_any
from tasks.monitoring import StreamView
from tasks.monitoring import watch as watch_stream
from tasks.monitoring.document import status_document

app = new_app()


@app.command(epilog=examples("optstream status", "optstream status --config population.toml --json"))
def status(config: Configs = None, as_json: Json = False) -> None:
    """Print the calendar, the budget and the alarms.

    Notifies nobody, and changes nothing. Exit code 1 if there is any alarm.
    """
    raise typer.Exit(each_stream(config, as_json, _status))


def _status(settings: Settings, terminal: Terminal) -> Done:
    with ledger_if_any(settings) as ledger:
        view = watch_stream(settings, ledger, datetime.now(UTC), live=settings.watch is not None)
    return _shown(settings, view, terminal)


@app.command(epilog=examples("optstream watch"))
def watch(config: Configs = None, as_json: Json = False) -> None:
    """Print the status, and notify of what is new or over.

    Looks once, as the hourly watch does, also where the Prefect server does not answer. Exit code 1 if there
    is any alarm.
    """
    for file in files_of(config) if os.environ.get("PREFECT_API_URL") else ():
        try:
            load_settings(file)
        except OptStreamError:
            _tell_unreadable(file)
    raise typer.Exit(each_stream(config, as_json, _watch))


def _tell_unreadable(file: Path) -> None:
    # its trusted folder is not known; events need no home
    os.environ.update(environment(file.absolute().parent, os.environ))
    from flows.orchestration.watch import tell_unreadable  # prefect has read its settings now

    with suppress(Exception):  # the command itself says what is wrong
        tell_unreadable(file)


def _watch(settings: Settings, terminal: Terminal) -> Done:
    failed: OptStreamError | None = None
    try:
        server = connect(settings.trusted_folder)
    except NoServerError as error:
        server, failed = None, error
    from flows.orchestration.watch import NotToldError, watch_here  # prefect has read its settings now

    try:
        watched = watch_here(settings, events=server is not None)
    except NotToldError as error:
        watched, failed = error.watched, failed or error
    for channel, news in watched.told.items():
        terminal.say(f"told {channel}: {len(news.new)} new, {len(news.over)} over")
    if isinstance(watched.view, OptStreamError):
        raise watched.view
    done = _shown(settings, watched.view, terminal)
    if failed is not None:
        raise failed
    return done


def _shown(settings: Settings, view: StreamView, terminal: Terminal) -> Done:
    show_view(settings, view, terminal)
    terminal.document(status_document(settings, view))
    n_alarms = len(view.alarms)
    return Done(1, f"{n_alarms} alarm{'' if n_alarms == 1 else 's'}") if n_alarms else Done(0, "no alarm")
