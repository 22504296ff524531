"""`optstream ledger`: look at it, check it, take it elsewhere, tell it for ever of what changed."""

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, REASON, Config, Days, Json, Reason, parse_day, parse_delta

ledger_app = typer.Typer(no_args_is_help=True, help="What was spent: show, horizon, verify, export, amend.")


@ledger_app.command()
def show(
    config: Config = DEFAULT_CONFIG,
    first: Annotated[
        date | None,
        typer.Option(
            "--from", parser=parse_day, metavar="DATE", help="First day; else a fortnight before the last."
        ),
    ] = None,
    last: Annotated[
        date | None,
        typer.Option(
            "--to", parser=parse_day, metavar="DATE", help="Last day; else the first untouched one."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show terms, releases, and what each window has left, and when it returns."""
    from flows.cli.show_ledger import show_book
    from tasks.config import load_settings
    from tasks.ledger.documents import book_document
    from tasks.ledger.horizon import read_horizons
    from tasks.ledger.open import need_ledger
    from tasks.ledger.show import promise_changed, read_book

    if first and last and last < first:
        raise typer.BadParameter(f"--to {last} is before --from {first}")
    settings, terminal = load_settings(config), Terminal(as_json)
    ledger = need_ledger(settings)
    pages, changed = read_book(settings, ledger, first, last), promise_changed(settings, ledger)
    horizons = read_horizons(settings, ledger)
    show_book(pages, horizons, changed, terminal)
    terminal.document(book_document(pages, horizons, settings.stream.name, changed))


@ledger_app.command()
def verify(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Find any edit, gap or reordering, and compare ledger, catalogue and files; exit code 1 if any."""
    from tasks.config import load_settings
    from tasks.ledger.documents import verification_document
    from tasks.ledger.open import find_ledger
    from tasks.ledger.verify import verify as check

    settings, terminal = load_settings(config), Terminal(as_json)
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
    raise typer.Exit(1 if found.problems else 0)


@ledger_app.command()
def horizon(
    n_days: Annotated[int, typer.Option("--days", min=1, max=3660, help="How many days.")] = 30,
    delta: Annotated[
        Fraction, typer.Option(parser=parse_delta, metavar="DELTA", help="In [1e-10, 0.1], such as 1e-6.")
    ] = "1e-6",  # type: ignore[assignment]  # typer gives the parser its default as text too
    last: Annotated[
        date | None,
        typer.Option(
            "--to", parser=parse_day, metavar="DATE", help="Last day; else that of the last release."
        ),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Show what all readings of one customer in a month or a year lose together, at (epsilon, delta)."""
    from flows.cli.show_ledger import show_horizon
    from tasks.config import load_settings
    from tasks.ledger.documents import horizon_document
    from tasks.ledger.horizon import read_horizon
    from tasks.ledger.open import need_ledger

    settings, terminal = load_settings(config), Terminal(as_json)
    found = read_horizon(settings, need_ledger(settings), n_days, delta, last)
    show_horizon(found, terminal)
    terminal.document(horizon_document(found))


@ledger_app.command()
def export(
    folder: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="A new folder, outside the published one.")
    ],
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Write streams, releases, spends and events as Parquet, for the trusted zone."""
    from tasks.config import load_settings
    from tasks.ledger.documents import export_document
    from tasks.ledger.export import export as write
    from tasks.ledger.open import need_ledger

    settings, terminal = load_settings(config), Terminal(as_json)
    done = write(settings, need_ledger(settings), folder)
    counted = ", ".join(f"{count} {table}" for table, count in done.n_rows.items())
    terminal.say(f"{sum(done.n_rows.values())} rows in {done.folder}: {counted}")
    terminal.document(export_document(done))


@ledger_app.command()
def amend(
    reason: Annotated[str | None, REASON] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Declare nothing; tell which days would have to wait.")
    ] = False,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Declare that the configuration promises otherwise than the releases so far were made under.

    Changes of epsilon, window, alpha, unit, hierarchy, calibration. Days that were released keep what they
    promised: a later day is held to the new promise and to theirs in every window that it shares with them,
    so the first days after an amendment may have to wait. Streams of the same population follow.
    """
    from datetime import UTC, datetime

    from tasks.config import load_settings
    from tasks.ledger.open import need_ledger
    from tasks.operations.amend import rehearse
    from tasks.release.run import terms_of

    settings = load_settings(config)
    if dry_run:
        for line in rehearse(settings, need_ledger(settings)).lines(settings.stream.name):
            print(line)
        return
    if reason is None:
        raise typer.BadParameter("an amendment needs its --reason, which is kept permanently")
    need_ledger(settings).amend(terms_of(settings), reason, datetime.now(UTC))
    print(f"{settings.stream.name}: the promise is now the configuration's; `optstream ledger show` tells it")


@ledger_app.command()
def compromised(day: Days, reason: Reason, config: Config = DEFAULT_CONFIG) -> None:
    """Record that others know the noise of these days: their windows have lost everything, for ever."""
    from datetime import UTC, datetime

    from tasks.config import load_settings
    from tasks.ledger.open import need_ledger
    from tasks.operations.compromise import compromise

    settings = load_settings(config)
    ledger, now = need_ledger(settings), datetime.now(UTC)
    known = {found for one in sorted(set(day)) for found in compromise(settings, ledger, one, reason, now)}
    for one in sorted(known):
        print(f"{one}: every window that it touches counts as lost; nothing more is released in them")


@ledger_app.command("release-lease")
def release_lease(
    day: Annotated[date, typer.Argument(parser=parse_day, metavar="DAY", help="The day.")],
    why: Annotated[
        str, typer.Option("--why", help="Why, in a few words without any value; the ledger keeps it.")
    ],
    config: Config = DEFAULT_CONFIG,
) -> None:
    """End the lease of a run that holds a day and will not come back; the next run takes the day up.

    Should that run live after all, it is fenced off: nothing that it draws or estimates is recorded any more.
    """
    from datetime import UTC, datetime

    from tasks.config import load_settings
    from tasks.ledger.open import need_ledger
    from tasks.release.run import release_lease as release

    settings = load_settings(config)
    until = release(settings, need_ledger(settings), day, why, datetime.now(UTC))
    print(f"{day}: free; its lease would have lasted until {until:%Y-%m-%d %H:%M:%S} UTC")
