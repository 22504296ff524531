"""`python -m studies leakage`: a table, the budgets that would bound it, a document."""

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Column, Table

from flows.cli.options import DEFAULT_CONFIG, Config, Json, WordsError, asks, examples, new_app
from flows.cli.output import Terminal
from optstream.ledger import open_ledger
from studies.leakage.charges import By, history_of
from studies.leakage.temporal import Leakage, chain_of, empty_document, leakage_document, leakage_of
from studies.leakage.transition_file import read_transition
from tasks.config import Settings, load_settings

REPEATED = "if the last day repeats"
app = new_app()


@app.command(
    epilog=examples(
        "python -m studies leakage --transition M.csv",
    )
)
def leakage(
    transition: Annotated[
        Path | None,
        asks(
            "M.csv",
            "The forward chain of one customer's values: row i is the distribution of the next value "
            "given i. Its states must lie within alpha of each other.",
        ),
    ] = None,
    config: Config = DEFAULT_CONFIG,
    backward: Annotated[
        Path | None,
        asks(
            "B.csv",
            "The backward chain: row i is the distribution of the value before, given i. Without it, by "
            "Bayes from the forward chain's stationary distribution.",
        ),
    ] = None,
    by: Annotated[
        By, typer.Option(help="Whether the chain goes from step to step or from day to day.")
    ] = "step",
    bound: Annotated[
        float | None, asks("ALPHA", "The total leakage to be kept; by default the model's epsilon.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure what knowing a customer's habits adds.

    That is how their values follow each other, which is outside the privacy guarantee.
    """
    terminal = Terminal(as_json)
    if transition is None:
        raise WordsError("--transition is needed: the chain")
    settings = load_settings(config)
    chain = chain_of(read_transition(transition), read_transition(backward) if backward else None)
    history = history_of(settings, open_ledger(settings.ledger_url), by)
    if history is None:
        terminal.say(f"stream {settings.stream.name}: nothing released yet")
        terminal.document(empty_document(settings.stream.name, by))
        return
    given = float(settings.model.epsilon) if bound is None else bound
    found = leakage_of(settings.stream.name, history, chain, given)
    terminal.document(leakage_document(found))
    if not terminal.as_json:
        _show(found, settings, terminal)


def _show(found: Leakage, settings: Settings, terminal: Terminal) -> None:
    history, chain = found.history, found.chain
    step = f"steps of {settings.calendar.step_minutes} minutes" if history.by == "step" else "days as steps"
    terminal.say(
        f"{found.stream}: {history.n_releases} releases, {history.epsilons.size:,} {step}, "
        f"{history.days[0]} to {history.days[-1]}"
    )
    if history.n_reserved:
        terminal.say(f"{history.n_reserved} reserved, not drawn: left out")
    source = chain.backward_from or "derived by Bayes from its stationary distribution"
    terminal.say(f"chain of {chain.forward.n_states} states: {chain.forward.path}; backward: {source}\n")
    terminal.console.print(_table(found))
    terminal.say(f"\nto keep the total at {found.bound:g} or below, if every {_point(found)} is released:")
    for line in _budgets(found):
        terminal.say(f"  {line}")
    terminal.say(
        f"\nThis holds if the chain's states lie within alpha = {float(settings.privacy.alpha):g} of each "
        "other, against one who knows the chain; the privacy guarantee does not cover such knowledge "
        "(docs/methods/leakage.md)"
    )


def _table(found: Leakage) -> Table:
    """Return the table; its epsilon is what one without the chain learns, and the total is never less."""
    columns = [Column(name, justify="right" if name in ("worst", "median") else "left")
               for name in ("leakage", "worst", "at", "median", REPEATED)]  # fmt: skip
    table = Table(*columns, box=None, pad_edge=False)
    for name, series, supremum in found.rows:
        end = "" if supremum is None else f"{supremum:.6g}" if math.isfinite(supremum) else "without bound"
        at = found.history.when(int(series.argmax()))
        table.add_row(name, f"{series.max():.6g}", at, f"{np.median(series):.6g}", end)
    return table


def _budgets(found: Leakage) -> list[str]:
    constant, exact, point = found.constant, found.exact, _point(found)
    lines = [
        f"epsilon {constant:.6g} a {point}, permanently (Algorithm 7)"
        if constant > 0
        else "no epsilon above 0, permanently: what the chain carries is never forgotten (Algorithm 7)"
    ]
    if exact is not None:
        lines.append(
            f"epsilon {exact.first:.6g} the first, {exact.middle:.6g} each between, {exact.last:.6g} the "
            f"last, for {found.history.epsilons.size:,} {point}s (Algorithm 8)"
        )
    return lines


def _point(found: Leakage) -> str:
    return "step" if found.history.by == "step" else "day"
