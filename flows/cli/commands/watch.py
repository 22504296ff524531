"""`optstream status` and `optstream watch`: look, show, and notify."""

from datetime import UTC, datetime

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Json, examples, new_app
from flows.cli.show.stream_view import show_view
from flows.orchestration.environment import connect
from optstream.errors import OptStreamError
from tasks.config import load_settings
from tasks.ledger.open import ledger_if_any
from tasks.monitoring import watch as watch_stream
from tasks.monitoring.document import status_document

app = new_app()


@app.command(epilog=examples("optstream status", "optstream status --json"))
def status(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Print the calendar, the budget and the alarms.

    Notifies nobody, and changes nothing. Exit code 1 if there is any alarm.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    with ledger_if_any(settings) as ledger:
        view = watch_stream(settings, ledger, datetime.now(UTC), live=settings.watch is not None)
    show_view(settings, view, terminal)
    terminal.document(status_document(settings, view))
    raise typer.Exit(1 if view.alarms else 0)


@app.command(epilog=examples("optstream watch"))
def watch(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Print the status, and notify of what is new or over.

    Looks once, as the hourly watch does. Exit code 1 if there is any alarm.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    server = connect(settings.trusted_folder)
    from flows.orchestration.watch import NotToldError, watch_here  # prefect has read its settings now

    failed = None
    try:
        watched = watch_here(settings, in_flow=server is not None)
    except NotToldError as error:
        watched, failed = error.watched, error
    for channel, news in watched.told.items():
        terminal.say(f"told {channel}: {len(news.new)} new, {len(news.over)} over")
    if isinstance(watched.view, OptStreamError):
        raise watched.view
    show_view(settings, watched.view, terminal)
    terminal.document(status_document(settings, watched.view))
    if failed is not None:
        raise failed
    raise typer.Exit(1 if watched.view.alarms else 0)
