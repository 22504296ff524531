"""Measure what knowing a customer's habits adds: how their values follow each other.

That is outside the privacy guarantee.
"""

import csv
import math
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.table import Column, Table

from flows.cli.options import DEFAULT_CONFIG, Config, Json, asks
from flows.cli.output import Terminal
from optstream.errors import ConfigurationError, ParameterError
from optstream.ledger import Ledger, ReleaseState, open_ledger
from optstream.privacy import worst_window
from optstream.privacy.spends import (
    ORDER_DEFECT,
    CappedSpend,
    GaussianSpend,
    JointSpend,
    OrderSpend,
    PeriodSpend,
    Spend,
    StepSpend,
)
from optstream.stream import day_of, days_from, period_from
from studies.leakage import (
    Floats,
    LossFunction,
    backward_leakage,
    backward_transition,
    checked_transition,
    constant_budget,
    exact_budgets,
    forward_leakage,
    repeated_leakage,
)
from tasks.config import Settings, load_settings

By = Literal["step", "period"]
FORMAT = "optstream.leakage/2"
LONGEST_HISTORY = 10_000_000


def step_charges(spend: Spend) -> Floats:
    """Return what each step of the spend's period loses when only that step changes, (n_steps,)."""
    match spend:
        case StepSpend():
            # each distinct weight is priced once, exactly
            priced = {weight: float(weight * spend.unit_charge) for weight in set(spend.weights)}
            return np.array([priced[weight] for weight in spend.weights])
        case PeriodSpend():
            return np.full(spend.n_steps, float(spend.charges[1]))
        case CappedSpend():
            return np.full(spend.n_steps, float(spend.unit_charge) if spend.cap else 0.0)
        case JointSpend():
            return np.array(spend.weights) * float(spend.unit_charge)
        case OrderSpend():
            return np.array(spend.weights) * float(spend.moved / spend.scale + ORDER_DEFECT)
    raise ParameterError(f"temporal leakage cannot price a {type(spend).__name__}: it is of epsilon alone")


def period_charge(spend: Spend, window_length: int) -> float:
    """Return what the spend loses when all steps of its period change."""
    if isinstance(spend, GaussianSpend):
        raise ParameterError("temporal leakage cannot price a GaussianSpend: it is of epsilon alone")
    if isinstance(spend, CappedSpend):
        windows = -(-spend.n_steps // window_length)
        return float(min(spend.n_steps, windows * spend.cap) * spend.unit_charge)
    return float(worst_window([spend], spend.n_steps).epsilon)


def history_of(settings: Settings, ledger: Ledger, by: By) -> tuple[list[date], Floats]:
    """Return the days from the first release to the last, and what each step or day was charged."""
    records = ledger.releases(settings.stream.name)
    drawn = [
        (day_of(period_from(one.period)), one) for one in records if one.state is not ReleaseState.RESERVED
    ]
    if not drawn:
        return [], np.zeros(0)
    calendar, window = settings.calendar, settings.privacy.window
    days = days_from(min(day for day, _ in drawn), max(day for day, _ in drawn))
    start, end = calendar.first_step(days[0]), calendar.first_step(days[-1] + timedelta(days=1))
    n_points = end - start if by == "step" else len(days)
    if n_points > LONGEST_HISTORY:
        raise ConfigurationError(
            f"the history from {days[0]} to {days[-1]} has {n_points:,} steps; at most {LONGEST_HISTORY:,} "
            "are followed one by one: use --by period"
        )
    epsilons = np.zeros(n_points)
    for day, record in drawn:
        first, last = calendar.first_step(day), calendar.first_step(day + timedelta(days=1))
        if not first <= record.first_step <= record.first_step + record.n_steps <= last:
            raise ConfigurationError(
                f"the ledger counts the steps of {day} otherwise than the configured calendar; use the "
                "configuration with which the stream was released"
            )
        for spend in record.spends:
            if by == "step":
                place = spend.first_step - start
                epsilons[place : place + spend.n_steps] += step_charges(spend)
            else:
                epsilons[(day - days[0]).days] += period_charge(spend, window)
    return days, epsilons


def read_transition(path: Path) -> Floats:
    """Read a matrix from CSV: a line a row; a first line that is not all numbers names the states."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file, strict=True) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: {error}; name a CSV file of numbers between commas") from None
    try:
        return checked_transition(lines if all(map(_is_number, lines[0])) else lines[1:])
    except (ParameterError, IndexError) as error:
        raise ConfigurationError(f"{path}: {error}; write a line of numbers for each state") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def leakage_document(
    settings: Settings, ledger: Ledger, forward: Floats, backward: Floats, by: By, bound: float
) -> dict[str, Any]:
    """Return what an adversary with the chain learns of each series of leakage, and budgets for a bound."""
    days, epsilons = history_of(settings, ledger, by)
    document: dict[str, Any] = {"format": FORMAT, "stream": settings.stream.name, "by": by}
    if not days:
        return document | {"n_points": 0}
    before, after = LossFunction(backward), LossFunction(forward)
    calendar = settings.calendar

    def when(index: int) -> str:
        if by == "period":
            return days[index].isoformat()
        firsts = np.array([calendar.first_step(day) for day in days])
        number = int(np.searchsorted(firsts - firsts[0], index, side="right")) - 1
        times = calendar.local_times(days[number])
        return times[index - int(firsts[number] - firsts[0])].isoformat(sep=" ", timespec="minutes")

    def summary(series: Floats, supremum: Floats | None = None) -> dict[str, Any]:
        found = {"worst": float(series.max()), "at": when(int(series.argmax()))}
        found["median"] = float(np.median(series))
        if supremum is not None:
            end = float(supremum.max())
            found["supremum"] = end if math.isfinite(end) else None
        return found

    last_day = epsilons[-calendar.n_steps(days[-1]) if by == "step" else -1 :]
    ends = repeated_leakage(last_day, backward=before, forward=after)
    back, ahead = backward_leakage(epsilons, before), forward_leakage(epsilons, after)
    exact = exact_budgets(bound, backward=before, forward=after) if epsilons.size > 1 else None
    return document | {
        "n_points": epsilons.size,
        "first_day": days[0].isoformat(),
        "last_day": days[-1].isoformat(),
        "n_states": before.n_states,
        "summary": {
            "epsilon": summary(epsilons),
            "backward": summary(back, ends[0]),
            "forward": summary(ahead, ends[1]),
            "total": summary(back + ahead - epsilons, ends[0] + ends[1] - last_day),
        },
        "bound": {
            "total": bound,
            "constant": constant_budget(bound, backward=before, forward=after),
            "exact": None if exact is None else asdict(exact),
        },
    }


def main(
    transition: Annotated[
        Path,
        asks(
            "M.csv",
            "The forward chain of one customer's values: row i is the distribution of the next value "
            "given i. Its states must lie within alpha of each other.",
        ),
    ],
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
    """Print a table of leakages, and the budgets that keep the total at the bound."""
    terminal, settings, forward = Terminal(as_json), load_settings(config), read_transition(transition)
    before = read_transition(backward) if backward else backward_transition(forward)
    if before.shape != forward.shape:
        raise ConfigurationError(f"{backward}: it must have the states of {transition}, in the same order")
    given = float(settings.model.epsilon) if bound is None else bound
    found = leakage_document(settings, open_ledger(settings.ledger_url), forward, before, by, given)
    terminal.document(found)
    if not as_json:
        _show(found, terminal, float(settings.model.alpha))


def _show(found: dict[str, Any], terminal: Terminal, alpha: float) -> None:
    point = "step" if found["by"] == "step" else "day"
    if not found["n_points"]:
        terminal.say(f"stream {found['stream']}: nothing released yet")
        return
    terminal.say(
        f"{found['stream']}: {found['n_points']:,} {point}s, {found['first_day']} to {found['last_day']}; "
        f"chain of {found['n_states']} states\n"
    )
    names = ("leakage", "worst", "at", "median", "if the last day repeats")
    columns = [Column(name, justify="right" if name in ("worst", "median") else "left") for name in names]
    table = Table(*columns, box=None, pad_edge=False)
    for name, row in found["summary"].items():
        end = row.get("supremum", "")
        end = "without bound" if end is None else f"{end:.6g}" if end != "" else ""
        table.add_row(name, f"{row['worst']:.6g}", row["at"], f"{row['median']:.6g}", end)
    terminal.console.print(table)
    bound = found["bound"]
    constant, exact = bound["constant"], bound["exact"]
    terminal.say(f"\nto keep the total at {bound['total']:g} or below, if every {point} is released:")
    if constant > 0:
        terminal.say(f"  epsilon {constant:.6g} a {point}, permanently (Algorithm 7)")
    else:
        terminal.say("  no epsilon above 0, permanently: the chain never forgets (Algorithm 7)")
    if exact is not None:
        terminal.say(
            f"  epsilon {exact['first']:.6g} the first, {exact['middle']:.6g} each between, "
            f"{exact['last']:.6g} the last, for {found['n_points']:,} {point}s (Algorithm 8)"
        )
    terminal.say(
        f"\nThis holds if the chain's states lie within alpha = {alpha:g} of each other, against one who "
        "knows the chain; the privacy guarantee does not cover such knowledge (docs/research/leakage.md)"
    )
