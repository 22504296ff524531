"""`optstream ledger`: show, verify and export it; record changes in it permanently."""

from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from flows.cli import options as cli
from flows.cli.output import Terminal, rounded_down, work
from optstream.errors import ParameterError, PublicationError
from optstream.privacy.exact import exact
from optstream.privacy.horizon import HorizonLoss
from tasks.config import Settings, load_settings
from tasks.ledger import find_ledger, need_ledger
from tasks.ledger.export import export as write
from tasks.ledger.show import (
    Book,
    BudgetSummary,
    DayHeadroom,
    Horizon,
    read_book,
    read_horizon,
    read_horizons,
    refused_changes,
)
from tasks.ledger.verify import verify as check
from tasks.operate.declare import compromise, declare, rehearse
from tasks.pages.public import write_pages
from tasks.pages.render import at_most
from tasks.release.run import release_lease as end_lease


def show_book(book: Book, terminal: Terminal) -> None:
    """Print for each privacy budget its streams, days and windows, and its last month and year."""
    if not book.grants:
        terminal.say("the ledger has no stream yet")
    for page in book.grants:
        model = page.terms.model
        terminal.say(
            f"privacy budget {page.name}: {model.in_words} in any window of {model.window_length} steps "
            f"({page.terms.calendar})"
        )
        for stream in page.streams:
            terms, counted = stream.terms, stream.counts.items()
            counts = ", ".join(f"{count} {state.value.lower()}" for state, count in counted)
            terminal.say(
                f"stream {terms.stream}: {counts or 'no releases'}; alpha {terms.model.alpha}, resolution "
                f"{terms.model.resolution}, unit {terms.model.unit}, {terms.calibration}, hierarchy "
                f"{terms.hierarchy_hash[:12]}"
            )
        if page.days:
            terminal.say("")
            headings = ("date", "released", "charged", "least left", "may be released")
            terminal.table(headings, [_day(page, one) for one in page.days], n_texts=5)
        if page.windows:
            terminal.say("")
            rows = [
                (
                    _when(one.first_step, one.begin_first),
                    _when(one.last_step, one.begin_last),
                    rounded_down(one.left, model.currency),
                )
                for one in page.windows
            ]
            terminal.table(("windows that begin between", "and", "have left"), rows, n_texts=3)
        if page.shared_words:
            terminal.say(f"by stream: {page.shared_words}")
        if page.free_from is None:
            terminal.say("nothing was ever charged: every window has all of it")
        else:
            whole = model.in_words if model.delta else model.epsilon
            where = _when(page.free_from, page.free_from_time)
            terminal.say(f"windows that begin at {where} or later have all of it, {whole}")
        for found in book.horizons:
            if found.grant == page.name:
                line = f"the {found.n_days} days to {found.last}: {_loss(found)}"
                terminal.say(f"{line}; {plain_sum(found.loss)}" if found.loss else line)
        terminal.say("")
    if book.changed_in_configuration:
        changed = ", ".join(book.changed_in_configuration)
        terminal.say(f"the ledger has another {changed} than the configuration: a run is refused")


COMPOSED = {
    "draws": "exact composition of the noise that was drawn",
    "windows": "composition of whole periods, each with the whole epsilon of the windows that it takes",
    "plain": "the plain sum, which no composition that holds here is below",
    "rho": "the sum of rho, of zero-concentrated privacy",
}


def _loss(found: Horizon) -> str:
    if found.loss is None:
        return "noise was compromised, so all is lost"
    return (
        f"all readings of one customer lose at most epsilon {at_most(found.loss.epsilon)} "
        f"at delta {float(found.delta):g}"
    )


def _day(page: BudgetSummary, one: DayHeadroom) -> tuple[str, ...]:
    states, charged = [], []
    for stream in page.streams:
        of = f" ({stream.terms.stream})" if len(page.streams) > 1 else ""
        for release in stream.releases:
            if release.period == one.day.isoformat():
                revision = f" r{release.revision}" if release.revision else ""
                states.append(f"{release.state.value.lower()}{revision}{of}")
                charged.append(f"{float(release.epsilon):.6g}")
    left = rounded_down(one.left, page.terms.model.currency)
    may = "" if one.may is None else "yes" if one.may else f"no: {one.because}"
    return str(one.day), ", ".join(states), ", ".join(charged), left, may


def _when(step: int, begin: datetime | None) -> str:
    """Local time to the minute, with its offset where the clock shows it twice; a step without a calendar."""
    if begin is None:
        return f"step {step}"
    twice = begin.tzinfo and begin.replace(fold=0).utcoffset() != begin.replace(fold=1).utcoffset()
    return begin.strftime("%Y-%m-%d %H:%M%z" if twice else "%Y-%m-%d %H:%M")


def plain_sum(loss: HorizonLoss) -> str:
    """The sum of all charges, in their own currency."""
    return f"rho {float(loss.plain):.6g}" if loss.composed == "rho" else f"plain sum {at_most(loss.plain)}"


def parse_delta(text: str) -> Fraction:
    """Return an exact number. Raises typer.BadParameter unless it is one."""
    try:
        return exact(text, "delta")
    except ParameterError as error:
        raise typer.BadParameter(str(error)) from None


app = cli.new_app("The privacy budget: show, horizon, verify, export, amend.")


@app.command(
    epilog=cli.examples("optstream ledger show", "optstream ledger show --from 2016-02-01 --to 2016-02-29")
)
def show(
    config: cli.Config = cli.DEFAULT_CONFIG,
    first: Annotated[
        date | None, cli.day_option("--from", "First day; else a fortnight before the last.")
    ] = None,
    last: Annotated[date | None, cli.day_option("--to", "Last day; else the first untouched one.")] = None,
    as_json: cli.Json = False,
) -> None:
    """Print terms, releases, and what each window has left.

    And when it returns.
    """
    if first and last and last < first:
        raise cli.WordsError(f"--to {last} is before --from {first}")
    settings, terminal = load_settings(config), Terminal(as_json)
    ledger = need_ledger(settings)
    book = Book(
        stream=settings.stream.name,
        changed_in_configuration=refused_changes(settings, ledger),
        grants=read_book(settings, ledger, first, last),
        horizons=read_horizons(settings, ledger),
    )
    show_book(book, terminal)
    terminal.document(book)


@app.command(
    epilog=cli.examples("optstream ledger verify", "optstream ledger verify --config population.toml")
)
def verify(config: cli.Configs = None, as_json: cli.Json = False) -> None:
    """Find any edit, gap or difference.

    Checks the ledger's hash chain, and compares ledger, catalogue and files. Exit code 1 if anything is
    found.
    """

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        with work("compare ledger, catalogue and files"):
            found = check(settings, find_ledger(settings))
        for kind, lines in (("problem", found.problems), ("note", found.notes)):
            for line in lines:
                terminal.say(f"{kind}: {line}")
        n = len(found.problems)
        verdict = f"{n} found" if n else "no edit, gap, reordering or difference found"
        terminal.say(f"{verdict}: {found.n_releases} releases, {found.n_listed} days in the catalogue")
        terminal.document(found)
        return cli.Done(int(n > 0), verdict)

    cli.each_stream(config, as_json, of_stream)


@app.command(epilog=cli.examples("optstream ledger horizon --days 365 --delta 1e-6"))
def horizon(
    n_days: Annotated[int, typer.Option("--days", min=1, max=3660, help="How many days.")] = 30,
    delta: Annotated[
        Fraction,
        typer.Option(parser=parse_delta, metavar="DELTA", help="In [1e-10, 0.1], such as 1e-6."),
    ] = "1e-6",  # type: ignore[assignment]  # typer gives the parser its default as text too
    last: Annotated[date | None, cli.day_option("--to", "Last day; else that of the last release.")] = None,
    config: cli.Config = cli.DEFAULT_CONFIG,
    as_json: cli.Json = False,
) -> None:
    """Print the loss of a customer's whole month or year.

    All readings of one customer together, as (epsilon, delta).
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    found = read_horizon(settings, need_ledger(settings), n_days, delta, last)
    span = f"{found.n_days} days, {found.first} to {found.last}"
    terminal.say(f"privacy budget {found.grant}, {span}: {_loss(found)}")
    if found.loss is not None:
        terminal.say(f"{COMPOSED[found.loss.composed]}; {plain_sum(found.loss)}")
    terminal.document(found)


@app.command(epilog=cli.examples("optstream ledger export --into exported"))
def export(
    folder: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="A new folder, outside the published one.")
    ],
    config: cli.Config = cli.DEFAULT_CONFIG,
    as_json: cli.Json = False,
) -> None:
    """Write the ledger as Parquet, for the trusted zone.

    Its streams, releases, spends and events.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    done = write(settings, need_ledger(settings), folder)
    counted = ", ".join(f"{count} {table}" for table, count in done.n_rows.items())
    terminal.say(f"{sum(done.n_rows.values())} rows in {done.folder}: {counted}")
    terminal.document(done)


@app.command(
    epilog=cli.examples(
        "optstream ledger amend --dry-run", "optstream ledger amend --reason 'the board raised epsilon'"
    )
)
def amend(
    reason: Annotated[str | None, cli.REASON] = None,
    dry_run: Annotated[
        bool, cli.flag("--dry-run", "Declare nothing; tell which days would have to wait.")
    ] = False,
    config: cli.Config = cli.DEFAULT_CONFIG,
) -> None:
    """Declare another privacy guarantee: the configuration's.

    Changes of epsilon, window, alpha, unit, hierarchy. Days that were released keep their guarantee: a later
    day is held to the new one and to theirs in every window that it shares with them, so the first days
    after an amendment may have to wait. Streams of the same population follow.
    """
    settings = load_settings(config)
    if dry_run:
        for line in rehearse(settings, need_ledger(settings)):
            print(line)
        return
    if reason is None:
        raise cli.WordsError("an amendment needs its --reason, which is kept permanently")
    declare(settings, need_ledger(settings), reason, datetime.now(UTC))
    print(
        f"{settings.stream.name}: the privacy guarantee is now the configuration's; "
        "`optstream ledger show` tells it"
    )


@app.command(epilog=cli.examples("optstream ledger compromised --date 2016-02-01 --reason 'a stolen disk'"))
def compromised(day: cli.Days, reason: cli.Reason, config: cli.Config = cli.DEFAULT_CONFIG) -> None:
    """Record that others know the noise of days.

    Their windows have lost everything, permanently.
    """
    settings = load_settings(config)
    ledger, now = need_ledger(settings), datetime.now(UTC)
    known = {
        found
        for one in cli.periods_asked(settings, day)
        for found in compromise(settings, ledger, one, reason, now)
    }
    for one in sorted(known):
        print(f"{one}: every window that it touches counts as lost; nothing more is released in them")
    try:
        write_pages(settings, ledger, now)
    except PublicationError as error:
        print(f"readers do not know it yet: {error}; correct that, then run `optstream report`")
    for other in ledger.siblings(settings.stream.name):
        print(
            f"{other.stream} shares the privacy budget and has lost them too: run `optstream report` with "
            "its configuration, so that its card and page say so (its next run does)"
        )


@app.command(
    "release-lease",
    epilog=cli.examples("optstream ledger release-lease 2016-02-01 --why 'its machine burnt'"),
)
def release_lease(
    day: Annotated[date, typer.Argument(parser=cli.parse_period, metavar="DAY", help="The day, or hour.")],
    why: Annotated[
        str, typer.Option("--why", help="Why, in a few words without any value; the ledger keeps it.")
    ],
    config: cli.Config = cli.DEFAULT_CONFIG,
) -> None:
    """Free a day that a dead run holds.

    Ends the lease of a run that will not come back; the next run takes the day up. Should that run live
    after all, it is fenced off: nothing that it draws or estimates is recorded any more.
    """
    settings = load_settings(config)
    (day,) = cli.periods_asked(settings, [day])
    until = end_lease(settings, need_ledger(settings), day, why, datetime.now(UTC))
    print(f"{day}: free; its lease would have lasted until {until:%Y-%m-%d %H:%M:%S} UTC")
