"""`optstream report`: make the pages anew, as every night does."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, Json, WordsError, examples, new_app
from optstream.errors import PublicationError
from tasks.config import load_settings
from tasks.ledger.open import need_ledger
from tasks.operations.permissions import check_trusted
from tasks.reports.write import write_pages, write_public_page

MOST_LISTED = 20
app = new_app()


@app.command(epilog=examples("optstream report", "optstream report --published published --output page.html"))
def report(
    config: Config = DEFAULT_CONFIG,
    published: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Make the data users' page alone, from this published folder (a path or a URL) and nothing "
            "else; needs no configuration.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --published: write the page there instead of into the folder."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the pages for operators and for data users.

    They show calendar, curves, budget and alarms, and how to read what is published.
    """
    terminal = Terminal(as_json)
    if published is not None:
        lost = write_public_page(published, output)
        page = str(output) if output else f"{published.rstrip('/')}/index.html"
        terminal.say(f"data users: {page}")
        terminal.document({"format": "optstream.report/1", "trusted": None, "public": page})
        _tell_lost(lost, terminal)
        return
    if output is not None:
        raise WordsError("--output is for --published")
    settings = load_settings(config)
    check_trusted(settings)
    with closing(need_ledger(settings)) as ledger:
        written = write_pages(settings, ledger, datetime.now(UTC))
    terminal.say(f"operators:  {written.trusted}")
    terminal.say(f"data users: {written.public or 'no page: nothing is published'}")
    document = {"format": "optstream.report/1", "trusted": str(written.trusted), "public": written.public}
    terminal.document(document)
    if written.problem is not None:
        raise PublicationError(written.problem)
    _tell_lost(written.lost, terminal)


def _tell_lost(lost: Sequence[date], terminal: Terminal) -> None:
    """Name the days that the page cannot show; then exit with code 1."""
    if not lost:
        return
    more = f" and {len(lost) - MOST_LISTED} more" if len(lost) > MOST_LISTED else ""
    days = ", ".join(map(str, lost[:MOST_LISTED]))
    terminal.say(
        f"their published file is missing or damaged, and the page shows the other days: {days}{more}; "
        f"`optstream publish {lost[0]}` writes the same bytes again"
    )
    raise typer.Exit(1)
