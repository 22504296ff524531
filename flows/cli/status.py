"""Commands that look at a stream: status, watch."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby

from flows.cli import options as cli
from flows.cli.output import Terminal, rounded_down
from flows.orchestration.environment import NoServerError, connect, environment
from optstream.errors import OptStreamError
from tasks.config import Settings, load_settings
from tasks.ledger import ledger_if_any
from tasks.monitor.alarms import DEPENDS, but_for_dates, lines_of
from tasks.monitor.days import DayState, State, by_day, day_or_hour, stretches
from tasks.monitor.facts import MOST_SHOWN, SUSPECT_DAYS
from tasks.monitor.view import StreamView, status_document
from tasks.monitor.view import watch as watch_stream

app = cli.new_app()


# A stream's calendar and alarms on a terminal: a letter a day, then only the days with problems.

QUIET = (State.PUBLISHED, State.RESTATED)
RULER = "          1   5    10   15   20   25   30"
MOST_ROWS = 40  # of the days that are not fine; the JSON document has all
DAYS_OF_HEADROOM = 8


def show_view(settings: Settings, view: StreamView, terminal: Terminal) -> None:
    """Print the calendar, the days that are not fine, budget, audit, alarms."""
    facts, page, rows = view.facts, view.facts.page, view.facts.replaced()
    if not view.days:
        terminal.say(f"stream {view.stream}: nothing released yet")
    else:
        terminal.say("\n".join(month_lines(by_day(view.days))))
        terminal.say(", ".join(f"{state.letter} {count} {state}" for state, count in view.counts.items()))
        _show_days(settings, view, terminal)
    terminal.budget(facts.budget)
    if page is not None and page.days:
        left = [
            f"{one.day} {rounded_down(one.left, facts.budget.currency)}{' (refused)' * (one.may is False)}"
            for one in page.days[-DAYS_OF_HEADROOM:]
        ]
        unit = day_or_hour(page.days[-1].day)
        terminal.say(f"least left by {unit} (`optstream ledger show`: by window): {', '.join(left)}")
    if page is not None and page.shared_words:
        terminal.say(f"by stream: {page.shared_words}")
    if facts.audit is not None:
        how = "passed" if facts.audit.passed else "FAILED"
        other = "" if facts.audit.same else ", of another configuration"
        terminal.say(f"last audit: {facts.audit.at:%Y-%m-%d}, {how}{other}")
    if not facts.live and view.days:
        terminal.say(
            f"the calendar ends with {facts.last}, the newest day that is known: without [watch] in the "
            "configuration no later day is expected"
        )
    if rows:
        terminal.say(
            f"readings replaced on {facts.replaced_day}, and the most in the last {SUSPECT_DAYS} days:"
        )
        for row in rows[:MOST_SHOWN]:
            terminal.say(
                f"  {settings.called(row.region)}: {row.clamped:.1%} clamped, {row.absent:.1%} absent, "
                f"{row.doubled:.1%} doubled, {row.unusable:.1%} unusable; "
                f"most {row.most:.1%} on {row.most_day}"
            )
        if len(rows) > MOST_SHOWN:
            terminal.say(f"  and {len(rows) - MOST_SHOWN} more regions: `optstream status --json` has all")
        terminal.say(f"  {DEPENDS}")
    terminal.say(f"alarms about readings, if there are any, in {settings.validation_folder}")
    for line in lines_of(view.joined) or ["no alarms"]:
        terminal.say(line)


def month_lines(days: Iterable[DayState]) -> Iterator[str]:
    """A row for each month, a column for each day of it."""
    yield RULER
    for (year, month), group in groupby(days, key=lambda day: (day.day.year, day.day.month)):
        letters = {day.day.day: day.state.letter for day in group}
        row = "".join(letters.get(number, " ") for number in range(1, 32))
        yield f"{year}-{month:02d}   {row}".rstrip()


def _show_days(settings: Settings, view: StreamView, terminal: Terminal) -> None:
    """Print runs of days that are not fine for the same reason, each in a row, the newest last."""
    rows = stretches(
        (day for day in view.days if day.state not in QUIET or day.note),
        lambda day: (day.state, day.waiting_for, day.accepted, but_for_dates(day.note)),
    )
    if len(rows) > MOST_ROWS:
        terminal.say(f"the last {MOST_ROWS} of {len(rows)} stretches that are not fine:")
    for row in rows[-MOST_ROWS:]:
        first, last = row[0], row[-1]
        facts = [first.state.value + (" (accepted)" if first.accepted else "")]
        if first.waiting_for:
            named = ", ".join(map(settings.called, first.waiting_for[:5]))
            facts.append(named + (" …" if len(first.waiting_for) > 5 else ""))
        if first.days_until_raw_expires is not None:
            facts.append(f"raw kept for {first.days_until_raw_expires} days")
        facts.append(first.note)
        to = f" to {last.day}" if last.day != first.day else ""
        terminal.say(f"{first.day}{to}  {'; '.join(filter(None, facts))}")


@app.command(epilog=cli.examples("optstream status", "optstream status --config population.toml --json"))
def status(config: cli.Configs = None, as_json: cli.Json = False) -> None:
    """Print the calendar, the budget and the alarms.

    Notifies nobody, and changes nothing. Exit code 1 if there is any alarm.
    """

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        with ledger_if_any(settings) as ledger:
            view = watch_stream(settings, ledger, datetime.now(UTC), live=settings.watch is not None)
        return _shown(settings, view, terminal)

    cli.each_stream(config, as_json, of_stream)


@app.command(epilog=cli.examples("optstream watch"))
def watch(config: cli.Configs = None, as_json: cli.Json = False) -> None:
    """Print the status, and notify of new and ended alarms.

    Looks once, as the hourly watch does, also where the Prefect server does not answer. Exit code 1 if there
    is any alarm.
    """
    for file in cli.files_of(config) if os.environ.get("PREFECT_API_URL") else ():
        try:
            load_settings(file)
        except OptStreamError:
            # its trusted folder is not known; events need no home
            os.environ.update(environment(file.absolute().parent, os.environ))
            from flows.orchestration.watch import report_unreadable  # prefect has read its settings now

            with suppress(Exception):  # the command itself reports the problem
                report_unreadable(file)

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        failed = []
        try:
            server = connect(settings.trusted_folder)
        except NoServerError as error:
            server, failed = None, [str(error)]
        from flows.orchestration.watch import watch_here  # prefect has read its settings now

        watched = watch_here(settings, events=server is not None)
        for channel, news in watched.sent.items():
            terminal.say(f"sent to {channel}: {len(news.new)} new, {len(news.over)} over")
        if isinstance(watched.view, OptStreamError):
            raise watched.view
        done = _shown(settings, watched.view, terminal)
        if failed := [*failed, *watched.failed]:
            raise OptStreamError("; ".join(failed))
        return done

    cli.each_stream(config, as_json, of_stream)


def _shown(settings: Settings, view: StreamView, terminal: Terminal) -> cli.Done:
    show_view(settings, view, terminal)
    if terminal.as_json:
        terminal.document(status_document(settings, view))
    n = len(view.joined)
    return cli.Done(int(n > 0), f"{n or 'no'} alarm{'s' if n > 1 else ''}")
