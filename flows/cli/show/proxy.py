"""What `optstream learn-proxy` shows: a table to copy into the configuration."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from flows.cli.console import Terminal
from tasks.config import Settings
from tasks.studies.public_proxy import learn_proxy


def learn_and_show(
    settings: Settings,
    terminal: Terminal,
    *,
    data: Path,
    name: str,
    days: Sequence[date],
    country: str | None,
) -> None:
    """Learn from public days, and print `[mechanism.proxy]`. Raises DumpError or ParameterError."""
    with terminal.step(f"learn from {len(days)} public days"):
        medians = learn_proxy(settings, data, days, country)
    learned_from = f"{name}, {days[0]} to {days[-1]}"
    terminal.say("\nfor the configuration; what is learned of the stream itself soon outweighs it:\n")
    lines = ["[mechanism.proxy]", f"learned_from = {json.dumps(learned_from, ensure_ascii=False)}"]
    lines += [
        "",
        "[mechanism.proxy.medians]",
        *(f"{json.dumps(key)} = {row}" for key, row in medians.items()),
    ]
    terminal.say("\n".join(lines))
    terminal.document({"learned_from": learned_from, "medians": medians})
