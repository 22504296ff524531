"""How `optstream advise` shows what it compared and proposes."""

import json
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.markup import escape
from rich.table import Table

from flows.cli.console import Terminal, plain_table
from tasks.planning.advice.compare_plans import Comparison, Judged
from tasks.planning.advice.propose_plans import PlanAdvice, StreamAdvice, advice_document

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
    name, share = compared.settings.stream.name, compared.settings.stream_share
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
