"""`optstream status` and `optstream watch`: look, show, and notify."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path

import typer

from flows.cli.ledger import rounded_down
from flows.cli.options import Configs, Done, Json, each_stream, examples, files_of, new_app
from flows.cli.output import Terminal
from flows.orchestration.environment import NoServerError, connect, environment
from optstream.errors import OptStreamError
from optstream.stream import follows
from tasks.config import Settings, load_settings
from tasks.ledger.open import ledger_if_any
from tasks.monitor.alarms import DEPENDS, but_for_dates, lines_of
from tasks.monitor.days import by_day, day_or_hour
from tasks.monitor.facts import MOST_SHOWN, SUSPECT_DAYS, newest_day, replaced
from tasks.monitor.view import DayState, State, StreamView, status_document
from tasks.monitor.view import watch as watch_stream

# How a stream's calendar and alarms look on a terminal: a letter a day, then only what is not fine.

QUIET = (State.PUBLISHED, State.RESTATED)
RULER = "          1   5    10   15   20   25   30"
MOST_ROWS = 40
"""Of the days that are not fine; the JSON document has all."""
DAYS_OF_HEADROOM = 8


def show_view(settings: Settings, view: StreamView, terminal: Terminal) -> None:
    """The calendar, what is not fine, budget, audit, alarms."""
    if terminal.as_json:
        return
    if not view.days:
        terminal.say(f"stream {view.stream}: nothing released yet")
    else:
        for line in month_lines(by_day(view.days)):
            terminal.say(line)
        terminal.say(_legend(view))
        _show_days(settings, view, terminal)
    terminal.budget(view.facts.budget)
    _show_headroom(view, terminal)
    audit = view.facts.audit
    if audit is not None:
        how = "passed" if audit.passed else "FAILED"
        other = "" if audit.same else ", of another configuration"
        terminal.say(f"last audit: {audit.at:%Y-%m-%d}, {how}{other}")
    if not view.facts.live and view.days:
        terminal.say(
            f"the calendar ends with {view.facts.last}, the newest day that is known: without [watch] in the "
            "configuration no later day is expected"
        )
    _show_replaced(settings, view, terminal)
    terminal.say(f"alarms about readings, if there are any, in {settings.validation_folder}")
    for line in lines_of(view.alarms) or ["no alarms"]:
        terminal.say(line)


def month_lines(days: Iterable[DayState]) -> Iterator[str]:
    """A row for each month, a column for each day of it."""
    yield RULER
    for (year, month), group in groupby(days, key=lambda day: (day.day.year, day.day.month)):
        letters = {day.day.day: day.state.letter for day in group}
        row = "".join(letters.get(number, " ") for number in range(1, 32))
        yield f"{year}-{month:02d}   {row}".rstrip()


def _legend(view: StreamView) -> str:
    return ", ".join(f"{state.letter} {count} {state}" for state, count in view.counts.items())


def _show_days(settings: Settings, view: StreamView, terminal: Terminal) -> None:
    """Runs of days that are not fine for the same reason, each in a row, the newest last."""
    rows = list(stretches(view.days))
    if not rows:
        return
    if len(rows) > MOST_ROWS:
        terminal.say(f"the last {MOST_ROWS} of {len(rows)} stretches that are not fine:")
    for first, last in rows[-MOST_ROWS:]:
        facts = [first.state.value + (" (accepted)" if first.accepted else "")]
        if first.waiting_for:
            named = ", ".join(map(settings.called, first.waiting_for[:5]))
            facts.append(named + (" …" if len(first.waiting_for) > 5 else ""))
        if first.days_until_raw_expires is not None:
            facts.append(f"raw kept for {first.days_until_raw_expires} days")
        facts.append(first.note)
        terminal.say(f"{_span(first.day, last.day)}  {'; '.join(filter(None, facts))}")


def _show_replaced(settings: Settings, view: StreamView, terminal: Terminal) -> None:
    """The regions with replaced readings, of the newest day that is known."""
    rows = replaced(view.facts)
    if not rows:
        return
    terminal.say(
        f"readings replaced on {newest_day(view.facts)}, and the most in the last {SUSPECT_DAYS} days:"
    )
    for row in rows[:MOST_SHOWN]:
        newest = row.newest
        terminal.say(
            f"  {settings.called(row.region)}: {newest.clamped:.1%} clamped, {newest.absent:.1%} absent, "
            f"{newest.doubled:.1%} doubled, {newest.unusable:.1%} unusable; "
            f"most {row.most:.1%} on {row.most_day}"
        )
    if len(rows) > MOST_SHOWN:
        terminal.say(f"  and {len(rows) - MOST_SHOWN} more regions: `optstream status --json` has all")
    terminal.say(f"  {DEPENDS}")


def _show_headroom(view: StreamView, terminal: Terminal) -> None:
    """The least that any window with a step of each day has left, of the newest days."""
    page = view.facts.page
    if page is not None and page.days:
        currency = view.facts.budget.currency
        left = [
            f"{one.day} {rounded_down(one.left, currency)}{' (refused)' if one.may is False else ''}"
            for one in page.days[-DAYS_OF_HEADROOM:]
        ]
        unit = day_or_hour(page.days[-1].day)
        terminal.say(f"least left by {unit} (`optstream ledger show`: by window): {', '.join(left)}")
    if page is not None and page.shared_words:
        terminal.say(f"by stream: {page.shared_words}")


def stretches(days: Iterable[DayState]) -> Iterator[tuple[DayState, DayState]]:
    """First and last of each run of neighbouring days that are not fine and alike but for their dates."""
    found: list[tuple[DayState, DayState]] = []
    for day in days:
        if day.state in QUIET and not day.note:
            continue
        if found and _alike(found[-1][1], day):
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    yield from found


def _alike(before: DayState, day: DayState) -> bool:
    same = (before.state, before.waiting_for, before.accepted) == (day.state, day.waiting_for, day.accepted)
    noted = but_for_dates(before.note) == but_for_dates(day.note)
    return same and noted and follows(before.day, day.day)


def _span(first: date, last: date) -> str:
    return str(first) if first == last else f"{first} to {last}"


app = new_app()


@app.command(epilog=examples("optstream status", "optstream status --config population.toml --json"))
def status(config: Configs = None, as_json: Json = False) -> None:
    """Print the calendar, the budget and the alarms.

    Notifies nobody, and changes nothing. Exit code 1 if there is any alarm.
    """
    raise typer.Exit(each_stream(config, as_json, _status))


def _status(settings: Settings, terminal: Terminal) -> Done:
    with ledger_if_any(settings) as ledger:
        view = watch_stream(settings, ledger, datetime.now(UTC), live=settings.watch is not None)
    return _shown(settings, view, terminal)


@app.command(epilog=examples("optstream watch"))
def watch(config: Configs = None, as_json: Json = False) -> None:
    """Print the status, and notify of what is new or over.

    Looks once, as the hourly watch does, also where the Prefect server does not answer. Exit code 1 if there
    is any alarm.
    """
    for file in files_of(config) if os.environ.get("PREFECT_API_URL") else ():
        try:
            load_settings(file)
        except OptStreamError:
            _tell_unreadable(file)
    raise typer.Exit(each_stream(config, as_json, _watch))


def _tell_unreadable(file: Path) -> None:
    # its trusted folder is not known; events need no home
    os.environ.update(environment(file.absolute().parent, os.environ))
    from flows.orchestration.watch import tell_unreadable  # prefect has read its settings now

    with suppress(Exception):  # the command itself says what is wrong
        tell_unreadable(file)


def _watch(settings: Settings, terminal: Terminal) -> Done:
    unanswered = []
    try:
        server = connect(settings.trusted_folder)
    except NoServerError as error:
        server, unanswered = None, [str(error)]
    from flows.orchestration.watch import watch_here  # prefect has read its settings now

    watched = watch_here(settings, events=server is not None)
    for channel, news in watched.told.items():
        terminal.say(f"told {channel}: {len(news.new)} new, {len(news.over)} over")
    if isinstance(watched.view, OptStreamError):
        raise watched.view
    done = _shown(settings, watched.view, terminal)
    if failed := [*unanswered, *watched.failed]:
        raise OptStreamError("; ".join(failed))
    return done


def _shown(settings: Settings, view: StreamView, terminal: Terminal) -> Done:
    show_view(settings, view, terminal)
    terminal.document(status_document(settings, view))
    n_alarms = len(view.alarms)
    return Done(1, f"{n_alarms} alarm{'' if n_alarms == 1 else 's'}") if n_alarms else Done(0, "no alarm")
