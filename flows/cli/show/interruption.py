"""Ctrl-C while days are released: what was left is said, and until when it is held."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import typer

from flows.cli.options import DEFAULT_CONFIG
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from tasks.config import Settings
from tasks.planning.left_behind import left_behind, words_of

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells know it."""
IN_GENERAL = "interrupted; nothing is lost: run it again, after 15 minutes at most"


@contextmanager
def told_if_interrupted(settings: Settings, days: Sequence[date], again: str) -> Iterator[None]:
    """Say on standard error what a run of these days left, should Ctrl-C end the block; then exit with 130.

    again: the command that goes on.
    """
    try:
        yield
    except KeyboardInterrupt:
        try:
            with closing(open_ledger(settings.ledger_url)) as ledger:
                lines = words_of(left_behind(settings, ledger, days, datetime.now(UTC)), again)
        except (OptStreamError, OSError):
            lines = [IN_GENERAL]  # the ledger is away
        for line in lines:
            typer.echo(line, err=True)
        raise typer.Exit(INTERRUPTED) from None


def with_config(command: str, config: Sequence[Path] | None) -> str:
    """The command with its configuration files, where they are not the usual one."""
    files = [] if not config or list(config) == [DEFAULT_CONFIG] else config
    return " ".join([command, *(f"--config {one}" for one in files)])
