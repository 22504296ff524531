"""Counts how often bands of 95 % hold the true sums of days, weeks and months: French load, and counts.

    python -m benchmarks.sum_coverage --data FOLDER [--of load | trips | visits] [--epsilon 1 0.1 0.01]
                                      [--days 84] [--seeds 2] [--zones 8]

load: HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the
regions. trips: HistoryInformed with `counts` on city, boroughs and up to so many zones of each (`--zones`),
trips by the hour, w = 24, alpha 1 trip, shares 1/3, 1/6, 1/2. visits: Laplace on the load in units of 10 MW,
rounded to whole numbers as if they were visits, w = 48, alpha 1. The first 28 days are learned from. Each
later day of HistoryInformed is estimated with the week after it, as vintages are; the bands are those of
`optstream.read_sum`, from the terms that the files of errors have, around the estimate before bound and
rounding. Beside them: what they would be if the errors of days were independent, and the standard error
against the root mean square of the errors that were made (a Monte Carlo over seeds, days and nodes). Load and
trips are public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from benchmarks.small_counts import FIRST, KNOWN_TRIPS, read_trips
from optstream import PrivacyModel, simulated_noise
from optstream.catalogue.sums.errors_parquet import decode_errors, encode_errors
from optstream.catalogue.sums.read_sum import SummedDay, sum_of_days
from optstream.estimation.error_factor import BAND
from optstream.estimation.error_terms import ErrorTerms, error_terms
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, Release
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays
from tasks.studies.evaluation.data import LOAD, read_load

LOAD_FIRST = date(2016, 1, 4)
LEARNED_DAYS, LATER_DAYS = 28, 7
SPANS = {"day": 1, "week": 7, "month": 28}
Values = NDArray[np.float64]
Questions = Mapping[str, list[list[str]]]


@dataclass(frozen=True)
class Case:
    """What is released. values: (n_days, n_leaves, n_steps). questions: by kind, nodes to be summed."""

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


def load_case(folder: Path, n_days: int, unit: float) -> Case:
    """Return the load in units of so many MW: nation and regions."""
    names, load = read_load(folder / LOAD, LOAD_FIRST, LOAD_FIRST + timedelta(days=n_days - 1))
    tree = AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")})
    questions = {"region": [[name] for name in names], "three regions": by_threes(names), "nation": [["FR"]]}
    return Case(tree, load if unit == 1.0 else np.rint(load / unit), questions)


def trips_case(folder: Path, n_days: int, n_zones: int) -> Case:
    """Return the trips of some zones by the hour: of each borough the busiest, others evenly down from it."""
    whole, trips = read_trips(folder, n_days)
    parent = {name: whole.nodes[up] for name, up in zip(whole.nodes, whole.parents, strict=True) if up >= 0}
    boroughs = [name for name in whole.nodes if parent.get(name) == whole.nodes[0]]
    busy = dict(zip(whole.leaves, trips.sum(axis=1), strict=True))
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
    values = trips[rows].reshape(len(rows), n_days, -1).transpose(1, 0, 2)
    questions = {
        "zone": [[name] for name in tree.leaves],
        "three zones": by_threes(tree.leaves),
        "borough": [[name] for name in boroughs],
        "city": [[whole.nodes[0]]],
    }
    return Case(tree, values, questions)


def of_history(mechanism: HistoryInformedTree, values: Values, seed: int) -> list[Release]:
    """Return the days after those that are learned from, each estimated with those after it."""
    state, run, n_steps = None, list[Measured](), values.shape[2]
    for number, day in enumerate(values):
        noise = simulated_noise([seed, number])
        run.append(mechanism.measure(day, noise=noise, first_step=number * n_steps, state=state))
        state = run[-1].state
    asked = range(LEARNED_DAYS, len(run) - LATER_DAYS)
    return [mechanism.revise(run[at], run[at + 1 : at + 1 + LATER_DAYS]) for at in asked]


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


def errors_of(releases: Sequence[Release], case: Case, alike: bool) -> tuple[list[SummedDay], int]:
    """Return the days with the errors that were made in the place of values, and the bytes of all files.

    alike: whether all days were measured alike, so that the first's terms are those of all.
    """
    found, size, tree = [], 0, case.tree
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
    return found, size


def alone(day: SummedDay) -> SummedDay:
    """Return the day as if its errors were independent of other days'."""
    assert day.errors is not None
    terms = replace(day.errors.terms, earlier=day.errors.terms.earlier[:, :0])
    return replace(day, errors=replace(day.errors, terms=terms))


def looked_at(
    days: Sequence[SummedDay], nodes: Sequence[str], n_days: int
) -> list[tuple[float, float, float]]:
    """Return the error, its standard error, and that of independent days, of each sum over so many days.
    Spans begin a quarter of their length apart.
    """
    found = []
    for first in range(0, len(days) - n_days + 1, max(1, n_days // 4)):
        part = days[first : first + n_days]
        ours, other = sum_of_days(part, nodes), sum_of_days([alone(day) for day in part], nodes)
        assert ours.standard_error is not None
        assert other.standard_error is not None
        found.append((ours.estimate, ours.standard_error, other.standard_error))
    return found


def released(of: str, case: Case, epsilon: str, seed: int) -> tuple[list[SummedDay], int]:
    """Return the released days of a case with their errors, and the bytes of all files."""
    if of == "visits":
        model, shares = PrivacyModel(epsilon, 48, 1, "1"), ["1/2", "1/2"]
        # bands are around the estimate before the bound, which takes most of the time
        laplace = Hierarchical(Laplace(model), case.tree, shares, lower_bound=None)
        return errors_of(of_laplace(laplace, case.values, seed), case, True)
    if of == "load":
        days, shares = PublicDays.from_date(LOAD_FIRST, 48), ["1/2", "1/2"]
        model = PrivacyModel(epsilon, 48, 1, "0.001")
        history = HistoryInformed(model, scale=4000, days=days)
    else:
        days, shares = PublicDays.from_date(FIRST, 24), ["1/3", "1/6", "1/2"]
        model = PrivacyModel(epsilon, 24, 1, resolution=1)
        history = HistoryInformed(model, scale=KNOWN_TRIPS, days=days, counts=True)
    return errors_of(
        of_history(HistoryInformedTree(history, case.tree, shares), case.values, seed), case, False
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--of", choices=("load", "trips", "visits"), default="load")
    options.add_argument("--days", type=int, default=84)
    options.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--zones", type=int, default=8)
    given = options.parse_args(arguments)
    if given.of == "trips":
        case = trips_case(given.data, given.days, given.zones)
    else:
        case = load_case(given.data, given.days, 1.0 if given.of == "load" else 10.0)
    for epsilon in given.epsilon:
        runs = [released(given.of, case, epsilon, seed) for seed in range(given.seeds)]
        size = sum(size for _, size in runs) / sum(len(run) for run, _ in runs)
        columns = ["held", "days independent", "standard error / error made", "sums"]
        made = table(["sums of", "over"], columns, f"epsilon {epsilon}; {size / 1024:.0f} KiB a day")
        for span, n_days in SPANS.items():
            for kind, questions in case.questions.items():
                found = np.array(
                    [one for run, _ in runs for nodes in questions for one in looked_at(run, nodes, n_days)]
                )
                missed, ours, independent = np.abs(found.T)
                ratio = np.sqrt(np.mean(ours**2) / np.mean(missed**2))
                held = f"{(missed <= BAND * ours).mean():.1%}", f"{(missed <= BAND * independent).mean():.1%}"
                made.add_row(kind, span, *held, f"{ratio:.2f}", str(missed.size))
        show(made)


if __name__ == "__main__":
    command(main)
