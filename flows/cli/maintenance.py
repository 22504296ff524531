"""Commands that keep the house in order and release nothing."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Days, Json, Reason


def doctor(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Look for what lets secrets out or stops nights; exit code 1 if something should be done."""
    from optstream.errors import ConfigurationError
    from tasks.config import load_settings
    from tasks.doctor import doctor_document, examine, unusable

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
    from tasks.config import load_settings
    from tasks.ledger.documents import purge_document
    from tasks.ledger.open import need_ledger
    from tasks.operations.purge import purge as remove

    settings, terminal = load_settings(config), Terminal(as_json)
    done = remove(settings, need_ledger(settings), datetime.now(UTC), raw_state=raw_state, dry_run=dry_run)
    for note in done.notes:
        terminal.say(f"note: {note}")
    counted = ", ".join(f"{count} {kind}" for kind, count in done.n_removed.items())
    terminal.say(f"{'would remove' if dry_run else 'removed'} {counted}")
    terminal.document(purge_document(done, dry_run))


def withdraw(day: Days, reason: Reason, config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Take days back: out of the catalogue, still charged, with a tombstone that says so."""
    from functools import partial
    from socket import gethostname

    from optstream.noise import secure_noise
    from tasks.config import load_settings
    from tasks.ledger.open import need_ledger
    from tasks.operations.withdraw import withdraw as take_back
    from tasks.release.day import Requested, Status
    from tasks.release.each import each
    from tasks.release.outcomes import budget_of, outcomes_document
    from tasks.release.run import Run
    from tasks.reports import write_pages

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
