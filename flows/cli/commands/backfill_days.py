"""`optstream backfill`: plan, price, run, and say at the end what is left."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from flows.cli.activity import work
from flows.cli.console import Terminal
from flows.cli.options import (
    First,
    Json,
    Last,
    WordsError,
    asks,
    days_between,
    examples,
    flag,
    new_app,
    periods_asked,
)
from flows.cli.several import Configs, Done, each_stream
from flows.cli.show.interruption import told_if_interrupted, with_config
from flows.orchestration.environment import connect
from flows.orchestration.workers import check_cluster, task_runner
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.ingest.sandbox.process import clock_before_ingest
from tasks.operations.permissions import check_trusted
from tasks.planning.backfill_cost import backfill_document, cost_of, plan_document
from tasks.planning.backfill_plan import BackfillPlan, plan_backfill
from tasks.planning.nothing_to_do import pages_are_made
from tasks.release.build_mechanism import mechanism_for
from tasks.release.day import Ended, Status
from tasks.release.due import due
from tasks.release.records.outcomes import budget_of
from tasks.release.run import asking

MOST_LISTED = 20
app = new_app()


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
    span: Sequence[date],
    config: Sequence[Path] | None,
    terminal: Terminal,
    workers: int,
    dask: str | None,
    *,
    dry_run: bool,
) -> Done:
    days = periods_asked(settings, span)
    if dask is not None:
        check_cluster(settings)
    check_trusted(settings)
    with work("look which days are missing"):
        plan = plan_backfill(settings, open_ledger(settings.ledger_url), days)
    _show_plan(plan, settings, terminal)
    if dry_run:
        return _price(plan, settings, terminal)
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


def _are_due(settings: Settings, days: Sequence[date]) -> bool:
    """Whether one of these days waits for a new estimate: a backfill may have died before it came to them."""
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        return bool(due(asking(settings, ledger), days))


def _run(
    settings: Settings, plan: BackfillPlan, workers: int, dask: str | None, terminal: Terminal
) -> list[Ended]:
    connect(settings.trusted_folder)
    with terminal.step("prepare"):
        from flows.orchestration.backfill import run_backfill  # prefect has read its settings now

        runner = task_runner(workers, dask)
    with _progress(len(plan.to_run), settings.stream.period, terminal) as (watch, steps):
        return run_backfill(settings, plan.first, plan.last, watch, runner, steps=steps)


@contextmanager
def _progress(n_days: int, period: str, terminal: Terminal) -> Iterator[tuple[Any, "_Steps"]]:
    """A bar with rate and time left, then the steps of new estimates; without a terminal, a line each;
    nothing with --json.
    """
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


def _price(plan: BackfillPlan, settings: Settings, terminal: Terminal) -> Done:
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
        more = f", and {len(days) - MOST_LISTED} more" if len(days) > MOST_LISTED else ""
        terminal.say(f"{heading} ({len(days)}): {', '.join(str(day) for day in days[:MOST_LISTED])}{more}")
