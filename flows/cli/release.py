"""`optstream run`: release days, or say what they would cost."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from flows.cli.activity import work
from flows.cli.ledger import plain_sum
from flows.cli.options import (
    DEFAULT_CONFIG,
    Configs,
    Days,
    Done,
    First,
    Json,
    Last,
    WordsError,
    asks,
    days_between,
    each_stream,
    every_stream,
    examples,
    files_of,
    flag,
    new_app,
    periods_asked,
    periods_of_span,
)
from flows.cli.output import Terminal, listed, plain_table
from flows.orchestration.environment import connect
from flows.orchestration.serve import own_server
from optstream.errors import ConfigurationError, OptStreamError
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.config.fields import ledger_database
from tasks.ingest.sandbox import clock_before_ingest
from tasks.operate.permissions import check_trusted
from tasks.pages.render import at_most
from tasks.plan.backfill import (
    BackfillPlan,
    backfill_document,
    cost_of,
    over_already,
    pages_are_made,
    plan_backfill,
    plan_document,
    words_of_left,
)
from tasks.plan.dry_run import DryRun, Level, Period, SharedBudget, price_products
from tasks.plan.dry_run import dry_run as price
from tasks.release.due import due
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import budget_of, outcomes_document
from tasks.release.run import asking
from tasks.release.stages import Ended, Status

# How `optstream run --dry-run` shows what it found.

WIDTH = 80


def show_dry_run(found: DryRun, terminal: Terminal) -> None:
    """Tables for people, or the one document of `--json`."""
    if terminal.as_json:
        terminal.document(found.to_json())
        return
    terminal.say(f"{found.stream}: a dry run; no reading is read, nothing is drawn or charged")
    for period in found.periods:
        terminal.say(f"\n{_days(period)}, {period.n_steps} steps; numbers in the unit of the readings")
        terminal.console.print(_costs(period, found.currency))
        if any(level.expected and level.expected.size is not None for level in period.levels):
            terminal.say("\nexpected error of a published value, beside the typical size of its node")
            terminal.console.print(_expected(period))
        if period.levels[0].band is None:
            terminal.say("\nhow noisy a published value is depends on what is drawn")
            continue
        terminal.say("\nstandard deviation of a published value, from noise alone")
        terminal.console.print(_bands(period))
        if not found.points_known:
            terminal.say("the draw chooses the points; these are for equally spaced ones")
    for warning in found.warnings:
        terminal.say("\n" + fill(warning, WIDTH))
    verdict = "fits" if found.fits else "does not fit: the ledger will refuse days"
    terminal.say(
        f"\nany {found.model.window_length} steps lose at most {found.currency} {float(found.epsilon):.6g} "
        f"by this plan, and may lose {granted(found, found.grant)}: it {verdict}"
    )
    kept = found.kept_back
    shares = (
        f"first releases have {1 - kept}, restatements {kept} of it: budget.restatement_share"
        if kept
        else "budget.restatement_share is 0: no day can be measured again"
    )
    terminal.say(fill(shares, WIDTH))
    for n_days, loss in found.horizons:
        terminal.say(
            f"a customer's {n_days} days: epsilon up to {at_most(loss.epsilon)} "
            f"at delta {float(loss.delta):g}; {plain_sum(loss)}"
        )


def granted(found: DryRun, grant: Fraction) -> str:
    """Return what any window may lose, in the currency of a plan."""
    return found.model.in_words if found.currency == "rho" else f"{float(grant):g}"


def _days(period: Period) -> str:
    others = len(period.days) - 1
    return f"{period.days[0]}" + (f" and {others} more like it" if others else "")


def _costs(period: Period, currency: str) -> Table:
    """A line for each noise; a level's last line is its plan in any window, repeated without end."""
    table = plain_table("level", "stage", "noise on", currency, "scale", "deviation", n_texts=3)
    for level in period.levels:
        for stage in level.stages:
            price = f"{float(stage.epsilon):.6g}"
            for noise in stage.noise:
                numbers = (f"{noise.scale:.6g}", f"{noise.deviation:.6g}")
                of = noise.of if noise.joint_over == 1 else f"{noise.of}, joint over {noise.joint_over}"
                table.add_row(short_name(level), escape(stage.name), of, price, *numbers)
                price = ""
        note = "all, in any window" if level.stages else "derived"
        table.add_row(short_name(level), note, "", f"{float(level.epsilon):.6g}", "", "")
    table.add_row("all", "this day alone", "", f"{float(period.epsilon):.6g}", "", "")
    return table


def short_name(level: Level) -> str:
    """Return the level's number, or the margin's name."""
    return escape(level.name.removeprefix("level "))


def _expected(period: Period) -> Table:
    table = plain_table("level", "nodes", "error", "typical size", n_texts=1)
    for level in period.levels:
        found = level.expected
        figures = [f"{one:.3g}" for one in (found.error, found.size) if one is not None] if found else []
        table.add_row(short_name(level), str(level.n_nodes), *figures)
    return table


def _bands(period: Period) -> Table:
    table = plain_table("level", "nodes", "typical", "least", "most", n_texts=1)
    for level in period.levels:
        assert level.band is not None
        figures = (level.band.typical, level.band.least, level.band.most)
        table.add_row(short_name(level), str(level.n_nodes), *(f"{value:.6g}" for value in figures))
    return table


# Ctrl-C while days are released: what was left is said, and until when it is held.

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells know it."""
IN_GENERAL = "interrupted; nothing is lost: run it again, after 15 minutes at most"


@contextmanager
def told_if_interrupted(settings: Settings, days: Sequence[date], again: str) -> Iterator[None]:
    """Should Ctrl-C end the block: say on standard error what is left of these days, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            with closing(open_ledger(settings.ledger_url)) as ledger:
                lines = words_of_left(settings, ledger, days, datetime.now(UTC), again)
        except (OptStreamError, OSError):
            lines = [IN_GENERAL]  # the ledger is away
        for line in lines:
            typer.echo(line, err=True)
        raise typer.Exit(INTERRUPTED) from None


def with_config(command: str, config: Sequence[Path] | None) -> str:
    """The command with its configuration files, where they are not the usual one."""
    files = [] if not config or list(config) == [DEFAULT_CONFIG] else config
    return " ".join([command, *(f"--config {one}" for one in files)])


app = new_app()


@app.command(
    epilog=examples(
        "optstream run --date 2016-02-01 --dry-run",
        "optstream run --date 2016-02-01",
        "optstream run --date 2016-02-01 --restate",
        "optstream run --date 2016-02-01 --config electricity.toml --config gas.toml",
    )
)
def run(
    day: Days,
    config: Configs = None,
    as_json: Json = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Only print what it would cost, and how noisy it would be.")
    ] = False,
    restate: Annotated[
        bool,
        flag(
            "--restate",
            "Measure days that were released once more, as their next revision: charged to the share "
            "that [budget] restatement_share keeps back.",
        ),
    ] = False,
) -> None:
    """Release days, each once, from dump to published file.

    Safe to interrupt and to repeat. Exit code 1 if any day is left. Several configurations: each stream in
    turn, and one that fails stops no other.
    """

    def of_stream(settings: Settings, terminal: Terminal) -> Done:
        days = periods_asked(settings, day)
        if dry_run:
            return _price(settings, days, terminal)
        return _release(settings, days, config, terminal, restate=restate)

    if dry_run and len(files := files_of(config)) > 1:
        raise typer.Exit(_price_together(files, day, Terminal(as_json)))
    raise typer.Exit(each_stream(config, as_json, of_stream))


def _release(
    settings: Settings,
    days: list[date],
    config: Sequence[Path] | None,
    terminal: Terminal,
    *,
    restate: bool,
) -> Done:
    check_trusted(settings)
    again = with_config(f"optstream run {' '.join(f'--date {one}' for one in days)}", config)
    with told_if_interrupted(settings, days, again + " --restate" * restate):
        works = None if restate else _over(settings, days)
        if works is None:
            connect(settings.trusted_folder)
            with terminal.step("prepare"):
                from flows.orchestration.release import run_days  # prefect has read its settings now
            works = run_days(settings, days, terminal, restate=restate)
    ledger = open_ledger(settings.ledger_url)
    budget = budget_of(settings, ledger, days)
    terminal.outcomes(works, settings, budget)
    terminal.attention(works, settings, ledger)
    terminal.document(outcomes_document(works, settings, budget))
    counts = Counter(work.outcome.status for work in works)
    words = ", ".join(f"{count} {status.value}" for status, count in counts.items())
    return Done(0 if all(work.outcome.status.is_good for work in works) else 1, words)


def _over(settings: Settings, days: list[date]) -> list[Ended] | None:
    """The days' outcomes where nothing is left to do: seen without Prefect, which takes seconds to import."""
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        return over_already(asking(settings, ledger), days)


def _price(settings: Settings, days: list[date], terminal: Terminal) -> Done:
    """Show what the days would cost; code 1 if the plan does not fit the privacy budget."""
    with work("compute noise and expected errors of every node"):
        found = price(settings, days)
    show_dry_run(found, terminal)
    return Done(0, "the plan fits") if found.fits else Done(1, "the plan does not fit")


def _price_together(files: list[Path], days: list[date], terminal: Terminal) -> int:
    """Show what the days of several streams would cost together; 1 if they do not fit a privacy budget."""
    streams = every_stream(files)  # what one plans with is taken from the others
    budgets = price_products(streams, [periods_asked(one, days) for one in streams])
    show_products(budgets, terminal)
    return 0 if all(budget.fits for budget in budgets) else 1


# `optstream backfill`: plan, price, run, and say at the end what is left.


@app.command(
    epilog=examples(
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --dry-run",
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --workers 2",
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --config population.toml",
    )
)
def backfill(
    first: First,
    last: Last,
    config: Configs = None,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what is missing and what it would cost.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Months at once, each in a process of its own.")
    ] = 1,
    dask: Annotated[
        str | None, asks("ADDRESS", "Months on the Dask cluster there, such as tcp://host:8786.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Release every missing day of a span.

    Safe to interrupt and to repeat: a day is released once. Days that fail their contract, and days without
    a dump, are listed at the end and stop no other. Exit code 1 if any day is left.
    """

    if dask is not None and workers > 1:
        raise WordsError("--workers and --dask exclude each other: a cluster has its own workers")
    span = days_between(first, last)

    def of_stream(settings: Settings, terminal: Terminal) -> Done:
        return _fill(settings, span, config, terminal, workers, dask, dry_run=dry_run)

    raise typer.Exit(each_stream(config, as_json, of_stream))


def _fill(
    settings: Settings,
    span: list[date],
    config: Sequence[Path] | None,
    terminal: Terminal,
    workers: int,
    dask: str | None,
    *,
    dry_run: bool,
) -> Done:
    days = periods_of_span(settings, span)
    if dask is not None:
        _check_cluster(settings)
    check_trusted(settings)
    with work("look which days are missing"):
        plan = plan_backfill(settings, open_ledger(settings.ledger_url), days)
    _show_plan(plan, settings, terminal)
    if dry_run:
        return _price_span(plan, settings, terminal)
    if plan.to_run and mechanism_for(settings, span[0]).adaptive and (dask or workers > 1):
        terminal.say(
            "each day's plan goes on from the day before: one month after the other, in this process"
        )
        workers, dask = 1, None
    started = monotonic()
    again = with_config(f"optstream backfill --from {span[0]} --to {span[-1]}", config)
    with told_if_interrupted(settings, days, again):
        behind = plan.over and not pages_are_made(settings)
        if behind and not plan.to_run:
            terminal.say("a page is missing, or is not of the days that are published: it is written again")
        waits = bool(plan.to_run) or bool(behind) or _are_due(settings, days)
        works = _run(settings, plan, workers, dask, terminal) if waits else []
    _show_end(works, plan, settings, monotonic() - started, terminal, waits=waits)
    left = plan.absent or any(not day.outcome.status.is_good for day in works)
    absent = f"{len(plan.absent)} without a dump" if plan.absent else ""
    words = ", ".join(one for one in (_counted(works), absent) if one)
    return Done(1 if left else 0, words or ("new estimates or pages alone" if waits else "nothing to do"))


def _check_cluster(settings: Settings) -> None:
    """Raise ConfigurationError unless workers elsewhere can reach the ledger and the orchestrator."""
    if ledger_database(settings.ledger_url) is not None:
        raise ConfigurationError(
            "--dask needs a ledger that all workers reach: set ledger.url to a PostgreSQL database; an "
            "SQLite file is for processes of one machine (--workers)"
        )
    if "PREFECT_API_URL" not in os.environ:
        raise ConfigurationError(
            "--dask needs a Prefect server that all workers reach: start one (`prefect server start`) and "
            "set PREFECT_API_URL"
        )


def _are_due(settings: Settings, days: Sequence[date]) -> bool:
    """Whether one of these days waits for a new estimate: a backfill may have died before it came to them."""
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        return bool(due(asking(settings, ledger), days))


def _run(
    settings: Settings, plan: BackfillPlan, workers: int, dask: str | None, terminal: Terminal
) -> list[Ended]:
    with ExitStack() as running:
        with terminal.step("prepare"):
            if connect(settings.trusted_folder) is None and workers > 1:
                # which a task runner needs
                running.enter_context(own_server(settings, settings.trusted_folder / "prefect"))
            from flows.orchestration.backfill import run_backfill  # prefect has read its settings now

        watch, steps = running.enter_context(_progress(len(plan.to_run), settings.stream.period, terminal))
        return run_backfill(settings, plan.first, plan.last, watch, workers, dask, steps=steps)


@contextmanager
def _progress(n_days: int, period: str, terminal: Terminal) -> Iterator[tuple[Any, "_Steps"]]:
    """A bar with rate and time left, then the steps of new estimates; without a terminal, a line each."""
    started, n_done = monotonic(), 0
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[rate]}")
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), texts[1], TimeRemainingColumn())
    with terminal.bar(*columns, total=n_days, transient=False, rate="") as update:

        def told(works: Sequence[Ended]) -> None:
            nonlocal n_done
            n_done += _n_over(works)
            rate = n_done / max(1e-9, monotonic() - started)
            if update is not None:
                shown = f"{works[-1].day:%Y-%m}"
                update(completed=n_done, description=shown, rate=f"{rate:.1f} {period}s/s")
                return
            left = max(0, n_days - n_done) / rate if n_done else inf
            terminal.say(
                f"{works[0].day} to {works[-1].day}: {_counted(works)}; {n_done} of {n_days} {period}s, "
                f"{rate:.1f} a second, {f'{left:.0f}' if isfinite(left) else 'unknown'} s left"
            )

        yield told, _Steps(terminal, update)


@dataclass(frozen=True)
class _Steps:
    """Shows the steps that follow the months. update: of the bar, if there is one."""

    terminal: Terminal
    update: Callable[..., None] | None

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Show that a step is under way."""
        if self.update is None:
            self.terminal.say(label)
        else:
            self.update(description=label)
        yield


def _counted(works: Sequence[Ended]) -> str:
    counts = Counter(day.outcome.status for day in works)
    told = {status: f"{counts[status]} {status.value}" for status in Status if counts[status]}
    n_out = sum(map(_is_published, works)) - counts[Status.PUBLISHED]
    if n_out:
        told[Status.FAILED] += f" ({n_out} after {'it was' if n_out == 1 else 'they were'} published)"
    return ", ".join(told.values())


def _n_over(works: Sequence[Ended]) -> int:
    """How many need not be waited for: what another run holds comes once more."""
    return sum(day.outcome.status is not Status.BUSY for day in works)


def _is_published(day: Ended) -> bool:
    """Whether this run gave it to readers, also where something failed after that."""
    return day.outcome.file is not None


def _show_plan(plan: BackfillPlan, settings: Settings, terminal: Terminal) -> None:
    over = "".join(f", {count} {state}" for state, count in plan.over.items())
    terminal.say(
        f"{settings.stream.name}, {plan.first} to {plan.last}: {len(plan.missing)} "
        f"{settings.stream.period}s to release, "
        f"{len(plan.begun)} to finish, {len(plan.absent)} without a dump{over}"
    )


def _price_span(plan: BackfillPlan, settings: Settings, terminal: Terminal) -> Done:
    """Show what the missing days would cost; code 1 if the ledger would refuse some."""
    with work("price the missing days"):
        cost = cost_of(settings, open_ledger(settings.ledger_url), plan.missing)
    terminal.say(
        f"any {settings.privacy.window} steps may lose epsilon {float(cost.grant):g}; of those that see "
        f"these days the worst was charged {float(cost.before):.6g}, and would be {float(cost.after):.6g}"
    )
    terminal.say("no reading was read, nothing drawn or charged")
    _list_days("would be refused, for their windows have too little left", cost.refused, terminal)
    _list_days("without a dump", plan.absent, terminal)
    ahead = clock_before_ingest(settings, plan.missing[0]) if plan.missing else None
    if ahead is not None:
        terminal.say(ahead)
    terminal.document(plan_document(plan, cost, settings))
    fits = f"{len(plan.missing)} {settings.stream.period}s to release"
    return Done(1, f"{fits}, {len(cost.refused)} would be refused") if cost.refused else Done(0, fits)


def _show_end(
    works: Sequence[Ended],
    plan: BackfillPlan,
    settings: Settings,
    seconds: float,
    terminal: Terminal,
    *,
    waits: bool,
) -> None:
    """Say what is left, or that nothing was to do. waits: whether anything was, if only new estimates."""
    ledger = open_ledger(settings.ledger_url)
    budget = budget_of(settings, ledger)
    left = [day for day in works if not day.outcome.status.is_good]
    if left:
        terminal.outcomes(left, settings, budget)
    elif waits:
        terminal.budget(budget)
        terminal.say(f"published in {settings.published_folder}")
    terminal.attention(works, settings, ledger)
    _list_days("without a dump", plan.absent, terminal)
    if not waits:
        terminal.say("nothing to do; nothing changed, nothing spent")
    terminal.document(backfill_document(works, plan, settings, budget))
    published, period = sum(map(_is_published, works)), settings.stream.period
    terminal.say(f"{published} {period if published == 1 else f'{period}s'} in {seconds:.1f} s")


def _list_days(heading: str, days: Sequence[date], terminal: Terminal) -> None:
    if days:
        terminal.say(f"{heading} ({len(days)}): {listed(days)}")


# How `optstream run --dry-run` shows several streams: shares and expected errors side by side.


def show_products(budgets: Sequence[SharedBudget], terminal: Terminal) -> None:
    """A table for each population, or the one document of `--json`."""
    populations = [budget.to_json() for budget in budgets]
    terminal.document({"format": "optstream.dry-runs/1", "populations": populations})
    if terminal.as_json:
        return
    terminal.say("a dry run; nothing is read, drawn or charged")
    for budget in budgets:
        terminal.say(f"\n{budget.population}: expected errors, each in the unit of its stream's readings")
        terminal.console.print(_errors(budget))
        for one in budget.products:
            for warning in one.warnings:
                terminal.say("\n" + fill(f"{one.stream}: {warning}", WIDTH))
        first = budget.products[0]
        verdict = "they fit" if budget.fits else "they do not fit: the ledger will refuse days"
        terminal.say(
            f"\nany {first.model.window_length} steps lose at most {first.currency} "
            f"{float(budget.epsilon):.6g} by these plans together,\n"
            f"and may lose {granted(first, budget.grant)}: {verdict}"
        )


def _errors(budget: SharedBudget) -> Table:
    plan = f"{budget.products[0].currency} of its plan"
    table = plain_table("stream", "share", plan, "level", "nodes", "error", "typical size", n_texts=1)
    for one in budget.products:
        begins = [escape(one.stream), str(one.share), f"{float(one.epsilon):.6g}"]
        for level in one.periods[0].levels:
            figures = ["depends on the draw", ""]
            if level.expected is not None:
                size = level.expected.size
                figures = [f"{level.expected.error:.3g}", "" if size is None else f"{size:.3g}"]
            table.add_row(*begins, short_name(level), str(level.n_nodes), *figures)
            begins = ["", "", ""]
    return table
