"""`optstream report`: make the pages anew, as every night does."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import Json, WordsError, asks, examples, new_app
from flows.cli.several import Configs, Done, each_stream
from optstream.errors import PublicationError
from tasks.config import Settings
from tasks.ledger.open import need_ledger
from tasks.operations.permissions import check_trusted
from tasks.reports.write import write_pages, write_public_page

MOST_LISTED = 20
app = new_app()


@app.command(
    epilog=examples(
        "optstream report",
        "optstream report --config population.toml",
        "optstream report --published published --output page.html",
    )
)
def report(
    config: Configs = None,
    published: Annotated[
        str | None,
        asks(
            "FOLDER",
            "Make the data users' page alone, from this published folder (a path or a URL) and nothing "
            "else; needs no configuration.",
        ),
    ] = None,
    output: Annotated[
        Path | None, asks("FILE", "With --published: write the page there instead of into the folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the pages for operators and for data users.

    They show calendar, curves, budget and alarms, and how to read what is published.
    """
    if published is not None:
        terminal = Terminal(as_json)
        lost = write_public_page(published, output)
        page = str(output) if output else f"{published.rstrip('/')}/index.html"
        terminal.say(f"data users: {page}")
        terminal.document({"format": "optstream.report/1", "trusted": None, "public": page})
        raise typer.Exit(_told_lost(lost, terminal).code)
    if output is not None:
        raise WordsError("--output is for --published")
    raise typer.Exit(each_stream(config, as_json, _report))


def _report(settings: Settings, terminal: Terminal) -> Done:
    check_trusted(settings)
    with closing(need_ledger(settings)) as ledger:
        written = write_pages(settings, ledger, datetime.now(UTC))
    terminal.say(f"operators:  {written.trusted}")
    if written.public or not written.problem:
        terminal.say(f"data users: {written.public or 'no page: nothing is published'}")
    document = {"format": "optstream.report/1", "trusted": str(written.trusted), "public": written.public}
    terminal.document(document)
    if written.problem is not None:
        raise PublicationError(written.problem)
    return _told_lost(written.lost, terminal)


def _told_lost(lost: Sequence[date], terminal: Terminal) -> Done:
    """Name the days that the page cannot show; code 1 if there are any."""
    if not lost:
        return Done(0, "written")
    more = f" and {len(lost) - MOST_LISTED} more" if len(lost) > MOST_LISTED else ""
    days = ", ".join(map(str, lost[:MOST_LISTED]))
    terminal.say(
        f"their published file is missing or damaged, and the page shows the other days: {days}{more}; "
        f"`optstream publish {lost[0]}` writes the same bytes again"
    )
    return Done(1, f"written, {len(lost)} days cannot be shown")
