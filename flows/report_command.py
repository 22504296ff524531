"""`optstream report`: make the pages anew, as every night does."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.options import DEFAULT_CONFIG, Config, Json
from flows.terminal import Terminal


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
    """Write the operators' page and the data users' page: calendar, curves, budget, alarms, how to read."""
    from optstream.errors import PublicationError
    from tasks.ledger_place import need_ledger
    from tasks.pages.write import write_pages, write_public_page
    from tasks.permissions import check_trusted
    from tasks.settings import load_settings

    terminal = Terminal(as_json)
    if published is not None:
        write_public_page(published, output)
        page = str(output) if output else f"{published.rstrip('/')}/index.html"
        terminal.say(f"data users: {page}")
        terminal.document({"format": "optstream.report/1", "trusted": None, "public": page})
        return
    if output is not None:
        raise typer.BadParameter("--output is for --published")
    settings = load_settings(config)
    check_trusted(settings)
    ledger = need_ledger(settings)
    try:
        written = write_pages(settings, ledger, datetime.now(UTC))
    finally:
        ledger.close()
    terminal.say(f"operators:  {written.trusted}")
    terminal.say(f"data users: {written.public or 'no page: nothing is published'}")
    document = {"format": "optstream.report/1", "trusted": str(written.trusted), "public": written.public}
    terminal.document(document)
    if written.problem is not None:
        raise PublicationError(written.problem)
