"""Counts how often bands of 95 % hold the true sums of days, weeks and months: French load, and counts.

load: HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the
regions. trips: HistoryInformed with `counts` on city, boroughs and up to so many zones of each (`--zones`),
trips by the hour, w = 24, alpha 1 trip, shares 1/3, 1/6, 1/2. visits: Laplace on the load in units of 10 MW,
rounded to whole numbers as if they were visits, w = 48, alpha 1. counts: the same visits by HistoryInformed
with `counts`. Each seed has noise of its own, and of the
load a quarter of 2013 to 2016 of its own; trips are of the first months of 2024, and begin on another day
with each seed, so that other hours of each day are measured. The first 28 days are
learned from. Each later day of HistoryInformed is estimated with 8 to 14 days after it, as vintages are (6
days share what they look at); the bands are those of `optstream.read_sum`, from the terms that the files of
errors have, around the estimate before bound and rounding. Single values: bands of `standard_errors`; beside
them how often bands of sums hold the truth, what they would hold if the errors of days were independent, and
the standard error against the root mean square of the errors that were made (a Monte Carlo over seeds, days
and nodes). Sums of a seed that begin in the same 28 days count as one draw where the standard error of a
share is told: they overlap, and what happens to a nation happens to its regions. Load and trips are public,
so errors may be printed. Noise is simulated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from numpy.typing import NDArray
from optstream.catalogue.sums import SummedDay, decode_errors, encode_errors, sum_of_days

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.error_terms import BAND, ErrorTerms, error_terms
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
    """The days of one seed with their errors. within: (n_days, n_nodes), which part of the single values lay
    in their bands. size: bytes of a file of errors.
    """

    days: Sequence[SummedDay]
    within: Values
    size: float


@dataclass(frozen=True)
class Case:
    """What is released. values: (n_days, n_leaves, n_steps). questions: by kind, nodes to be summed."""

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


def of_history(mechanism: HistoryInformedTree, values: Values, seed: int) -> list[Release]:
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


def of_laplace(mechanism: Hierarchical, values: Values, seed: int) -> list[Release]:
    """Return the same days, each by itself."""
    noise, n_steps = simulated_noise(seed), values.shape[2]
    days = values[LEARNED_DAYS : len(values) - LATER_DAYS]
    return [mechanism.release(day, noise=noise, first_step=at * n_steps) for at, day in enumerate(days)]


def terms_of(release: Release) -> ErrorTerms:
    """Return how the errors of a day hang together, which is known of these mechanisms."""
    assert release.tree is not None
    assert release.errors_together is not None
    found = error_terms(release.errors_together, release.tree, release.values.shape[1])
    assert found is not None
    return found


def errors_of(releases: Sequence[Release], case: Case, alike: bool) -> Run:
    """Return the days with the errors that were made in the place of values.

    alike: whether all days were measured alike, so that the first's terms are those of all.
    """
    found, within, size, tree = [], [], 0, case.tree
    first = terms_of(releases[0])
    parents = {
        name: None if number == 0 else tree.nodes[parent]
        for number, (name, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True))
    }
    for number, release in enumerate(releases):
        period = date(2000, 1, 1) + timedelta(days=number)
        terms = first if alike else terms_of(release)
        data = encode_errors(terms, tree.nodes, period, "whole", release.values - release.unbounded)
        size += len(data)
        missed = release.values - tree.add_up(case.values[LEARNED_DAYS + number])
        found.append(SummedDay(period, tree.nodes, parents, missed, decode_errors(data), False))
        assert release.standard_errors is not None
        within.append((np.abs(missed) <= BAND * release.standard_errors).mean(axis=1))
    return Run(found, np.array(within), size / len(found))


def alone(day: SummedDay) -> SummedDay:
    """Return the day as if its errors were independent of other days'."""
    assert day.errors is not None
    terms = replace(day.errors.terms, earlier=day.errors.terms.earlier[:, :0])
    return replace(day, errors=replace(day.errors, terms=terms))


def looked_at(run: Run, nodes: Sequence[str], n_days: int) -> Sequence[tuple[float, ...]]:
    """Return the error, its standard error, that of independent days, and the stretch, of each sum over so
    many days. Spans begin a quarter of their length apart.
    """
    found, days = [], run.days
    for first in range(0, len(days) - n_days + 1, max(1, n_days // 4)):
        part = days[first : first + n_days]
        ours, other = sum_of_days(part, nodes), sum_of_days([alone(day) for day in part], nodes)
        assert ours.standard_error is not None
        assert other.standard_error is not None
        found.append((ours.estimate, ours.standard_error, other.standard_error, first // STRETCH))
    return found


def single_values(run: Run, nodes: Sequence[str]) -> Sequence[tuple[float, ...]]:
    """Return which part of a node's single values lay in their bands, and the stretch, of each day."""
    of_days = run.within[:, run.days[0].nodes.index(nodes[0])]
    return [(float(part), day // STRETCH) for day, part in enumerate(of_days)]


def gathered(
    runs: Sequence[Run],
    questions: Questions,
    kind: str,
    look: Callable[[Run, list[str]], Sequence[tuple[float, ...]]],
) -> Values:
    """Return what is looked at of each question of a kind in each run, and the run's number, row by row."""
    return np.array(
        [
            (*one, seed)
            for seed, run in enumerate(runs)
            for nodes in questions[kind]
            for one in look(run, nodes)
        ]
    )


def released(of: Of, case: Case, epsilon: str, seed: int) -> Run:
    """Return the released days of a case with their errors."""
    if of == "visits":
        model, shares = PrivacyModel(epsilon, 48, 1, "1"), ["1/2", "1/2"]
        # bands are around the estimate before the bound, which takes most of the time
        laplace = Hierarchical(Laplace(model), case.tree, shares, lower_bound=None)
        return errors_of(of_laplace(laplace, case.values, seed), case, True)
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
    return errors_of(
        of_history(HistoryInformedTree(history, case.tree, shares), case.values, seed), case, False
    )


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
    of: Annotated[Of, typer.Option(help="What is released.")] = "load",
    epsilon: Annotated[list[str], typer.Option(help="May be repeated.")] = EPSILONS,
    days: Annotated[int, typer.Option(min=LEARNED_DAYS + LATER_DAYS + SPANS["month"])] = 98,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 16,
    zones: Annotated[int, typer.Option(min=1, help="Of trips: zones of a borough, at most.")] = 8,
) -> None:
    """Measure and print."""
    for amount in epsilon:
        cases = [
            trips_case(data, days, zones, seed)
            if of == "trips"
            else load_case(data, days, 1.0 if of == "load" else 10.0, seed)
            for seed in range(seeds)
        ]
        runs = [released(of, case, amount, seed) for seed, case in enumerate(cases)]
        size = np.mean([run.size for run in runs])
        columns = ["held", "days independent", "standard error / error made", "sums"]
        made = table(["sums of", "over"], columns, f"epsilon {amount}; {size / 1024:.0f} KiB a day")
        questions = cases[0].questions
        for kind in [kind for kind, asked in questions.items() if len(asked[0]) == 1]:
            single = gathered(runs, questions, kind, single_values)
            made.add_row(kind, "step", share(single[:, 0], single[:, 1:]), "", "", str(len(single)))
        for span, n_days in SPANS.items():
            for kind in questions:
                found = gathered(runs, questions, kind, partial(looked_at, n_days=n_days))
                missed, ours, independent = np.abs(found[:, :3].T)
                ratio = np.sqrt(np.mean(ours**2) / np.mean(missed**2))
                held = [share(missed <= BAND * one, found[:, 3:]) for one in (ours, independent)]
                made.add_row(kind, span, *held, f"{ratio:.2f}", str(missed.size))
        show(made)
