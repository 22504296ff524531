"""Counts how often bands of 95 % hold the true sums of days, weeks and months: French load, and counts.

load: HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the
regions. trips: HistoryInformed with `counts` on city, boroughs and up to so many zones of each (`--zones`),
trips by the hour, w = 24, alpha 1 trip, shares 1/3, 1/6, 1/2. visits: Laplace on the load in units of 10 MW,
rounded to whole numbers as if they were visits, w = 48, alpha 1. counts: the same visits by HistoryInformed
with `counts`. Each seed has noise of its own, and of the
load a quarter of 2013 to 2016 of its own; trips are of the first months of 2024, and begin on another day
with each seed, so that other hours of each day are measured. The first 28 days are
learned from. Each later day of HistoryInformed is estimated with 8 to 14 days after it, as vintages are (6
days share what they look at); the bands are those of `optstream.read_figure`, from the replicates of the
releases, around the estimate before bound and rounding. Single values: bands of `standard_errors`; sums, a
day's maximum, and a day's share of the root: how often bands hold the truth, and the standard error against
the root mean square of the errors that were made (a Monte Carlo over seeds, days and nodes). Sums of a seed
that begin in the same 28 days count as one draw in the standard error of a share: they overlap, and an error
of a nation is one of its regions. Load and trips are public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.estimate import BAND
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, Release
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays
from studies.benchmarks.measure import Data, show, table
from studies.benchmarks.small_counts import FIRST, KNOWN_TRIPS, SLOTS, read_trips
from studies.evaluation.series import LOAD, read_load
from tasks.config.schema import public_holidays

LOAD_FIRST, WEEKS_APART, LOAD_WEEKS = date(2013, 1, 7), 11, 191
"""Where the load of a seed begins: so many weeks after that of the one before, around again after so many."""
DAYS_APART, FIRST_DAYS = 5, 23
"""Where the trips of a seed begin: so many days after those of the one before, around again after so many."""
EPSILONS = ["1", "0.1", "0.01"]
LEARNED_DAYS, LATER_DAYS, DAYS_ALIKE = 28, 14, 6
SPANS = {"day": 1, "week": 7, "month": 28}
STRETCH = 28
"""Days: sums of a seed that begin in one such stretch are one draw."""
Values = NDArray[np.float64]
Questions = Mapping[str, list[list[str]]]
Of = Literal["load", "trips", "visits", "counts"]


@dataclass(frozen=True)
class Run:
    """The days of one seed.

    versions: (2 + R, n_days, n_nodes, n_steps): truth, estimate, and its replicates. within: (n_days,
    n_nodes), the part of the single values in their bands.
    """

    versions: NDArray[np.float32]
    within: Values


@dataclass(frozen=True)
class Case:
    """A case. values: (n_days, n_leaves, n_steps). questions: by kind, nodes to be summed."""

    first: date
    tree: AggregationTree
    values: Values
    questions: Questions

    @property
    def n_steps(self) -> int:
        """Of a day."""
        return int(self.values.shape[2])


def by_threes(names: Sequence[str]) -> list[list[str]]:
    """Return the names in groups of three."""
    return [list(names[first : first + 3]) for first in range(0, len(names), 3)]


def load_case(folder: Path, n_days: int, unit: float, seed: int) -> Case:
    """Return a seed's load in units of so many MW: nation and regions."""
    first = LOAD_FIRST + timedelta(weeks=WEEKS_APART * seed % LOAD_WEEKS)
    names, load = read_load(folder / LOAD, first, first + timedelta(days=n_days - 1))
    tree = AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")})
    questions = {"region": [[name] for name in names], "three regions": by_threes(names), "nation": [["FR"]]}
    return Case(first, tree, load if unit == 1.0 else np.rint(load / unit), questions)


def trips_case(folder: Path, n_days: int, n_zones: int, seed: int = 0) -> Case:
    """Return the trips of some zones by the hour: of each borough the busiest, others evenly down from it."""
    before = DAYS_APART * seed % FIRST_DAYS
    whole, trips = read_trips(folder, before + n_days)
    parent = {name: whole.nodes[up] for name, up in zip(whole.nodes, whole.parents, strict=True) if up >= 0}
    boroughs = [name for name in whole.nodes if parent.get(name) == whole.nodes[0]]
    busy = dict(zip(whole.leaves, trips[:, : n_days * SLOTS].sum(axis=1), strict=True))
    zones = []
    for up in boroughs:
        own = sorted((one for one in whole.leaves if parent[one] == up), key=lambda one: (-busy[one], one))
        zones += own[:: max(1, len(own) // n_zones)][:n_zones]
    tree = AggregationTree.from_parents(
        {
            whole.nodes[0]: None,
            **dict.fromkeys(boroughs, whole.nodes[0]),
            **{one: parent[one] for one in zones},
        }
    )
    rows = [whole.leaves.index(name) for name in tree.leaves]
    values = trips[rows].reshape(len(rows), before + n_days, -1).transpose(1, 0, 2)[before:]
    questions = {
        "zone": [[name] for name in tree.leaves],
        "three zones": by_threes(tree.leaves),
        "borough": [[name] for name in boroughs],
        "city": [[whole.nodes[0]]],
    }
    return Case(FIRST + timedelta(days=before), tree, values, questions)


def release_history(mechanism: HistoryInformedTree, values: Values, seed: int) -> list[Release]:
    """Return the days after those that are learned from, each estimated with some after it."""
    state, run, n_steps = None, list[Measured](), values.shape[2]
    for number, day in enumerate(values):
        noise = simulated_noise([seed, number])
        run.append(mechanism.measure(day, noise=noise, first_step=number * n_steps, state=state))
        state = run[-1].state
    found = []
    for at in range(LEARNED_DAYS, len(run) - LATER_DAYS):
        last = at + LATER_DAYS - (at - LEARNED_DAYS) % DAYS_ALIKE
        found.append(mechanism.revise(run[at], run[at + 1 : last + 1]))
    return found


def release_laplace(mechanism: Hierarchical, values: Values, seed: int) -> list[Release]:
    """Return the same days, each by itself."""
    noise, n_steps = simulated_noise(seed), values.shape[2]
    days = values[LEARNED_DAYS : len(values) - LATER_DAYS]
    return [mechanism.release(day, noise=noise, first_step=at * n_steps) for at, day in enumerate(days)]


def run_of(releases: Sequence[Release], case: Case, n_replicates: int) -> Run:
    """Return truth, estimates and replicates of the days."""
    days, within = [], []
    for number, release in enumerate(releases):
        truth = case.tree.add_up(case.values[LEARNED_DAYS + number])
        drawn = release.replicates(n_replicates)
        assert drawn is not None
        assert release.standard_errors is not None
        days.append(np.stack([truth, release.estimate, *drawn[1]]).astype(np.float32))
        within.append((np.abs(release.values - truth) <= BAND * release.standard_errors).mean(axis=1))
    return Run(np.stack(days, axis=1), np.array(within))


def figures_of(run: Run, rows: list[int], span: str) -> list[tuple[float, float, int]]:
    """Return error, standard error and stretch of each figure of a kind of these nodes.

    Spans of several days begin a quarter of their length apart.
    """
    values = run.versions[:, :, rows].astype(np.float64)
    if span == "maximum of a day":
        found, n_days = values.sum(axis=2).max(axis=2), 1
    elif span == "share of a day":
        whole = run.versions[:, :, 0].sum(axis=2, dtype=np.float64)
        found, n_days = values.sum(axis=(2, 3)) / whole, 1
    else:
        n_days = SPANS[span]
        sums = values.sum(axis=(2, 3))
        firsts = range(0, sums.shape[1] - n_days + 1, max(1, n_days // 4))
        found = np.stack([sums[:, first : first + n_days].sum(axis=1) for first in firsts], axis=1)
    apart = max(1, n_days // 4)
    judged = zip((found[1] - found[0]).tolist(), found[2:].std(axis=0, ddof=1).tolist(), strict=True)
    return [(*one, at * apart // STRETCH) for at, one in enumerate(judged)]


def released(of: Of, case: Case, epsilon: str, seed: int, n_replicates: int) -> Run:
    """Return the released days of a case."""
    if of == "visits":
        model, shares = PrivacyModel(epsilon, 48, 1, "1"), ["1/2", "1/2"]
        # bands are around the estimate before the bound, which takes most of the time
        laplace = Hierarchical(Laplace(model), case.tree, shares, lower_bound=None)
        return run_of(release_laplace(laplace, case.values, seed), case, n_replicates)
    if of in ("load", "counts"):
        holidays = public_holidays("FR", range(case.first.year, case.first.year + 2))
        days, shares = PublicDays.from_date(case.first, 48, holidays), ["1/2", "1/2"]
        counts, resolution, scale = (True, 1, 400) if of == "counts" else (False, "0.001", 4000)
        model = PrivacyModel(epsilon, 48, 1, resolution)
        history = HistoryInformed(model, scale=scale, days=days, counts=counts)
    else:
        days, shares = PublicDays.from_date(case.first, 24), ["1/3", "1/6", "1/2"]
        model = PrivacyModel(epsilon, 24, 1, resolution=1)
        history = HistoryInformed(model, scale=KNOWN_TRIPS, days=days, counts=True)
    mechanism = HistoryInformedTree(history, case.tree, shares)
    return run_of(release_history(mechanism, case.values, seed), case, n_replicates)


def share(held: NDArray[np.float64] | NDArray[np.bool_], draws: NDArray[np.float64]) -> str:
    """Return a share and its standard error, such as "94.9% ± 0.5%"; what belongs to one draw counts as one.

    held: (n,), which part of each was held. draws: (n, k), of each k numbers by which its draw is known. The
    error is nan for one draw, and 0 where all or nothing was held.
    """
    of_draws = np.unique(draws, axis=0, return_inverse=True)[1].ravel()
    away = np.bincount(of_draws, held - held.mean())
    several = away.size > 1
    error = np.sqrt((away**2).sum() * away.size / (away.size - 1)) / held.size if several else np.nan
    return f"{held.mean():.1%} ± {error:.1%}"


def main(
    data: Data,
    of: Annotated[Of, typer.Option(help="The series to release.")] = "load",
    epsilon: Annotated[list[str], typer.Option(help="May be repeated.")] = EPSILONS,
    days: Annotated[int, typer.Option(min=LEARNED_DAYS + LATER_DAYS + SPANS["month"])] = 98,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 16,
    zones: Annotated[int, typer.Option(min=1, help="Of trips: zones of a borough, at most.")] = 8,
    replicates: Annotated[int, typer.Option(min=4, help="Of each day.")] = 50,
) -> None:
    """Measure and print."""
    for amount in epsilon:
        cases = [
            trips_case(data, days, zones, seed)
            if of == "trips"
            else load_case(data, days, 1.0 if of == "load" else 10.0, seed)
            for seed in range(seeds)
        ]
        runs = [released(of, case, amount, seed, replicates) for seed, case in enumerate(cases)]
        columns = ["held", "standard error / error made", "figures"]
        made = table(["nodes", "figure"], columns, f"epsilon {amount}; {replicates} replicates")
        tree, questions = cases[0].tree, cases[0].questions
        rows = {
            kind: [[tree.nodes.index(one) for one in nodes] for nodes in questions[kind]]
            for kind in questions
        }
        for kind in [kind for kind, nodes in questions.items() if len(nodes[0]) == 1]:
            single = np.array(
                [
                    (part, day // STRETCH, seed)
                    for seed, run in enumerate(runs)
                    for (row,) in rows[kind]
                    for day, part in enumerate(run.within[:, row])
                ]
            )
            made.add_row(kind, "step", share(single[:, 0], single[:, 1:]), "", str(len(single)))
        for span in (*SPANS, "maximum of a day", "share of a day"):
            for kind in questions:
                if span == "share of a day" and rows[kind] == [[0]]:
                    continue
                found = np.array(
                    [
                        (*one, seed)
                        for seed, run in enumerate(runs)
                        for some in rows[kind]
                        for one in figures_of(run, some, span)
                    ]
                )
                missed, ours = np.abs(found[:, 0]), found[:, 1]
                ratio = np.sqrt(np.mean(ours**2) / np.mean(missed**2))
                held = share(missed <= BAND * ours, found[:, 2:])
                made.add_row(kind, span, held, f"{ratio:.2f}", str(missed.size))
        show(made)
