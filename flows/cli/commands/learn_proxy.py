"""`optstream learn-proxy`: shows a table to copy into the configuration."""

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.console import Terminal
from flows.cli.options import DEFAULT_CONFIG, Config, First, Json, Last, days_between, examples, new_app
from tasks.config import load_settings
from tasks.studies.public_proxy import learn_proxy as learn

app = new_app()


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
    settings, days, terminal = load_settings(config), days_between(first, last), Terminal(as_json)
    with terminal.step(f"learn from {len(days)} public days"):
        medians = learn(settings, data, days, country)
    learned_from = f"{name}, {days[0]} to {days[-1]}"
    terminal.say("\nfor the configuration; what is learned of the stream itself soon outweighs it:\n")
    terminal.say(f"[mechanism.proxy]\nlearned_from = {json.dumps(learned_from, ensure_ascii=False)}\n")
    terminal.say("[mechanism.proxy.medians]")
    for key, row in medians.items():
        terminal.say(f"{json.dumps(key)} = {row}")
    terminal.document({"learned_from": learned_from, "medians": medians})
