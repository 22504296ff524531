"""HistoryInformed over a long stream: errors, cover of its bands, revisions, cost.

    python -m benchmarks.history --data FOLDER [--from DATE] [--to DATE] [--epsilon 1 0.1 0.01]

The load of the 12 French regions, half-hours by day, w = 48, alpha 1 MW, all of epsilon for the regions. The
stream begins with the first day; what it learns it learns from its own noisy blocks. Days are compared from
the 29th on; "first" is the error of the first day, when nothing is known yet. Every seventh day is estimated
again from the measurements of the 1, 7 and 14 days after it. The load is public, so errors may be printed; of
private readings they are raw data. Noise is simulated.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.real_year import CALENDAR, add_data_option, read_year
from optstream import PrivacyModel, simulated_noise
from optstream.errors import OptStreamError
from optstream.mechanisms import HistoryInformed, Release
from optstream.privacy import worst_window
from optstream.stream.public_days import PublicDays
from tasks.public_holidays import public_holidays

KNOWN_LOAD_MW = 5000.0
LEARNED_DAYS = 28
REVISED_AFTER, REVISED_EVERY = (1, 7, 14), 7
Z_95 = 1.96


@dataclass(frozen=True)
class Row:
    """Mean absolute errors in MW, a step; share of values inside their 95 % bands; CPU seconds."""

    blocks: str
    first: float
    error: float
    cover: float
    revised: tuple[tuple[float, float], ...]
    worst: float
    night: float
    total: float


def run(data: Path, first: date, last: date, epsilon: str, seed: int) -> Row:
    """Release the days first to last in a row. Raises DumpError for days that are not there."""
    year = read_year(data, first, last)
    holidays = public_holidays("FR", range(first.year, last.year + 1))
    days = PublicDays.from_calendar(CALENDAR, holidays)
    mechanism = HistoryInformed(PrivacyModel(epsilon, 48, 1), scale=KNOWN_LOAD_MW, days=days)
    blocks = f"{mechanism.blocks.n_blocks} x {mechanism.blocks.length}"
    released, seconds, state = list[Release](), [], None
    nights = list(zip(year.load_mw, year.first_steps, strict=True))
    for number, (load, step) in enumerate(track(nights, epsilon, console=Console(stderr=True))):
        started = time.process_time()
        noise = simulated_noise([seed, number])
        released.append(mechanism.release(load, noise=noise, first_step=step, state=state))
        state = released[-1].state
        seconds.append(time.process_time() - started)
    missed = np.abs(np.maximum([one.values for one in released], 0.0) - year.load_mw)
    bands = Z_95 * np.array([one.standard_errors for one in released])
    spends = [spend for one in released for spend in one.spends]
    return Row(
        blocks,
        float(missed[0].mean()),
        float(missed[LEARNED_DAYS:].mean()),
        float((missed < bands)[LEARNED_DAYS:].mean()),
        tuple(revised(mechanism, released, missed, year.load_mw, after) for after in REVISED_AFTER),
        float(worst_window(spends, 48).epsilon),
        float(np.median(seconds)),
        float(np.sum(seconds)),
    )


def revised(
    mechanism: HistoryInformed, released: Sequence[Release], missed, load, after: int
) -> tuple[float, float]:
    """The mean error of every seventh day as it was first published, and after so many days more."""
    chosen = range(LEARNED_DAYS, len(released) - after, REVISED_EVERY)
    errors = []
    for day in chosen:
        later = [one.measured for one in released[day + 1 : day + 1 + after]]
        again = mechanism.revise(released[day].measured, later)
        errors.append(np.abs(np.maximum(again.values, 0.0) - load[day]).mean())
    return float(missed[list(chosen)].mean()), float(np.mean(errors))


def table_of(rows: dict[str, Row]) -> Table:
    """A row for each epsilon."""
    table = Table(box=None, pad_edge=False)
    names = [f"revised after {after}" for after in REVISED_AFTER]
    for name in ("ε", "m x L", "first", "error", "cover", *names, "worst window", "CPU s a night", "in all"):
        table.add_column(name, justify="right")
    for epsilon, row in rows.items():
        changes = [f"{again:.1f} ({again / once - 1:+.1%})" for once, again in row.revised]
        table.add_row(
            epsilon, row.blocks, f"{row.first:.0f}", f"{row.error:.1f}", f"{row.cover:.1%}", *changes,
            f"{row.worst:.6g}", f"{row.night:.2f}", f"{row.total:.0f}",
        )  # fmt: skip
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data_option(parser, required=True)
    parser.add_argument("--from", dest="first", type=date.fromisoformat, default=date(2016, 1, 1))
    parser.add_argument("--to", dest="last", type=date.fromisoformat, default=date(2016, 12, 31))
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.last - given.first < timedelta(days=LEARNED_DAYS + max(REVISED_AFTER) + 1):
        parser.error(f"--from and --to must span at least {LEARNED_DAYS + max(REVISED_AFTER) + 2} days")
    try:
        rows = {
            epsilon: run(given.data, given.first, given.last, epsilon, given.seed)
            for epsilon in given.epsilon
        }
    except OptStreamError as error:
        sys.exit(str(error))
    Console(width=140).print(table_of(rows))


if __name__ == "__main__":
    main()
