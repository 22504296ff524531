"""Measures whether plans that `optstream advise` expects to err less do err less, on public series.

    python -m studies.benchmarks.history.advised_plans --data FOLDER [--days 7] [--learned 28]
        [--only load trips pair cells margin]

The plans of `advise` for the French load (12 regions and their sum, half-hours) and for taxi trips (zones,
boroughs and city, by the hour), for a pair of products, the load split in two: two mechanisms for each
half at every eighth of epsilon, and for the load by region and made-up sector, as a tree ("cells") and with
the sectors as a margin ("margin"). For each the rank correlation of expected and found errors over its plans,
which plan is chosen, which is best, and by how much the first misses more. Both errors are geometric means
over levels, and streams, of root mean squares by the public size. Adaptive plans release `--learned` days
before those that are judged, others three. The public sizes are round numbers. Noise is simulated, all series
are public.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from optstream.noise import simulated_noise
from studies.benchmarks.harness.measure import command, parser, show, table, tracked
from studies.benchmarks.inputs.configuration_text import configuration
from studies.benchmarks.inputs.public_data import load_of_days
from studies.benchmarks.inputs.sectors import SECTORS, by_sector
from studies.benchmarks.small_counts import FIRST as FIRST_TRIPS
from studies.benchmarks.small_counts import read_trips
from tasks.config import Settings, load_settings
from tasks.plan.advise import Judge, compare_plans
from tasks.plan.candidates import Choice, mechanism_choices, with_scale, with_stream_share
from tasks.release.mechanism import mechanism_for

Values = NDArray[np.float64]
FIRST_LOAD = date(2016, 2, 1)
FEW_DAYS = 3
"""Before those that are judged, for mechanisms that learn no habits."""
SERIES = ("load", "trips", "pair", "cells", "margin")
EIGHTHS = tuple(Fraction(number, 8) for number in range(1, 8))
OF_A_PAIR = ("Laplace", "HistoryInformed")


@dataclass(frozen=True)
class Stream:
    """A public stream. scale: of a typical leaf, publicly known. values: of its leaves, by day."""

    settings: Settings
    scale: float
    first: date
    values: tuple[Values, ...]


def stream(
    folder: Path,
    name: str,
    parents: dict[str, str],
    days: Sequence[Values],
    sectors: Sequence[str] = (),
    *,
    first: date,
    scale: float,
    step: str = "30min",
    window: int = 48,
    privacy: Mapping[str, object] = MappingProxyType({}),
) -> Stream:
    """Return a stream of these days, configured in `folder`, with equal shares.

    sectors: of a margin; the leaves are then cells. privacy: further keys of that table.
    """
    depth = len(_path(next(reversed(parents)), parents)) + bool(sectors)
    share = f"1/{depth + bool(sectors)}"
    margins = {"sector": sectors} if sectors else {}
    text = configuration(
        stream={"name": name, "step": step, "day": "fixed"},
        privacy={"window": window, "alpha": "10"} | dict(privacy),
        hierarchy={"parents": parents, "margins": margins},
        budget={"levels": [share] * depth, "margins": dict.fromkeys(margins, share)},
        input={"value": "value"},
    )
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return Stream(load_settings(file), scale, first, tuple(days))


def _path(node: str, parents: dict[str, str]) -> list[str]:
    return [node, *(_path(parents[node], parents) if parents[node] else [])]


def load_stream(folder: Path, data: Path, n_days: int, name: str = "load", half: slice = slice(None),
                alpha: str = "10") -> Stream:  # fmt: skip
    """Return the load of these regions and their sum."""
    names, values = load_of_days(data, FIRST_LOAD, n_days)
    parents = {"FR": ""} | dict.fromkeys(names[half], "FR")
    privacy = {"alpha": alpha, "budget_alpha": "10"} if alpha != "10" else {}
    days = [day[half] for day in values]
    return stream(folder, name, parents, days, first=FIRST_LOAD, scale=5000, privacy=privacy)


def cells_stream(folder: Path, data: Path, n_days: int, *, margin: bool) -> Stream:
    """Return the load of regions and made-up sectors: sectors as a margin, or only cells below regions."""
    names, values = load_of_days(data, FIRST_LOAD, n_days)
    parents = {"FR": ""} | dict.fromkeys(names, "FR")
    if not margin:
        parents |= {f"{region}-{sector}": region for region in names for sector in SECTORS}
    kind, sectors = ("margin", SECTORS) if margin else ("cells", ())
    days = list(by_sector(np.array(values)))
    return stream(folder, kind, parents, days, sectors, first=FIRST_LOAD, scale=1500)


def trips_stream(folder: Path, data: Path, n_days: int) -> Stream:
    """Return the trips of city, boroughs and zones."""
    tree, trips = read_trips(data, n_days)
    names = [name.replace("/", " ") for name in tree.nodes]  # names of folders
    parents = {
        name: names[above] if above >= 0 else "" for name, above in zip(names, tree.parents, strict=True)
    }
    privacy = {"alpha": "1", "bounds": ["0", "10000"], "resolution": "1", "counts": True}
    return stream(
        folder, "trips", parents, np.split(trips, n_days, axis=1), first=FIRST_TRIPS, scale=0.3, step="1h",
        window=24, privacy=privacy,
    )  # fmt: skip


def found_error(given: Stream, settings: Settings, n_judged: int) -> float:
    """Return the geometric mean over levels of the root mean square error by size, of the last days."""
    n_days, noise, state = len(given.values), simulated_noise(1), None
    learns = mechanism_for(settings, given.first).revises
    squares = []
    for number in range(0 if learns else max(n_days - n_judged - FEW_DAYS, 0), n_days):
        day = given.first + timedelta(number)
        mechanism, step = mechanism_for(settings, day), settings.calendar.first_step(day)
        measured = mechanism.measure(given.values[number], noise=noise, first_step=step, state=state)
        state = measured.state
        if number >= n_days - n_judged:
            missed = mechanism.estimate(measured).values - mechanism.tree.add_up(given.values[number])
            squares.append([(missed[one.start : one.stop] ** 2).mean() for one in mechanism.tree.levels])
    tree = settings.tree_of(given.first)
    sizes = [given.scale * tree.leaves_below[one.start : one.stop].mean() for one in tree.levels]
    return float(np.exp(np.log(np.sqrt(np.mean(squares, axis=0)) / sizes).mean()))


Pairs = tuple[list[str], list[float], list[float]]
"""Plans, their expected and their found errors."""


def plans_of(given: Stream, n_judged: int) -> Pairs:
    """Return the plans that `advise` compares."""
    plans = compare_plans(given.settings, given.scale).plans
    found = [
        found_error(given, plan.choice.settings, n_judged)
        for plan in tracked(plans, given.settings.stream.name)
    ]
    return [plan.choice.label for plan in plans], [plan.relative for plan in plans], found


def plans_of_pair(pair: Sequence[Stream], n_judged: int) -> Pairs:
    """Return two mechanisms for each stream at every eighth of epsilon."""
    errors: dict[tuple[int, str, Fraction], tuple[float, float]] = {}
    for place, given in enumerate(pair):
        judge = Judge.of(given.settings, given.scale)
        for choice, share in tracked(list(product(_kinds(given), EIGHTHS)), "pair"):
            settings = with_stream_share(choice.settings, share)
            expected = judge.judged(Choice(choice.label, {}, settings)).relative
            errors[place, choice.label, share] = expected, found_error(given, settings, n_judged)
    labels, expected_of, found_of = [], [], []
    for first, second, share in product(OF_A_PAIR, OF_A_PAIR, EIGHTHS):
        one, other = errors[0, first, share], errors[1, second, 1 - share]
        labels.append(f"{first} {share}, {second} {1 - share}")
        expected_of.append(float(np.sqrt(one[0] * other[0])))
        found_of.append(float(np.sqrt(one[1] * other[1])))
    return labels, expected_of, found_of


def _kinds(given: Stream) -> Iterator[Choice]:
    return (
        with_scale(one, given.scale) for one in mechanism_choices(given.settings) if one.label in OF_A_PAIR
    )


def ranked(
    plans: Sequence[str], expected: Sequence[float], found: Sequence[float]
) -> tuple[float, str, str, str, str]:
    """Return the rank correlation of expected and found errors; then as texts the plan that is chosen, the
    best one, the correlation, and by how much the first misses more.
    """
    chosen, best = int(np.argmin(expected)), int(np.argmin(found))
    rank = float(spearmanr(expected, found).statistic)
    return rank, plans[chosen], plans[best], f"{rank:.2f}", f"{found[chosen] / found[best] - 1:+.1%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the order of plans on every stream, and print."""
    options = parser(__doc__, data=True, days=7, learned=28)
    options.add_argument("--only", nargs="+", choices=SERIES, default=list(SERIES))
    options.add_argument("--plans", action="store_true", help="print the plans too")
    given = options.parse_args(arguments)
    n_days = given.days + given.learned
    with TemporaryDirectory() as made:
        folder = Path(made)
        work: dict[str, Callable[[], Pairs]] = {
            "load": lambda: plans_of(load_stream(folder, given.data, n_days), given.days),
            "trips": lambda: plans_of(trips_stream(folder, given.data, n_days), given.days),
            "cells": lambda: plans_of(cells_stream(folder, given.data, n_days, margin=False), given.days),
            "margin": lambda: plans_of(cells_stream(folder, given.data, n_days, margin=True), given.days),
            "pair": lambda: plans_of_pair(
                [
                    load_stream(folder, given.data, n_days, "north", slice(0, 6)),
                    load_stream(folder, given.data, n_days, "south", slice(6, 12), "100"),
                ],
                given.days,
            ),
        }
        rows = table(["stream", "chosen", "best"], ["plans", "rank correlation", "chosen beside best"])
        for name in given.only:
            labels, expected, found = work[name]()
            if given.plans:
                every = table(["plan"], ["expected", "found"], title=name)
                for label, one, other in zip(labels, expected, found, strict=True):
                    every.add_row(label, f"{one:.2%}", f"{other:.2%}")
                show(every)
            _, chosen, best, rank, more = ranked(labels, expected, found)
            rows.add_row(name, chosen, best, str(len(labels)), rank, more)
            show(f"{name}: rank correlation {rank}")
        show(rows)


if __name__ == "__main__":
    command(main)
