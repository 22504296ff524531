"""Commands that keep the house in order and release nothing."""

import os
from datetime import UTC, datetime
from functools import partial
from socket import gethostname
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Days, Json, Reason, examples, new_app
from optstream.errors import ConfigurationError
from optstream.noise import secure_noise
from tasks.config import load_settings
from tasks.doctor import doctor_document, examine, unusable
from tasks.ledger.documents import purge_document
from tasks.ledger.open import need_ledger
from tasks.operations.purge import purge as remove
from tasks.operations.withdraw import withdraw as take_back
from tasks.release.day import Requested, Status
from tasks.release.each import each
from tasks.release.records.outcomes import budget_of, outcomes_document
from tasks.release.run import Run
from tasks.reports import write_pages

app = new_app()


@app.command(epilog=examples("optstream doctor"))
def doctor(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Check security and configuration.

    Looks for what would disclose secrets, stop nights or lose the ledger. Exit code 1 if something should be
    done.
    """
    environment = dict(os.environ)
    try:
        settings = load_settings(config)
    except ConfigurationError as error:
        findings = unusable(config, error)
    else:
        findings = examine(settings, environment, datetime.now(UTC))
    terminal = Terminal(as_json)
    for finding in findings:
        terminal.say(f"{finding.severity}: {finding.place}: {finding.rule}\n    {finding.remedy}")
    if not findings:
        terminal.say("nothing is wrong")
    terminal.document(doctor_document(findings))
    raise typer.Exit(1 if any(finding.is_bad for finding in findings) else 0)


@app.command(epilog=examples("optstream purge --dry-run", "optstream purge"))
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


@app.command(epilog=examples("optstream withdraw --date 2016-02-01 --reason 'the wrong dump'"))
def withdraw(day: Days, reason: Reason, config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Take days back out of the catalogue; they stay charged.

    A tombstone says so to readers. Exit code 1 if any day is left.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    ledger = need_ledger(settings)
    run = Run(settings, ledger, secure_noise(), f"{gethostname()}-withdraw", lambda: datetime.now(UTC))
    days = sorted(set(day))
    works = each(
        [Requested(one) for one in days], Requested, partial(take_back, run, reason=reason, days=days)
    )
    written = write_pages(settings, ledger, datetime.now(UTC))
    budget = budget_of(settings, ledger, days)
    terminal.outcomes(works, settings, budget)
    if written.problem is not None:
        terminal.say(f"the page of the data users was not written: {written.problem}")
    terminal.document(outcomes_document(works, settings, budget))
    failed = any(day.outcome.status in (Status.FAILED, Status.BUSY) for day in works)
    raise typer.Exit(1 if failed else 0)
