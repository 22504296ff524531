"""`optstream run`: release days, or print their cost."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from flows.cli import options as cli
from flows.cli.ledger import plain_sum
from flows.cli.output import Terminal, figure, work
from flows.orchestration.environment import connect
from optstream.errors import ConfigurationError, OptStreamError
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.config.fields import ledger_database
from tasks.ingest.sandbox import clock_before_ingest
from tasks.operate.permissions import check_trusted
from tasks.pages.render import at_most
from tasks.plan.backfill import (
    BackfillDocument,
    BackfillPlan,
    PlanDocument,
    cost_of,
    over_already,
    pages_are_made,
    plan_backfill,
    words_of_left,
)
from tasks.plan.dry_run import DryRun, DryRuns, Level, Period, SharedBudget, price_products
from tasks.plan.dry_run import dry_run as price
from tasks.release.mechanism import mechanism_for
from tasks.release.outcomes import RunDocument, budget_of, listed
from tasks.release.run import Ended, Status, run_of

# How `optstream run --dry-run` shows one stream, and several side by side.


def show_dry_run(found: DryRun, terminal: Terminal) -> None:
    currency = found.currency
    terminal.say(f"{found.stream}: a dry run; no reading is read, nothing is drawn or charged")
    for period in found.periods:
        others = f" and {len(period.days) - 1} more like it" if len(period.days) > 1 else ""
        terminal.say(
            f"\n{period.days[0]}{others}, {period.n_steps} steps; numbers in the unit of the readings"
        )
        headings = ("level", "stage", "noise on", currency, "scale", "deviation")
        terminal.table(headings, _costs(period), n_texts=3)
        if any(level.expected and level.expected.size is not None for level in period.levels):
            terminal.say("\nexpected error of a published value, next to the typical size of its node")
            rows = [(_short(one), str(one.n_nodes), *_errors(one)) for one in period.levels]
            terminal.table(("level", "nodes", "error", "typical size"), rows, n_texts=1)
        bands = [(level, level.band) for level in period.levels if level.band is not None]
        if not bands:
            terminal.say("\nthe noise of a published value depends on the draw")
            continue
        terminal.say("\nstandard deviation of a published value, from noise alone")
        rows = [
            (_short(one), str(one.n_nodes), *(f"{x:.6g}" for x in (band.typical, band.least, band.most)))
            for one, band in bands
        ]
        terminal.table(("level", "nodes", "typical", "least", "most"), rows, n_texts=1)
        if not found.points_known:
            terminal.say("the draw chooses the points; these are for equally spaced ones")
    if found.customers_error is not None:
        terminal.say(f"\nstandard error of a leaf's number of customers: {found.customers_error:.6g}")
    for warning in found.warnings:
        terminal.explain(warning)
    verdict = "fits" if found.epsilon <= found.grant else "does not fit: the ledger will refuse days"
    terminal.say(
        f"\nany {found.model.window_length} steps lose at most {currency} {float(found.epsilon):.6g} "
        f"by this plan, and may lose {_granted(found, found.grant)}: it {verdict}"
    )
    terminal.explain(found.ledger.says)
    kept, revisions = found.budget.restatement_share, found.budget.revisions
    words = f"first releases have {1 - kept}, restatements {kept} of it: budget.restatement_share"
    if revisions:
        words += f"; each of {revisions} planned revisions {kept / revisions}: budget.revisions"
    terminal.say(words if kept else "budget.restatement_share is 0: no day can be measured again")
    for n_days, loss in found.horizons:
        terminal.say(
            f"a customer's {n_days} days: epsilon up to {at_most(loss.epsilon)} "
            f"at delta {float(loss.delta):g}; {plain_sum(loss)}"
        )


def _costs(period: Period) -> Iterator[tuple[str, ...]]:
    """A line for each noise; a level's last line is its plan in any window, repeated without end."""
    for level in period.levels:
        for stage in level.stages:
            price = f"{float(stage.epsilon):.6g}"
            for noise in stage.noise:
                of = noise.of if noise.joint_over == 1 else f"{noise.of}, joint over {noise.joint_over}"
                yield _short(level), stage.name, of, price, f"{noise.scale:.6g}", f"{noise.deviation:.6g}"
                price = ""
        note = "all, in any window" if level.stages else "derived"
        yield _short(level), note, "", f"{float(level.epsilon):.6g}"
    yield "all", "this day alone", "", f"{float(period.epsilon):.6g}"


def _short(level: Level) -> str:
    """The level's number, or the margin's name."""
    return level.name.removeprefix("level ")


def _errors(level: Level) -> list[str]:
    found = level.expected
    return [figure(one) for one in (found.error, found.size) if one is not None] if found else []


def _granted(found: DryRun, grant: Fraction | float) -> str:
    """The most that any window may lose, in the currency of a plan."""
    return found.model.in_words if found.currency == "rho" else f"{float(grant):g}"


def show_products(budgets: Sequence[SharedBudget], terminal: Terminal) -> None:
    """Print a table of shares and expected errors for each population."""
    terminal.say("a dry run; nothing is read, drawn or charged")
    for budget in budgets:
        terminal.say(f"\n{budget.population}: expected errors, each in the unit of its stream's readings")
        rows = []
        for one in budget.products:
            begins = [one.stream, str(one.budget.stream_share), f"{float(one.epsilon):.6g}"]
            for level in one.periods[0].levels:
                figures = _errors(level) or ["depends on the draw"]
                rows.append([*begins, _short(level), str(level.n_nodes), *figures])
                begins = ["", "", ""]
        plan = f"{budget.currency} of its plan"
        terminal.table(("stream", "share", plan, "level", "nodes", "error", "typical size"), rows, n_texts=1)
        for one in budget.products:
            for line in (*one.warnings, one.ledger.says):
                terminal.explain(f"{one.stream}: {line}")
        first = budget.products[0]
        verdict = "they fit" if budget.fits else "they do not fit: the ledger will refuse days"
        terminal.say(
            f"\nany {first.model.window_length} steps lose at most {first.currency} "
            f"{float(budget.epsilon):.6g} by these plans together,\n"
            f"and may lose {_granted(first, budget.grant)}: {verdict}"
        )


# Ctrl-C while days are released: report which days are left, and until when they are held.


@contextmanager
def report_interruption(settings: Settings, days: Sequence[date], again: str) -> Iterator[None]:
    """On Ctrl-C in the block: report on standard error which of these days are left, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        try:
            with closing(open_ledger(settings.ledger_url)) as ledger:
                lines = words_of_left(settings, ledger, days, datetime.now(UTC), again)
        except (OptStreamError, OSError):
            lines = ["interrupted; nothing is lost: run it again, after 15 minutes at most"]  # no ledger
        for line in lines:
            typer.echo(line, err=True)
        raise typer.Exit(130) from None  # as shells know a command that Ctrl-C ended


def with_config(command: str, config: Sequence[Path] | None) -> str:
    """The command with its configuration files, where they are not the usual one."""
    files = [] if not config or list(config) == [cli.DEFAULT_CONFIG] else config
    return " ".join([command, *(f"--config {one}" for one in files)])


app = cli.new_app()
RESTATE = (
    "Measure days that were released once more, as their next revision: charged to the share that [budget] "
    "restatement_share keeps back."
)
DASK = "Months on the Dask cluster there, such as tcp://host:8786."


@app.command(
    epilog=cli.examples(
        "optstream run --date 2016-02-01 --dry-run",
        "optstream run --date 2016-02-01",
        "optstream run --date 2016-02-01 --restate",
        "optstream run --date 2016-02-01 --config electricity.toml --config gas.toml",
    )
)
def run(
    day: cli.Days,
    config: cli.Configs = None,
    as_json: cli.Json = False,
    dry_run: Annotated[bool, cli.flag("--dry-run", "Only print the cost and the noise.")] = False,
    restate: Annotated[bool, cli.flag("--restate", RESTATE)] = False,
) -> None:
    """Release days, each once, from dump to published file.

    Safe to interrupt and to repeat. Exit code 1 if any day is left. Several configurations: each stream in
    turn, and one that fails stops no other.
    """

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        days = cli.periods_asked(settings, day)
        if dry_run:
            with work("compute noise and expected errors of every node"):
                found = price(settings, days)
            show_dry_run(found, terminal)
            terminal.document(found)
            return cli.Done(0, "the plan fits") if found.fits else cli.Done(1, "days would be refused")
        check_trusted(settings)
        _foresee(settings, days[0], terminal)
        again = with_config(f"optstream run {' '.join(f'--date {one}' for one in days)}", config)
        with report_interruption(settings, days, again + " --restate" * restate):
            ended = None
            if not restate:
                with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
                    # without Prefect, which takes seconds to import
                    ended = over_already(run_of(settings, ledger), days)
            if ended is None:
                connect(settings.trusted_folder)
                with terminal.step("prepare"):
                    from flows.orchestration.release import run_days  # prefect has read its settings now
                ended = run_days(settings, days, terminal, restate=restate)
        ledger = open_ledger(settings.ledger_url)
        budget = budget_of(settings, ledger, days)
        terminal.outcomes(ended, settings, budget)
        terminal.attention(ended, settings, ledger)
        terminal.document(RunDocument.of(ended, settings, budget))
        return cli.Done(int(not all(one.status.is_good for one in ended)), _counted(ended))

    if not dry_run or len(files := cli.files_of(config)) == 1:
        cli.each_stream(config, as_json, of_stream)
    # together: a stream's plan leaves less for the others
    streams, terminal = cli.every_stream(files), Terminal(as_json)
    budgets = price_products(streams, [cli.periods_asked(one, day) for one in streams])
    show_products(budgets, terminal)
    terminal.document(DryRuns(populations=budgets))
    raise typer.Exit(0 if all(budget.fits for budget in budgets) else 1)


def _foresee(settings: Settings, day: date, terminal: Terminal) -> None:
    """Before a first release, while the key can be set, name the first day that its clock will stop."""
    with closing(open_ledger(settings.ledger_url)) as ledger:
        is_first = ledger.last_release(settings.stream.name) is None
    if is_first and (ahead := clock_before_ingest(settings, day)) is not None:
        terminal.say(f"ATTENTION {ahead}")


# `optstream backfill`: plan, price, run, and report at the end which days are left.


@app.command(
    epilog=cli.examples(
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --dry-run",
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --workers 2",
        "optstream backfill --from 2013-01-01 --to 2016-12-31 --config population.toml",
    )
)
def backfill(
    first: cli.First,
    last: cli.Last,
    config: cli.Configs = None,
    dry_run: Annotated[bool, cli.flag("--dry-run", "Only show the missing days and their cost.")] = False,
    workers: Annotated[int, cli.asks("N", "Months at once, each in its own process.", min=1, max=64)] = 1,
    dask: Annotated[str | None, cli.asks("ADDRESS", DASK)] = None,
    as_json: cli.Json = False,
) -> None:
    """Release every missing day of a span.

    Safe to interrupt and to repeat: a day is released once. Days that fail their contract, and days without
    a dump, are listed at the end and stop no other. Exit code 1 if any day is left.
    """
    if dask is not None and workers > 1:
        raise cli.WordsError("--workers and --dask exclude each other: a cluster has its own workers")
    span = cli.days_between(first, last)

    def of_stream(settings: Settings, terminal: Terminal) -> cli.Done:
        days, period = cli.periods_of_span(settings, span), settings.stream.period
        if dask is not None:
            _check_cluster(settings)
        check_trusted(settings)
        with work("look which days are missing"):
            plan = plan_backfill(settings, open_ledger(settings.ledger_url), days)
        over = "".join(f", {count} {state}" for state, count in plan.over.items())
        over = f", {len(plan.delivered)} delivered once more{over}" if plan.delivered else over
        terminal.say(
            f"{settings.stream.name}, {plan.first} to {plan.last}: {len(plan.missing)} {period}s to release, "
            f"{len(plan.begun)} to finish, {len(plan.absent)} without a dump{over}"
        )
        if dry_run:
            return _price_span(plan, settings, terminal)
        if plan.to_run:
            _foresee(settings, plan.to_run[0], terminal)
        places, started = (workers, dask), monotonic()
        if plan.to_run and mechanism_for(settings, span[0]).adaptive:
            if dask or workers > 1:
                terminal.say(
                    "each day's plan goes on from the day before: one month after the other, in this process"
                )
            places = (1, None)
        again = with_config(f"optstream backfill --from {span[0]} --to {span[-1]}", config)
        with report_interruption(settings, days, again):
            waits = _waits(settings, plan, days, terminal)
            ended = _run(settings, plan, *places, terminal) if waits else []
        ledger = open_ledger(settings.ledger_url)
        budget = budget_of(settings, ledger)
        left = [one for one in ended if not one.status.is_good]
        if left:
            terminal.outcomes(left, settings, budget)
        elif waits:
            terminal.budget(budget)
            terminal.say(f"published in {settings.published_folder}")
        terminal.attention(ended, settings, ledger)
        _list_days("without a dump", plan.absent, terminal)
        if not waits:
            terminal.say("nothing to do; nothing changed, nothing spent")
        terminal.document(BackfillDocument.of(ended, settings, budget, **plan.span))
        n = _n_published(ended)
        terminal.say(f"{n} {period}{'' if n == 1 else 's'} in {monotonic() - started:.1f} s")
        absent = f"{len(plan.absent)} without a dump" if plan.absent else ""
        words = ", ".join(filter(None, (_counted(ended), absent)))
        idle = "new estimates or pages alone" if waits else "nothing to do"
        return cli.Done(int(bool(left or plan.absent)), words or idle)

    cli.each_stream(config, as_json, of_stream)


def _waits(settings: Settings, plan: BackfillPlan, days: Sequence[date], terminal: Terminal) -> bool:
    """Whether days, pages or new estimates wait."""
    if plan.to_run:
        return True
    if plan.over and not pages_are_made(settings):
        terminal.say("a page is missing, or is not of the days that are published: it is written again")
        return True
    from tasks.release.revise import due  # most of a second

    # a backfill may have died before it came to new estimates
    with closing(open_ledger(settings.ledger_url, database_time=True)) as ledger:
        return bool(due(run_of(settings, ledger), days))


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


def _run(
    settings: Settings, plan: BackfillPlan, workers: int, dask: str | None, terminal: Terminal
) -> list[Ended]:
    connect(settings.trusted_folder)
    with terminal.step("prepare"):
        from flows.orchestration.backfill import run_backfill  # prefect has read its settings now

    with terminal.bar(*BAR, total=len(plan.to_run), transient=False, rate="") as bar:
        shown = _Progress(len(plan.to_run), settings.stream.period, terminal, bar)
        return run_backfill(settings, plan.first, plan.last, shown, workers, dask)


BAR = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[rate]}"),
    TimeRemainingColumn(),
)


class _Progress:
    """A bar with rate and time left, then the steps of new estimates; without a terminal, a line each."""

    def __init__(self, n_days: int, period: str, terminal: Terminal, update: Callable[..., None] | None):
        self.n_days, self.period, self.terminal, self.update = n_days, period, terminal, update
        self.started, self.n_done = monotonic(), 0

    def months(self, ended: Sequence[Ended]) -> None:
        """Show that these days are over, but those that another run holds, which come once more."""
        self.n_done += sum(day.status is not Status.BUSY for day in ended)
        rate = self.n_done / max(1e-9, monotonic() - self.started)
        if self.update is not None:
            shown = f"{ended[-1].day:%Y-%m}"
            self.update(completed=self.n_done, description=shown, rate=f"{rate:.1f} {self.period}s/s")
            return
        left = f"{max(0, self.n_days - self.n_done) / rate:.0f}" if self.n_done else "unknown"
        self.terminal.say(
            f"{ended[0].day} to {ended[-1].day}: {_counted(ended)}; {self.n_done} of {self.n_days} "
            f"{self.period}s, {rate:.1f} a second, {left} s left"
        )

    @contextmanager
    def step(self, label: str) -> Iterator[None]:
        if self.update is None:
            self.terminal.say(label)
        else:
            self.update(description=label)
        yield


def _counted(ended: Sequence[Ended]) -> str:
    counts = Counter(day.status for day in ended)
    words = {status: f"{counts[status]} {status.value}" for status in Status if counts[status]}
    n_out = _n_published(ended) - counts[Status.PUBLISHED]
    if n_out:
        words[Status.FAILED] += f" ({n_out} after {'it was' if n_out == 1 else 'they were'} published)"
    return ", ".join(words.values())


def _n_published(ended: Sequence[Ended]) -> int:
    """How many this run gave to readers, also where something failed after that."""
    return sum(day.file is not None for day in ended)


def _price_span(plan: BackfillPlan, settings: Settings, terminal: Terminal) -> cli.Done:
    """Show the cost of the missing days; code 1 if the ledger would refuse some."""
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
    stream, window = settings.stream.name, settings.privacy.window
    terminal.document(PlanDocument(**vars(plan), **vars(cost), stream=stream, window_steps=window))
    fits = f"{len(plan.missing)} {settings.stream.period}s to release"
    return cli.Done(1, f"{fits}, {len(cost.refused)} would be refused") if cost.refused else cli.Done(0, fits)


def _list_days(heading: str, days: Sequence[date], terminal: Terminal) -> None:
    if days:
        terminal.say(f"{heading} ({len(days)}): {listed(days)}")
