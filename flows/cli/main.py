"""The command line: lists the commands, and imports the module of one when it is called."""

import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from optstream.errors import ConfigurationError, OptStreamError

DAILY = "Every day"
START = "Set up"
READ = "Read the published folder"
REPAIR = "Repair and look after"


class Row(NamedTuple):
    """A command in the list. line: the first sentence of its own help."""

    module: str
    panel: str
    line: str


COMMANDS = {
    "run": Row("release", DAILY, "Release days, each once, from dump to published file."),
    "backfill": Row("release", DAILY, "Release every missing day of a span."),
    "serve": Row("serve", DAILY, "Run the stream every night, and its watch every hour."),
    "status": Row("status", DAILY, "Print the calendar, the budget and the alarms."),
    "watch": Row("status", DAILY, "Print the status, and notify of new and ended alarms."),
    "ui": Row("serve", DAILY, "Serve the operators' pages of several streams."),
    "report": Row("read", DAILY, "Write the pages for operators and for data users."),
    "ledger": Row("ledger", DAILY, "The privacy budget: show, horizon, verify, export, amend."),
    "init": Row("setup", START, "Write a configuration: an example, or one for your files."),
    "simulate": Row("setup", START, "Write made-up dumps to try things out."),
    "advise": Row("setup", START, "Propose how to release, from public facts alone."),
    "doctor": Row("operate", START, "Check security and configuration."),
    "keys": Row("read", START, "Signatures: make the key that signs."),
    "export": Row("read", READ, "Write some nodes and days of a published folder to a file."),
    "verify-published": Row("read", READ, "Check a published folder, also by its signatures."),
    "withdraw": Row("operate", REPAIR, "Take days back out of the catalogue; they stay charged."),
    "publish": Row("operate", REPAIR, "Write lost or damaged published files again, for free."),
    "purge": Row("operate", REPAIR, "Remove files past their retention."),
}


def load(name: str) -> Any:
    """The command of this name, from its module: a click command, or a group of them."""
    gc.disable()  # what modules make lasts as long as the command: no collection need look at it
    found = get_command(import_module(f"flows.cli.{COMMANDS[name].module}").app)
    gc.freeze()
    gc.enable()
    command = found.commands.get(name, found) if isinstance(found, TyperGroup) else found
    command.name = name  # a module that is a group does not know it
    return command


class LazyGroup(TyperGroup):
    """Lists the commands of the table; a command's module is imported when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Name, command and the words that are left. Raises a usage error for an unknown name."""
        name, listed, rest = super().resolve_command(ctx, args)
        if listed is None or listed.name is None:
            return name, None, rest
        from flows.cli.output import reported  # a list of commands does not wait for it

        ctx.with_resource(reported(listed.name))
        return name, load(listed.name), rest


app = typer.Typer(
    name="optstream",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the other takes "[budget]" for a colour
    help="Nightly differentially private releases of sensitive time series.",
    epilog="A first release: `optstream init`, `simulate`, `run`, `status`. Exit codes: 0 all is well; 1 it "
    "ran, and something is to be looked at; 2 it could not begin, or not go on; 130 it was interrupted.",
)
for _name, _row in COMMANDS.items():
    _listed: Callable[[], None] = lambda: None  # noqa: E731 - stands in the list for the command itself
    app.command(_name, help=_row.line, rich_help_panel=_row.panel)(_listed)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # which no other command waits for

        print(f"optstream {version('optstream')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and exit."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def check_packages() -> None:
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
    """Run the console script: an expected error is one line on standard error and exit code 2."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # a search of all packages
    gc.set_threshold(200_000, 50, 50)  # at Python's own, collections take a sixth of a night's time
    try:
        check_packages()
        app()
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(
            f"error: {error.strerror or error}: {error.filename or ''}; correct it and run again",
            file=sys.stderr,
        )
        sys.exit(2)
    except KeyboardInterrupt:  # before a command was found; typer ends a command that it stops, by 130 too
        print("interrupted; nothing was begun", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
