"""`optstream advise`: how to release one stream, or several of one population, by expected errors."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from flows.cli.options import DEFAULT_CONFIG, Json, WordsError, asks, examples, new_app
from flows.cli.output import Terminal, plain_table
from tasks.config import load_settings
from tasks.plan.advise import (
    Comparison,
    Judged,
    PlanAdvice,
    StreamAdvice,
    advice_document,
    advise_plans,
    write_proposal,
)

# How `optstream advise` shows what it compared and proposes.

WIDTH = 80


def show_plan_advice(advice: PlanAdvice, terminal: Terminal) -> None:
    """Tables for people, or the one document of `--json`."""
    if terminal.as_json:
        terminal.document(advice_document(advice))
        return
    if advice.overdrawn is not None:
        terminal.say(
            fill(
                f"the streams plan with {advice.overdrawn} of epsilon together, which the ledger refuses; "
                "they are compared at equal shares of it",
                WIDTH,
            )
        )
    for one in advice.streams:
        _show_stream(one, terminal, alone=len(advice.streams) == 1)
    terminal.say(
        "\n"
        + fill(
            "Errors are root mean squares that a general prior expects, with that of HistoryInformed once it "
            "has learned: public facts alone, no dump and no ledger was read. What is true of your "
            "readings may differ; trying plans on them would cost privacy that nobody counts.",
            WIDTH,
        )
    )


def _show_stream(advice: StreamAdvice, terminal: Terminal, *, alone: bool) -> None:
    compared, best = advice.compared, advice.proposed
    name, share = compared.settings.stream.name, compared.settings.budget.stream_share
    budget = compared.settings.model.currency
    terminal.say(f"\n{name}: plans with {share} of {budget}, least expected error first")
    terminal.console.print(_plans(compared))
    if not alone:
        terminal.say(f"\n{name}: proposed with {advice.share} of {budget}, errors then")
        terminal.console.print(_table(compared, [best], {id(best): "proposed"}))
    for title, plan in (("as configured", compared.configured), ("proposed", best)):
        for warning in plan.warnings:
            terminal.say("\n" + fill(f"{title}: {warning}", WIDTH))
    if not advice.keys:
        terminal.say(f"\n{name}: nothing is expected to do better than what is configured")
        return
    less = "less" if advice.gain >= 0 else "more"  # where it leaves a share to another stream
    terminal.say(
        f"\n{name}: {best.choice.label} is expected to err {abs(advice.gain):.0%} {less} than configured; "
        f"in {compared.settings.file.name}:\n{as_toml(advice.keys)}"
    )


def _plans(compared: Comparison) -> Table:
    marks = {id(compared.configured): "configured"}
    marks[id(compared.best)] = "best" if compared.best is not compared.configured else "best, kept"
    return _table(compared, compared.plans, marks)


def _table(compared: Comparison, plans: Sequence[Judged], marks: dict[int, str]) -> Table:
    levels = [escape(name) for name in compared.levels]
    table = plain_table("", "plan", "joint", *levels, "of size", n_texts=3)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for plan in plans:
        joint = ", ".join(levels[level] for level in plan.joint_levels)
        errors = (_figure(one.error) for one in plan.expected)
        label = escape(plan.choice.label)
        table.add_row(marks.get(id(plan), ""), label, joint, *errors, f"{plan.relative:.2%}")
    sizes = (_figure(one.size) for one in compared.best.expected if one.size is not None)
    table.add_row("", "typical size", "", *sizes, "")
    return table


def _figure(value: float) -> str:
    """Three digits that tell, without a power of ten."""
    return f"{float(f'{value:.3g}'):,.10g}"


def as_toml(keys: Mapping[str, Mapping[str, Any]]) -> str:
    """Return keys of a configuration, by table, as a person would write them into it."""
    if not keys:
        return "    (nothing to change)"
    lines = []
    for table, entries in keys.items():
        lines += [f"    [{table}]", *(_line(key, value) for key, value in entries.items())]
    return "\n".join(lines)


def _line(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} = {json.dumps(one)}" for name, one in value.items())
        return f"    {key} = {{ {inside} }}"
    return f"    # {key}: leave it out" if value is None else f"    {key} = {json.dumps(value)}"


app = new_app()


@app.command(
    epilog=examples(
        "optstream advise --scale 5000",
        "optstream advise --config electricity.toml --config gas.toml --write e2.toml --write g2.toml",
    )
)
def advise(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="The configuration file (TOML), else optstream.toml; may be repeated for the streams of one "
            "population.",
        ),
    ] = None,
    scale: Annotated[
        list[float] | None,
        asks(
            "NUMBER",
            "A leaf's typical reading, from public knowledge, where a configuration has no "
            "mechanism.scale; given once, or once for each configuration.",
        ),
    ] = None,
    write: Annotated[
        list[Path] | None,
        asks(
            "FILE", "Write the proposed configuration, beside the present one; once for each configuration."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Propose how to release, from public facts alone.

    Mechanism, noise, shares of levels and streams, by their expected errors. Opens no dump and no ledger.
    """
    streams = [load_settings(one) for one in config or [DEFAULT_CONFIG]]
    scales: list[float | None] = [*scale] if scale else [None]
    if len(scales) not in (1, len(streams)):
        raise WordsError(f"--scale is given once, or once for each of {len(streams)} configurations")
    if any(one is not None and not 0 < one < float("inf") for one in scales):
        raise WordsError("--scale must be a finite number greater than 0")
    if write and len(write) != len(streams):
        raise WordsError(f"--write is given once for each of {len(streams)} configurations")
    terminal = Terminal(as_json)
    with terminal.step("compare plans"):
        advice = advise_plans(streams, scales * (len(streams) // len(scales)))
    show_plan_advice(advice, terminal)
    for settings, one, path in zip(streams, advice.streams, write or (), strict=False):
        write_proposal(settings, one.keys, path)
        terminal.say(f"wrote {path}")
