"""`optstream run`: release days, or say what they would cost."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.activity import work
from flows.cli.console import Terminal
from flows.cli.options import Days, Json, WordsError, asks, examples, flag, new_app, periods_asked
from flows.cli.several import Configs, Done, each_stream, files_of, read_streams
from flows.cli.show.dry_run import show_dry_run
from flows.cli.show.interruption import told_if_interrupted, with_config
from flows.orchestration.environment import connect
from optstream.errors import ConfigurationError
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.operations.permissions import check_trusted
from tasks.planning.dry_run import dry_run as price
from tasks.planning.nothing_to_do import over_already
from tasks.release.day import Ended
from tasks.release.records.outcomes import budget_of, outcomes_document
from tasks.release.run import asking

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
    lipschitz: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="With --dry-run: the most by which a leaf moves from a step to the next, from public "
            "knowledge, never from the readings; suggests n_samples.",
        ),
    ] = None,
    dask: Annotated[
        str | None, asks("ADDRESS", "Large dumps on the Dask cluster there, such as tcp://host:8786.")
    ] = None,
) -> None:
    """Release days, each once, from dump to published file.

    Safe to interrupt and to repeat. Exit code 1 if any day is left. Several configurations: each stream in
    turn, and one that fails stops no other.
    """
    if lipschitz is not None and not dry_run:
        raise WordsError("--lipschitz is for --dry-run")

    def of_stream(settings: Settings, terminal: Terminal) -> Done:
        days = periods_asked(settings, day)
        if dry_run:
            return _price(settings, days, lipschitz, terminal)
        return _release(settings, days, config, terminal, restate=restate, dask=dask)

    if dry_run and len(files := files_of(config)) > 1:
        raise typer.Exit(_price_together(files, day, lipschitz, Terminal(as_json)))
    raise typer.Exit(each_stream(config, as_json, of_stream))


def _release(
    settings: Settings,
    days: list[date],
    config: Sequence[Path] | None,
    terminal: Terminal,
    *,
    restate: bool,
    dask: str | None,
) -> Done:
    check_trusted(settings)
    again = with_config(f"optstream run {' '.join(f'--date {one}' for one in days)}", config)
    with told_if_interrupted(settings, days, again + " --restate" * restate):
        works = None if restate else _over(settings, days)
        if works is None:
            connect(settings.trusted_folder)
            with terminal.step("prepare"):
                from flows.orchestration.release import run_days  # prefect has read its settings now
            works = run_days(settings, days, terminal, restate=restate, dask=dask)
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


def _price(settings: Settings, days: list[date], lipschitz: float | None, terminal: Terminal) -> Done:
    """Show what the days would cost; code 1 if the plan does not fit the privacy budget."""
    with work("compute noise and expected errors of every node"):
        found = price(settings, days, lipschitz)
    show_dry_run(found, terminal)
    return Done(0, "the plan fits") if found.fits else Done(1, "the plan does not fit")


def _price_together(files: list[Path], days: list[date], lipschitz: float | None, terminal: Terminal) -> int:
    """Show what the days of several streams would cost together; 1 if they do not fit a privacy budget."""
    # what compares streams takes half a second
    from flows.cli.show.shared_dry_run import show_products
    from tasks.planning.shared_dry_run import price_products

    if lipschitz is not None:
        raise WordsError("--lipschitz is for one configuration: streams move by different amounts")
    streams, broken = read_streams(files)
    for why in broken.values():
        raise ConfigurationError(why)  # what one plans with is taken from the others
    budgets = price_products(streams, [periods_asked(one, days) for one in streams])
    show_products(budgets, terminal)
    return 0 if all(budget.fits for budget in budgets) else 1
