"""Maintenance commands, which release nothing."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Annotated

import typer

from flows.cli import options as cli
from flows.cli.output import Terminal
from optstream.errors import ConfigurationError
from tasks.config import Settings, load_settings
from tasks.ledger import need_ledger
from tasks.operate.doctor import DoctorDocument, Finding, Severity, examine
from tasks.operate.permissions import check_trusted
from tasks.operate.purge import purge as remove
from tasks.operate.withdraw import withdraw as take_back
from tasks.pages.public import write_pages
from tasks.release.outcomes import RunDocument, budget_of
from tasks.release.publish import days_published, publish_again
from tasks.release.run import Ended, Requested, Run, Status, append_followups, each, run_of

app = cli.new_app()


@app.command(epilog=cli.examples("optstream doctor", "optstream doctor --config population.toml"))
def doctor(config: cli.Configs = None, as_json: cli.Json = False) -> None:
    """Check security and configuration.

    Finds risks: disclosed secrets, stopped nights, a lost ledger. Exit code 1 if something should be
    done.
    """

    def show(findings: Sequence[Finding], terminal: Terminal) -> cli.Done:
        for one in findings:
            terminal.say(f"{one.severity}: {one.place}: {one.rule}\n    {one.remedy}")
        n_bad = sum(one.severity is not Severity.NOTE for one in findings)
        words = f"{n_bad} to be done" if n_bad else "nothing is wrong"
        if not findings:
            terminal.say(words)
        terminal.document(DoctorDocument(sound=not n_bad, findings=tuple(findings)))
        return cli.Done(1 if n_bad else 0, words)

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        return show(examine(settings, dict(os.environ), datetime.now(UTC)), terminal)

    files = cli.files_of(config)
    if len(files) == 1:
        try:
            load_settings(files[0])
        except ConfigurationError as error:  # zones may be nested, too
            remedy = "correct the configuration, then ask the doctor again"
            finding = Finding(Severity.WRONG, str(files[0]), str(error), remedy)
            raise typer.Exit(show([finding], Terminal(as_json)).code) from None
    cli.each_stream(config, as_json, of_stream)


@app.command(epilog=cli.examples("optstream purge --dry-run", "optstream purge"))
def purge(
    config: cli.Config = cli.DEFAULT_CONFIG,
    dry_run: Annotated[bool, cli.flag("--dry-run", "Only list the files to remove.")] = False,
    raw_state: Annotated[
        bool,
        cli.flag(
            "--raw-state", "Also the raw state that the next day would go on from; costs that day accuracy."
        ),
    ] = False,
    as_json: cli.Json = False,
) -> None:
    """Remove files past their retention.

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


@app.command(epilog=cli.examples("optstream withdraw --date 2016-02-01 --reason 'the wrong dump'"))
def withdraw(
    day: cli.Days, reason: cli.Reason, config: cli.Config = cli.DEFAULT_CONFIG, as_json: cli.Json = False
) -> None:
    """Take days back out of the catalogue; they stay charged.

    A tombstone says so to readers. Exit code 1 if any day is left.
    """
    settings = load_settings(config)
    days = cli.periods_asked(settings, day)
    run = run_of(settings, need_ledger(settings))
    ended = _finish(run, days, partial(take_back, run, reason=reason, days=days), as_json)
    raise typer.Exit(int(any(one.status in (Status.FAILED, Status.BUSY) for one in ended)))


@app.command(
    epilog=cli.examples("optstream publish 2016-02-01", "optstream publish --from 2016-02-01 --to 2016-02-29")
)
def publish(
    day: Annotated[
        list[date] | None, typer.Argument(parser=cli.parse_period, metavar="DAY", help="Days.")
    ] = None,
    more: Annotated[list[date] | None, cli.period_option("--date", "Day or hour; may be repeated.")] = None,
    first: Annotated[date | None, cli.day_option("--from", "First day of a span.")] = None,
    last: Annotated[date | None, cli.day_option("--to", "Last day of a span.")] = None,
    config: cli.Config = cli.DEFAULT_CONFIG,
    as_json: cli.Json = False,
) -> None:
    """Write lost or damaged published files again, for free.

    The same bytes, from the staging or from the stored measurements. Nothing is drawn and nothing charged; a
    withdrawn day is refused. Of a span, days that were never published are left out. Exit code 1 if any day
    is left.
    """
    if (first is None) != (last is None):
        raise cli.WordsError("--from and --to belong together")
    days = {*(day or ()), *(more or ())}
    if not days and first is None:
        raise cli.WordsError("name a day, or a span with --from and --to")
    check_trusted(settings := load_settings(config))
    run = run_of(settings, need_ledger(settings))
    days = set(cli.periods_asked(settings, days))
    if first is not None and last is not None:
        days |= days_published(run) & set(cli.periods_of_span(settings, cli.days_between(first, last)))
    ended = _finish(run, sorted(days), partial(publish_again, run, days=days), as_json)
    raise typer.Exit(int(not all(one.status.is_good for one in ended)))


def _finish(run: Run, days: Sequence[date], step: Callable[[Requested], Ended], as_json: bool) -> list[Ended]:
    """Take the days, write the pages again, and show how each day ended, and the pages where they failed."""
    settings, ledger, terminal = run.settings, run.ledger, Terminal(as_json)
    ended = each([Requested(day) for day in days], Requested, step)

    def write() -> None:
        write_pages(settings, ledger, run.clock())

    ended = append_followups(ended, write)
    budget = budget_of(settings, ledger, days)
    terminal.outcomes(ended, settings, budget)
    terminal.document(RunDocument.of(ended, settings, budget))
    return ended
