"""The studies' command line: `python -m studies NAME`."""

import flows  # noqa: F401  before numpy: one thread for linear algebra, as the product's commands have it

# isort: split
import sys

import typer

from optstream.errors import OptStreamError
from studies import leakage_of_stream, new_user, streams
from studies.audit import run as audit
from studies.benchmarks import (
    bounded_program,
    history_cost,
    mechanisms,
    million,
    small_counts,
    sum_coverage,
)
from studies.evaluation import run as evaluate

app = typer.Typer(
    name="python -m studies",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Studies outside the product: nothing is released.",
)
app.command("audit", help=audit.__doc__)(audit.main)
app.command("leakage", help=leakage_of_stream.__doc__)(leakage_of_stream.main)
app.command("evaluate", help=evaluate.__doc__)(evaluate.main)
app.command("streams", help=streams.__doc__)(streams.main)
app.command("new-user", help=new_user.__doc__)(new_user.main)
BENCHMARKS = {
    "mechanisms": mechanisms,
    "million": million,
    "bounded-program": bounded_program,
    "history-cost": history_cost,
    "small-counts": small_counts,
    "sum-coverage": sum_coverage,
}
for name, benchmark in BENCHMARKS.items():
    app.command(name, help=benchmark.__doc__, rich_help_panel="Benchmarks")(benchmark.main)


def main() -> None:
    """Run a command: an expected error is one line on standard error and exit code 2."""
    try:
        app()
    except (OptStreamError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
