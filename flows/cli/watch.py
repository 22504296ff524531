"""`optstream status` and `optstream watch`: look, show, and tell."""

from datetime import UTC, datetime

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Json
from optstream.errors import OptStreamError
from tasks.config import Settings


def show_status(settings: Settings, terminal: Terminal) -> bool:
    """Show the stream as it is now; return whether there are alarms. Tells nobody, changes nothing."""
    from flows.cli.show_watch import show_view
    from tasks.ledger.open import find_ledger
    from tasks.monitoring import watch as watch_stream
    from tasks.monitoring.document import status_document

    ledger = find_ledger(settings)
    try:
        view = watch_stream(settings, ledger, datetime.now(UTC), live=settings.watch is not None)
    finally:
        if ledger is not None:
            ledger.close()
    show_view(settings, view, terminal)
    terminal.document(status_document(settings, view))
    return bool(view.alarms)


def watch(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Look once, as the hourly watch does, and tell of what is new or over; exit code 1 with alarms."""
    from flows.cli.show_watch import show_view
    from flows.orchestration.environment import prepare
    from tasks.config import load_settings
    from tasks.monitoring.document import status_document

    settings, terminal = load_settings(config), Terminal(as_json)
    orchestrator = prepare(settings.trusted_folder)
    with terminal.step("start the orchestrator"):
        from flows.orchestration.watch import NotToldError, watch_here

        orchestrator.wait()
    failed = None
    try:
        # a server that ends with this command has nobody who listens for events
        watched = watch_here(settings, events=orchestrator.process is None)
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
