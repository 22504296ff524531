"""Maintenance commands, which release nothing."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Json, examples, flag, new_app
from flows.cli.several import Configs, Done, each_stream, files_of
from optstream.errors import ConfigurationError
from tasks.config import Settings, load_settings
from tasks.doctor import Finding, doctor_document, examine, unusable
from tasks.ledger.documents import purge_document
from tasks.ledger.open import need_ledger
from tasks.operations.purge import purge as remove

app = new_app()


@app.command(epilog=examples("optstream doctor", "optstream doctor --config population.toml"))
def doctor(config: Configs = None, as_json: Json = False) -> None:
    """Check security and configuration.

    Looks for what would disclose secrets, stop nights or lose the ledger. Exit code 1 if something should be
    done.
    """
    files = files_of(config)
    if len(files) == 1:
        try:
            load_settings(files[0])
        except ConfigurationError as error:
            raise typer.Exit(_shown(unusable(files[0], error), Terminal(as_json)).code) from None
    raise typer.Exit(each_stream(config, as_json, _examine))


def _examine(settings: Settings, terminal: Terminal) -> Done:
    return _shown(examine(settings, dict(os.environ), datetime.now(UTC)), terminal)


def _shown(findings: list[Finding], terminal: Terminal) -> Done:
    for finding in findings:
        terminal.say(f"{finding.severity}: {finding.place}: {finding.rule}\n    {finding.remedy}")
    if not findings:
        terminal.say("nothing is wrong")
    terminal.document(doctor_document(findings))
    n_bad = sum(finding.is_bad for finding in findings)
    return Done(1, f"{n_bad} to be done") if n_bad else Done(0, "nothing is wrong")


@app.command(epilog=examples("optstream purge --dry-run", "optstream purge"))
def purge(
    config: Config = DEFAULT_CONFIG,
    dry_run: Annotated[bool, flag("--dry-run", "Only say what would be removed.")] = False,
    raw_state: Annotated[
        bool,
        flag(
            "--raw-state", "Also the raw state that the next day would go on from; costs that day accuracy."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what is past its retention.

    That is staged files, validation results, lineage and raw state.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    done = remove(settings, need_ledger(settings), datetime.now(UTC), raw_state=raw_state, dry_run=dry_run)
    for note in done.notes:
        terminal.say(f"note: {note}")
    counted = ", ".join(f"{count} {kind}" for kind, count in done.n_removed.items())
    terminal.say(f"{'would remove' if dry_run else 'removed'} {counted}")
    terminal.document(purge_document(done, dry_run))
