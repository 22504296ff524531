"""`optstream ledger`: look at it, check it, take it elsewhere, tell it permanently of what changed."""

from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.activity import work
from flows.cli.console import Terminal
from flows.cli.options import (
    DEFAULT_CONFIG,
    REASON,
    Config,
    Days,
    Json,
    Reason,
    WordsError,
    day_option,
    examples,
    flag,
    new_app,
    parse_exactly,
    parse_period,
    periods_asked,
)
from flows.cli.several import Configs, Done, each_stream
from flows.cli.show.ledger_book import show_book, show_horizon
from tasks.config import Settings, load_settings
from tasks.ledger.documents import book_document, export_document, horizon_document, verification_document
from tasks.ledger.export import export as write
from tasks.ledger.horizon import read_horizon, read_horizons
from tasks.ledger.open import find_ledger, need_ledger
from tasks.ledger.show import read_book, refused_changes
from tasks.ledger.verify import verify as check
from tasks.operations.amend import declare, rehearse
from tasks.operations.compromise import compromise
from tasks.release.run import release_lease as release
from tasks.reports import write_pages

app = new_app("What was spent: show, horizon, verify, export, amend.")


@app.command(
    epilog=examples("optstream ledger show", "optstream ledger show --from 2016-02-01 --to 2016-02-29")
)
def show(
    config: Config = DEFAULT_CONFIG,
    first: Annotated[
        date | None, day_option("--from", "First day; else a fortnight before the last.")
    ] = None,
    last: Annotated[date | None, day_option("--to", "Last day; else the first untouched one.")] = None,
    as_json: Json = False,
) -> None:
    """Print terms, releases, and what each window has left.

    And when it returns.
    """
    if first and last and last < first:
        raise WordsError(f"--to {last} is before --from {first}")
    settings, terminal = load_settings(config), Terminal(as_json)
    ledger = need_ledger(settings)
    pages, changed = read_book(settings, ledger, first, last), refused_changes(settings, ledger)
    horizons = read_horizons(settings, ledger)
    show_book(pages, horizons, changed, terminal)
    terminal.document(book_document(pages, horizons, settings.stream.name, changed))


@app.command(epilog=examples("optstream ledger verify", "optstream ledger verify --config population.toml"))
def verify(config: Configs = None, as_json: Json = False) -> None:
    """Find any edit, gap or difference.

    Checks the ledger's hash chain, and compares ledger, catalogue and files. Exit code 1 if anything is
    found.
    """
    raise typer.Exit(each_stream(config, as_json, _verify))


def _verify(settings: Settings, terminal: Terminal) -> Done:
    with work("compare ledger, catalogue and files"):
        found = check(settings, find_ledger(settings))
    for line in found.problems:
        terminal.say(f"problem: {line}")
    for line in found.notes:
        terminal.say(f"note: {line}")
    counted = f"{found.n_releases} releases, {found.n_listed} days in the catalogue"
    told = (
        f"{len(found.problems)} found" if found.problems else "no edit, gap, reordering or difference found"
    )
    terminal.say(f"{told}: {counted}")
    terminal.document(verification_document(found))
    return Done(1 if found.problems else 0, told)


@app.command(epilog=examples("optstream ledger horizon --days 365 --delta 1e-6"))
def horizon(
    n_days: Annotated[int, typer.Option("--days", min=1, max=3660, help="How many days.")] = 30,
    delta: Annotated[
        Fraction,
        typer.Option(parser=parse_exactly("delta"), metavar="DELTA", help="In [1e-10, 0.1], such as 1e-6."),
    ] = "1e-6",  # type: ignore[assignment]  # typer gives the parser its default as text too
    last: Annotated[date | None, day_option("--to", "Last day; else that of the last release.")] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Print what a customer's whole month or year loses.

    All readings of one customer together, as (epsilon, delta).
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    found = read_horizon(settings, need_ledger(settings), n_days, delta, last)
    show_horizon(found, terminal)
    terminal.document(horizon_document(found))


@app.command(epilog=examples("optstream ledger export --into exported"))
def export(
    folder: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="A new folder, outside the published one.")
    ],
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Write the ledger as Parquet, for the trusted zone.

    Its streams, releases, spends and events.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    done = write(settings, need_ledger(settings), folder)
    counted = ", ".join(f"{count} {table}" for table, count in done.n_rows.items())
    terminal.say(f"{sum(done.n_rows.values())} rows in {done.folder}: {counted}")
    terminal.document(export_document(done))


@app.command(
    epilog=examples(
        "optstream ledger amend --dry-run", "optstream ledger amend --reason 'the board raised epsilon'"
    )
)
def amend(
    reason: Annotated[str | None, REASON] = None,
    dry_run: Annotated[
        bool, flag("--dry-run", "Declare nothing; tell which days would have to wait.")
    ] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Declare another privacy guarantee: the configuration's.

    Changes of epsilon, window, alpha, unit, hierarchy. Days that were released keep their guarantee: a later
    day is held to the new one and to theirs in every window that it shares with them, so the first days
    after an amendment may have to wait. Streams of the same population follow.
    """
    settings = load_settings(config)
    if dry_run:
        for line in rehearse(settings, need_ledger(settings)).lines(settings.stream.name):
            print(line)
        return
    if reason is None:
        raise WordsError("an amendment needs its --reason, which is kept permanently")
    declare(settings, need_ledger(settings), reason, datetime.now(UTC))
    print(
        f"{settings.stream.name}: the privacy guarantee is now the configuration's; "
        "`optstream ledger show` tells it"
    )


@app.command(epilog=examples("optstream ledger compromised --date 2016-02-01 --reason 'a stolen disk'"))
def compromised(day: Days, reason: Reason, config: Config = DEFAULT_CONFIG) -> None:
    """Record that others know the noise of days.

    Their windows have lost everything, permanently.
    """
    settings = load_settings(config)
    ledger, now = need_ledger(settings), datetime.now(UTC)
    known = {
        found
        for one in periods_asked(settings, day)
        for found in compromise(settings, ledger, one, reason, now)
    }
    for one in sorted(known):
        print(f"{one}: every window that it touches counts as lost; nothing more is released in them")
    written = write_pages(settings, ledger, now)
    if written.problem is not None:
        print(f"the published folder does not say so yet, for {written.problem}; then run `optstream report`")
    for other in ledger.siblings(settings.stream.name):
        print(
            f"{other.stream} shares the privacy budget and has lost them too: run `optstream report` with "
            "its configuration, so that its card and page say so (its next run does)"
        )


@app.command(
    "release-lease", epilog=examples("optstream ledger release-lease 2016-02-01 --why 'its machine burnt'")
)
def release_lease(
    day: Annotated[date, typer.Argument(parser=parse_period, metavar="DAY", help="The day, or hour.")],
    why: Annotated[
        str, typer.Option("--why", help="Why, in a few words without any value; the ledger keeps it.")
    ],
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Free a day that a dead run holds.

    Ends the lease of a run that will not come back; the next run takes the day up. Should that run live
    after all, it is fenced off: nothing that it draws or estimates is recorded any more.
    """
    settings = load_settings(config)
    (day,) = periods_asked(settings, [day])
    until = release(settings, need_ledger(settings), day, why, datetime.now(UTC))
    print(f"{day}: free; its lease would have lasted until {until:%Y-%m-%d %H:%M:%S} UTC")
