"""Maintenance commands, which release nothing."""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import partial
from os import getpid
from socket import gethostname
from typing import Annotated

import typer

from flows.cli.options import (
    DEFAULT_CONFIG,
    Config,
    Configs,
    Days,
    Done,
    Json,
    Reason,
    WordsError,
    day_option,
    days_between,
    each_stream,
    examples,
    files_of,
    flag,
    new_app,
    parse_period,
    period_option,
    periods_asked,
    periods_of_span,
)
from flows.cli.output import Terminal
from optstream.errors import ConfigurationError
from optstream.noise import secure_noise
from tasks.config import Settings, load_settings
from tasks.ledger.open import need_ledger
from tasks.operate.doctor import DoctorDocument, Finding, examine, unusable
from tasks.operate.permissions import check_trusted
from tasks.operate.purge import purge as remove
from tasks.operate.withdraw import withdraw as take_back
from tasks.pages.public import require_pages
from tasks.release.outcomes import RunDocument, budget_of
from tasks.release.publish import days_published, publish_again
from tasks.release.run import Ended, Requested, Run, Status, and_after, each

app = new_app()


@app.command(epilog=examples("optstream doctor", "optstream doctor --config population.toml"))
def doctor(config: Configs = None, as_json: Json = False) -> None:
    """Check security and configuration.

    Looks for what would disclose secrets, stop nights or lose the ledger. Exit code 1 if something should be
    done.
    """

    def show(findings: Sequence[Finding], terminal: Terminal) -> Done:
        for one in findings:
            terminal.say(f"{one.severity}: {one.place}: {one.rule}\n    {one.remedy}")
        if not findings:
            terminal.say("nothing is wrong")
        n_bad = sum(one.is_bad for one in findings)
        terminal.document(DoctorDocument(sound=not n_bad, findings=tuple(findings)))
        return Done(1, f"{n_bad} to be done") if n_bad else Done(0, "nothing is wrong")

    def of_stream(settings: Settings, terminal: Terminal) -> Done:
        return show(examine(settings, dict(os.environ), datetime.now(UTC)), terminal)

    files = files_of(config)
    if len(files) == 1:
        try:
            load_settings(files[0])
        except ConfigurationError as error:
            raise typer.Exit(show(unusable(files[0], error), Terminal(as_json)).code) from None
    each_stream(config, as_json, of_stream)


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
    terminal.document(done)


# `optstream withdraw` and `optstream publish`: take days back, or put lost and damaged files back.


@app.command(epilog=examples("optstream withdraw --date 2016-02-01 --reason 'the wrong dump'"))
def withdraw(day: Days, reason: Reason, config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Take days back out of the catalogue; they stay charged.

    A tombstone says so to readers. Exit code 1 if any day is left.
    """
    settings = load_settings(config)
    days = periods_asked(settings, day)
    run = _run(settings, "withdraw")
    works = each(
        [Requested(one) for one in days], Requested, partial(take_back, run, reason=reason, days=days)
    )
    works = _finish(run, works, Terminal(as_json))
    failed = any(day.outcome.status in (Status.FAILED, Status.BUSY) for day in works)
    raise typer.Exit(1 if failed else 0)


@app.command(
    epilog=examples("optstream publish 2016-02-01", "optstream publish --from 2016-02-01 --to 2016-02-29")
)
def publish(
    day: Annotated[
        list[date] | None, typer.Argument(parser=parse_period, metavar="DAY", help="Days.")
    ] = None,
    more: Annotated[list[date] | None, period_option("--date", "Day or hour; may be repeated.")] = None,
    first: Annotated[date | None, day_option("--from", "First day of a span.")] = None,
    last: Annotated[date | None, day_option("--to", "Last day of a span.")] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Write lost or damaged published files again, for free.

    The same bytes, from the staging or from the stored measurements. Nothing is drawn and nothing charged; a
    withdrawn day is refused. Of a span, days that were never published are left out. Exit code 1 if any day
    is left.
    """
    if (first is None) != (last is None):
        raise WordsError("--from and --to belong together")
    days = {*(day or ()), *(more or ())}
    if not days and first is None:
        raise WordsError("name a day, or a span with --from and --to")
    settings = load_settings(config)
    check_trusted(settings)
    run, days = _run(settings, "publish"), set(periods_asked(settings, days))
    if first is not None and last is not None:
        days |= days_published(run) & set(periods_of_span(settings, days_between(first, last)))
    works = each([Requested(one) for one in sorted(days)], Requested, partial(publish_again, run, days=days))
    works = _finish(run, works, Terminal(as_json))
    raise typer.Exit(0 if all(day.outcome.status.is_good for day in works) else 1)


def _run(settings: Settings, what: str) -> Run:
    owner = f"{gethostname()}:{getpid()}-{what}"
    return Run(settings, need_ledger(settings), secure_noise(), owner, lambda: datetime.now(UTC))


def _finish(run: Run, works: Sequence[Ended], terminal: Terminal) -> list[Ended]:
    """Write the pages again, and show what became of each day, and of the pages where they failed."""
    settings, ledger = run.settings, run.ledger

    def pages() -> list[Ended]:
        require_pages(settings, ledger, run.clock())
        return []

    ended = and_after(works, pages)
    budget = budget_of(settings, ledger, [day.day for day in works])
    terminal.outcomes(ended, settings, budget)
    terminal.document(RunDocument.of(ended, settings, budget))
    return ended
