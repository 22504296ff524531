"""Commands that keep the house in order and release nothing."""

from typing import Annotated

import typer

from flows.options import DEFAULT_CONFIG, Config, Json
from flows.terminal import Terminal


def purge(
    config: Config = DEFAULT_CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    raw_state: Annotated[
        bool,
        typer.Option(
            "--raw-state",
            help="Also the raw state that the next day would go on from; costs that day accuracy.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove staged files, validation results, lineage and raw state past their retention."""
    from datetime import UTC, datetime

    from tasks.ledger_documents import purge_document
    from tasks.ledger_place import need_ledger
    from tasks.purge import purge as remove
    from tasks.settings import load_settings

    settings, terminal = load_settings(config), Terminal(as_json)
    done = remove(settings, need_ledger(settings), datetime.now(UTC), raw_state=raw_state, dry_run=dry_run)
    for note in done.notes:
        terminal.say(f"note: {note}")
    counted = ", ".join(f"{count} {kind}" for kind, count in done.n_removed.items())
    terminal.say(f"{'would remove' if dry_run else 'removed'} {counted}")
    terminal.document(purge_document(done, dry_run))
