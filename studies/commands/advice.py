"""What `python -m studies evaluate --config` shows: what was tried for the stream, and what did best."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich.table import Table

from flows.cli.console import Terminal, plain_table
from flows.cli.show.plan_advice import as_toml
from studies.papers.advice import Advice, Tried, advise, public_days, simulated_days
from studies.papers.data import SIMULATED
from tasks.config import Settings


def advise_and_show(
    settings: Settings,
    terminal: Terminal,
    *,
    data: str,
    days: Sequence[date],
    mean: float | None,
    trials: int,
    seed: int,
) -> None:
    """Try mechanisms, numbers of samples and shares on days that are public, and say which did best.

    Raises DumpError for public days that are not there.
    """
    with terminal.step("read the days"):
        known = (
            simulated_days(settings, days, mean)
            if data == SIMULATED
            else public_days(settings, Path(data), days)
        )
    with terminal.step(f"try the mechanisms, {trials} times over {len(days)} days"):
        advice = advise(settings, known, trials=trials, seed=seed)
    for title, tried in (("mechanisms", advice.mechanisms), ("shares of the levels", advice.shares)):
        if tried:
            terminal.say(f"\n{title}, best first: mean absolute error a step and node")
            terminal.console.print(_tried_table(tried))
    best = advice.best
    terminal.say(f"\nrecommended: {best.choice.label}; in {settings.file.name}:\n{as_toml(best.choice.keys)}")
    looked_at = "simulated days" if data == SIMULATED else f"the days in {data}, which you declare public"
    terminal.say(
        f"It was chosen on {looked_at}: no dump of the stream and no ledger was read. What is true of your "
        "own readings may differ; trying it on them would cost privacy that nobody counts."
    )
    terminal.document(_advice_document(advice, settings, data))


def _tried_table(tried: Sequence[Tried]) -> Table:
    levels = [f"level {level}" for level in range(len(tried[0].errors))]
    table = plain_table("", *levels, "of the mean reading", n_texts=1)
    for one in tried:
        table.add_row(one.choice.label, *(f"{error:.5g}" for error in one.errors), f"{one.relative:.2%}")
    return table


def _advice_document(advice: Advice, settings: Settings, data: str) -> dict[str, Any]:
    return {
        "format": "optstream.advice/1",
        "stream": settings.stream.name,
        "data": data,
        "recommended": {"label": advice.best.choice.label, "keys": advice.best.choice.keys},
        "tried": [
            {"label": one.choice.label, "errors_by_level": one.errors, "relative": one.relative}
            for one in (*advice.mechanisms, *advice.shares)
        ],
    }
