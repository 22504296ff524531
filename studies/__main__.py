"""The studies' commands: `python -m studies audit | evaluate | leakage`."""

import sys

import typer

from optstream.errors import OptStreamError
from studies.commands import audit, evaluate, leakage

app = typer.Typer(
    name="python -m studies",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Studies beside the product: nothing is released.",
)
for _module in (audit, evaluate, leakage):
    app.registered_commands += _module.app.registered_commands


def main() -> None:
    """Run a command: an expected error is one line on standard error and exit code 2."""
    try:
        app()
    except (OptStreamError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
