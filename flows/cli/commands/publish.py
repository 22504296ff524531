"""`optstream publish`: put published files that were lost or damaged back."""

from datetime import UTC, date, datetime
from functools import partial
from os import getpid
from socket import gethostname
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import (
    DEFAULT_CONFIG,
    Config,
    Json,
    WordsError,
    days_between,
    examples,
    new_app,
    parse_day,
)
from optstream.noise import secure_noise
from tasks.config import load_settings
from tasks.ledger.open import need_ledger
from tasks.operations.permissions import check_trusted
from tasks.release.day import Requested
from tasks.release.each import each
from tasks.release.publish_again import days_published, publish_again
from tasks.release.records.outcomes import budget_of, outcomes_document
from tasks.release.run import Run
from tasks.reports import write_pages

app = new_app()


@app.command(
    epilog=examples("optstream publish 2016-02-01", "optstream publish --from 2016-02-01 --to 2016-02-29")
)
def publish(
    day: Annotated[list[date] | None, typer.Argument(parser=parse_day, metavar="DAY", help="Days.")] = None,
    more: Annotated[
        list[date] | None,
        typer.Option("--date", parser=parse_day, metavar="DATE", help="Day; may be repeated."),
    ] = None,
    first: Annotated[
        date | None,
        typer.Option("--from", parser=parse_day, metavar="DATE", help="First day of a span."),
    ] = None,
    last: Annotated[
        date | None, typer.Option("--to", parser=parse_day, metavar="DATE", help="Last day of a span.")
    ] = None,
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
    settings, terminal = load_settings(config), Terminal(as_json)
    check_trusted(settings)
    ledger = need_ledger(settings)
    owner = f"{gethostname()}:{getpid()}-publish"
    run = Run(settings, ledger, secure_noise(), owner, lambda: datetime.now(UTC))
    if first is not None and last is not None:
        days |= days_published(run) & set(days_between(first, last))
    works = each([Requested(one) for one in sorted(days)], Requested, partial(publish_again, run, days=days))
    written = write_pages(settings, ledger, datetime.now(UTC))
    budget = budget_of(settings, ledger, sorted(days))
    terminal.outcomes(works, settings, budget)
    if written.problem is not None:
        terminal.say(f"the page of the data users was not written: {written.problem}")
    terminal.document(outcomes_document(works, settings, budget))
    raise typer.Exit(0 if all(day.outcome.status.is_good for day in works) else 1)
