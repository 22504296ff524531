"""Commands that look at a mechanism or a history and release nothing."""

from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import (
    DEFAULT_CONFIG,
    Config,
    First,
    Json,
    Last,
    WordsError,
    days_between,
    examples,
    new_app,
    parse_day,
)
from flows.cli.show.advice import advise_and_show
from flows.cli.show.audit import audit_and_show
from flows.cli.show.evaluation import chosen_experiments, evaluate_and_show
from flows.cli.show.leakage import leakage_and_show
from flows.cli.show.proxy import learn_and_show
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tasks.studies.audit import audit_cases, configured_cases
from tasks.studies.audit_record import keep_audit

app = new_app()


@app.command(
    epilog=examples(
        "optstream audit --only 'sparse vector'",
        "optstream audit --only rows",
        "optstream audit --config optstream.toml --date 2016-02-01",
    )
)
def audit(
    runs: Annotated[int, typer.Option(min=400, help="Runs of each side of a pair of neighbours.")] = 4000,
    only: Annotated[str, typer.Option(help="Only audits whose name contains this.")] = "",
    days: Annotated[bool, typer.Option("--days", help="Days of 46, 48 and 50 steps too; slow.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Audit the mechanism of this configuration instead.")
    ] = None,
    day: Annotated[
        date | None,
        typer.Option("--date", parser=parse_day, metavar="DATE", help="With --config: as on this day."),
    ] = None,
    secure: Annotated[bool, typer.Option("--secure", help="Draw noise as it is published; slower.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated noise.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Write the JSON document here.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the bounds here, .svg or .png.")] = None,
    as_json: Json = False,
) -> None:
    """Attack the mechanisms: is any epsilon broken?

    Measures epsilon from below on worst neighbours; what is broken on purpose must be caught. Exit code 1
    if any audit is not as it must be.
    """
    if (config is None) != (day is None):
        raise WordsError("--config and --date go together")
    keep = None
    if config and day:
        settings = load_settings(config)
        cases = configured_cases(settings, day, only)
        # a part of an audit is none
        keep = None if only else partial(keep_audit, settings, now=datetime.now(UTC))
    else:
        cases = audit_cases(days, only)
    passed = audit_and_show(
        cases, Terminal(as_json), n_runs=runs, seed=seed, secure=secure, output=output, plot=plot, keep=keep
    )
    raise typer.Exit(0 if passed else 1)


class By(StrEnum):
    """What counts as one step of time in temporal leakage."""

    STEP = "step"
    PERIOD = "period"


@app.command(epilog=examples("optstream leakage --transition M.csv --plot leakage.svg"))
def leakage(
    transition: Annotated[
        Path,
        typer.Option(
            metavar="M.csv",
            help="The forward chain of one customer's values: row i is the distribution of the next value "
            "given i. Its states must lie within alpha of each other.",
        ),
    ],
    config: Config = DEFAULT_CONFIG,
    backward: Annotated[
        Path | None,
        typer.Option(
            metavar="B.csv",
            help="The backward chain: row i is the distribution of the value before, given i. Without it, by "
            "Bayes from the forward chain's stationary distribution.",
        ),
    ] = None,
    by: Annotated[
        By, typer.Option(help="Whether the chain goes from step to step or from day to day.")
    ] = By.STEP,
    bound: Annotated[
        float | None,
        typer.Option(metavar="ALPHA", help="The total leakage to be kept; by default the model's epsilon."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the leakage over time here, .svg or .png.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what knowing a customer's habits adds.

    That is how their values follow each other, which is outside the privacy guarantee.
    """
    settings, terminal = load_settings(config), Terminal(as_json)
    ledger = open_ledger(settings.ledger_url)
    leakage_and_show(
        settings,
        ledger,
        terminal,
        transition=transition,
        backward=backward,
        by="step" if by is By.STEP else "period",
        bound=bound,
        plot=plot,
    )


@app.command(
    epilog=examples(
        "optstream evaluate --config optstream.toml --trials 1",
        "optstream evaluate --into evaluation --short",
    )
)
def evaluate(
    data: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="The folder of the public series, or `simulated`: made-up ones. With --config: a folder of "
            "public dumps in the stream's own layout.",
        ),
    ] = "simulated",
    into: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where results go; a run that stopped goes on.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="Instead of the papers' experiments: recommend how to release this stream."
        ),
    ] = None,
    first: Annotated[
        date | None,
        typer.Option(
            "--from", parser=parse_day, metavar="DATE", help="With --config: first day; else 2016-02-01."
        ),
    ] = None,
    last: Annotated[
        date | None,
        typer.Option(
            "--to", parser=parse_day, metavar="DATE", help="With --config: last day; else a fortnight's."
        ),
    ] = None,
    mean: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="With --config and simulated days: a leaf's typical reading, from public knowledge.",
        ),
    ] = None,
    only: Annotated[
        list[int] | None, typer.Option(min=1, max=11, help="Only this experiment; may be repeated.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="February only, at most three trials.")] = False,
    trials: Annotated[int | None, typer.Option(min=1, help="At most so many trials of each cell.")] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Declare the data public: anybody may then read how far releases miss."
        ),
    ] = False,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Write the page, and its figures beside it.")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Cells at a time.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated noise.")] = 2016,
    as_json: Json = False,
) -> None:
    """Recommend how to release, or rerun the papers.

    With --config, for its stream; without, all experiments. Simulated noise alone.
    """
    if config is not None:
        first = first or date(2016, 2, 1)
        days = days_between(first, last or first + timedelta(days=13))
        settings, terminal = load_settings(config), Terminal(as_json)
        advise_and_show(settings, terminal, data=data, days=days, mean=mean, trials=trials or 5, seed=seed)
        return

    if into is None:
        raise WordsError("--into is needed: where results go; or --config for a recommendation")
    experiments = chosen_experiments(only or [], short, trials)
    evaluate_and_show(
        experiments,
        Terminal(as_json),
        data=data,
        into=into,
        page=page,
        seed=seed,
        processes=processes,
        public=public,
    )


@app.command(
    epilog=examples(
        "optstream learn-proxy --data public --name 'open data of 2013' --from 2013-01-01 --to 2013-12-31"
    )
)
def learn_proxy(
    data: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Public dumps, region=…/date=…, in the stream's layout.")
    ],
    name: Annotated[
        str, typer.Option(metavar="TEXT", help="What they are, as the lineage of releases will say.")
    ],
    first: First,
    last: Last,
    country: Annotated[
        str | None, typer.Option(metavar="CODE", help="Whose public holidays they have, such as FR.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Fit the prior of HistoryInformed on a public series.

    It is what the mechanism goes by before it has learned the stream's own.
    """
    settings, days = load_settings(config), days_between(first, last)
    learn_and_show(settings, Terminal(as_json), data=data, name=name, days=days, country=country)
