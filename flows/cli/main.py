"""The command line: reads arguments, calls a flow or a task, prints what came out."""

import sys
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.backfill import backfill
from flows.cli.console import Terminal
from flows.cli.data import import_rte, simulate
from flows.cli.help_texts import add_help
from flows.cli.ledger import ledger_app
from flows.cli.maintenance import doctor, purge, withdraw
from flows.cli.options import DEFAULT_CONFIG, Config, Days, Json
from flows.cli.publish import publish
from flows.cli.report import report
from flows.cli.serve import serve
from flows.cli.signatures import keys_app, verify_published
from flows.cli.study import audit, evaluate, leakage, learn_proxy
from flows.cli.watch import watch
from optstream.errors import ConfigurationError, OptStreamError
from tasks.config import Settings

app = typer.Typer(
    name="optstream",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the other takes "[budget]" for a colour
    help="Nightly differentially private releases of sensitive time series.",
    epilog="A first release: `optstream init`, `simulate`, `run`, `status`. Exit codes: 0 all is well; 1 it "
    "ran, and something is to be looked at; 2 it could not begin.",
)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write the configuration.")] = DEFAULT_CONFIG,
) -> None:
    """Write a commented example configuration that runs."""
    from tasks.config.example import EXAMPLE

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise OptStreamError(f"{path} exists already; nothing was written: name another file") from None
    except OSError as error:
        raise OptStreamError(f"{path} cannot be written: {error.strerror}") from None
    print(f"wrote {path}; next: optstream simulate --config {path} --from 2016-02-01 --to 2016-02-02")


app.command()(simulate)
app.command()(import_rte)


@app.command()
def run(
    day: Days,
    config: Config = DEFAULT_CONFIG,
    as_json: Json = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what it would cost, and how noisy it would be.")
    ] = False,
    restate: Annotated[
        bool,
        typer.Option(
            "--restate",
            help="Measure days that were released once more, as their next revision: charged to the share "
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
) -> None:
    """Release days, from dump to published file. Safe to repeat: a day is released once."""
    from flows.orchestration.environment import prepare
    from tasks.config import load_settings
    from tasks.operations.permissions import check_trusted

    if lipschitz is not None and not dry_run:
        raise typer.BadParameter("--lipschitz is for --dry-run")
    settings = load_settings(config)
    terminal = Terminal(as_json)
    day = sorted(set(day))
    if dry_run:
        raise typer.Exit(_price(settings, day, lipschitz, terminal))
    check_trusted(settings)
    # Prefect reads its settings on import; the flow is imported while its server starts.
    orchestrator = prepare(settings.trusted_folder)
    with terminal.step("start the orchestrator"):
        from flows.orchestration.release import run_days
        from optstream.ledger import open_ledger
        from tasks.release.outcomes import budget_of, outcomes_document

        orchestrator.wait()
    works = run_days(settings, day, terminal, restate=restate)
    budget = budget_of(settings, open_ledger(settings.ledger_url), day)
    terminal.outcomes(works, settings, budget)
    terminal.document(outcomes_document(works, settings, budget))
    raise typer.Exit(0 if all(work.outcome and work.outcome.status.is_good for work in works) else 1)


def _price(settings: Settings, days: list[date], lipschitz: float | None, terminal: Terminal) -> int:
    """Show what the days would cost; return 1 if the plan does not fit the grant."""
    from flows.cli.show_dry_run import show_dry_run
    from tasks.planning.dry_run import dry_run

    found = dry_run(settings, days, lipschitz)
    show_dry_run(found, terminal)
    return 0 if found.fits else 1


@app.command()
def status(config: Config = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Print the calendar, what is left of the budget, and the alarms; exit code 1 if there is any."""
    from flows.cli.watch import show_status
    from tasks.config import load_settings

    raise typer.Exit(1 if show_status(load_settings(config), Terminal(as_json)) else 0)


app.command()(backfill)
app.command()(watch)
app.command()(report)
app.command()(serve)
app.command()(doctor)
app.command()(purge)
app.command()(withdraw)
app.command()(verify_published)
app.command()(publish)
app.command()(audit)
app.command()(leakage)
app.command()(evaluate)
app.command()(learn_proxy)
app.add_typer(ledger_app, name="ledger")
app.add_typer(keys_app, name="keys")
add_help(app)


def check_house() -> None:
    """Raise ConfigurationError if another distribution's package stands in for one of ours."""
    home = Path(__file__).parents[2]
    for name in ("tasks", "data_contracts", "optstream"):
        spec = find_spec(name)
        if spec is None or spec.origin is None or Path(spec.origin).parents[1] != home:
            raise ConfigurationError(
                f"the package {name!r} comes from another distribution, {spec and spec.origin}; "
                "install optstream into an environment of its own"
            )


def main() -> None:
    """The console script: an expected error is one line on standard error and exit code 2."""
    try:
        check_house()
        app()
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(
            f"error: {error.strerror or error}: {error.filename or ''}; mend it and run again",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; nothing is lost: run it again, after 15 minutes at most", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
