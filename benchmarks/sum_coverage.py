"""Counts how often bands of 95 % hold the true sums of days, weeks and months: French load, and counts.

    python -m benchmarks.sum_coverage --data FOLDER [--first 2016-01-04] [--days 84] [--epsilon 1 0.1 0.01]
                                      [--seeds 2] [--counts]

HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the regions; or
with --counts Laplace on the load in units of 10 MW, rounded to whole numbers as if they were visits. The
first 28 days are learned from. Each later day is estimated with the week after it, as vintages are; the bands
are those of `optstream.read_sum`, from the terms that the files of errors have. Beside them: what they would
be if the errors of days were independent, and the standard error against the root mean square of the errors
that were made (a Monte Carlo over seeds, days and regions). The load is public, so errors may be printed.
Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from optstream import PrivacyModel, simulated_noise
from optstream.catalogue.sums.errors_parquet import decode_errors, encode_errors
from optstream.catalogue.sums.read_sum import SummedDay, sum_of_days
from optstream.estimation.error_factor import BAND
from optstream.estimation.error_terms import ErrorTerms, error_terms
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace, Release
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays
from tasks.studies.evaluation.data import LOAD, read_load

STEPS, LEARNED_DAYS, LATER_DAYS = 48, 28, 7
SPANS = {"day": 1, "week": 7, "month": 28}
Values = NDArray[np.float64]


def groups_of(tree: AggregationTree) -> Mapping[str, list[list[str]]]:
    """Return the questions by kind: each the regions that are summed."""
    names = list(tree.leaves)
    return {
        "region": [[name] for name in names],
        "three regions": [names[first : first + 3] for first in range(0, len(names), 3)],
        "nation": [[tree.nodes[0]]],
    }


def of_history(mechanism: HistoryInformedTree, load: Values, seed: int) -> list[Release]:
    """Return the days after those that are learned from, each estimated with those after it."""
    noise, state, run = simulated_noise(seed), None, list[Measured]()
    for number, day in enumerate(load):
        run.append(mechanism.measure(day, noise=noise, first_step=number * STEPS, state=state))
        state = run[-1].state
    asked = range(LEARNED_DAYS, len(run) - LATER_DAYS)
    return [mechanism.revise(run[at], run[at + 1 : at + 1 + LATER_DAYS]) for at in asked]


def of_laplace(mechanism: Hierarchical, load: Values, seed: int) -> list[Release]:
    """Return the same days, each by itself."""
    noise = simulated_noise(seed)
    days = load[LEARNED_DAYS : len(load) - LATER_DAYS]
    return [mechanism.release(day, noise=noise, first_step=at * STEPS) for at, day in enumerate(days)]


def terms_of(release: Release) -> ErrorTerms:
    """Return how the errors of a day hang together, which is known of both mechanisms."""
    assert release.tree is not None
    assert release.errors_together is not None
    found = error_terms(release.errors_together, release.tree, STEPS)
    assert found is not None
    return found


def errors_of(releases: Sequence[Release], load: Values, alike: bool) -> tuple[list[SummedDay], int]:
    """Return the days with the errors that were made in the place of values, and the bytes of all files.

    alike: whether all days were measured alike, so that the first's terms are those of all.
    """
    found, size = [], 0
    first = terms_of(releases[0])
    for number, release in enumerate(releases):
        tree = release.tree
        assert tree is not None
        period = date(2000, 1, 1) + timedelta(days=number)
        terms = first if alike else terms_of(release)
        data = encode_errors(terms, tree.nodes, period, "whole", release.values - release.unbounded)
        size += len(data)
        parents = {
            name: None if number == 0 else tree.nodes[parent]
            for number, (name, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True))
        }
        missed = release.values - tree.add_up(load[LEARNED_DAYS + number])
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--first", type=date.fromisoformat, default=date(2016, 1, 4))
    options.add_argument("--days", type=int, default=84)
    options.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--counts", action="store_true")
    given = options.parse_args(arguments)
    names, load = read_load(given.data / LOAD, given.first, given.first + timedelta(days=given.days - 1))
    tree = AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")})
    load = np.rint(load / 10.0) if given.counts else load
    for epsilon in given.epsilon:
        model = PrivacyModel(epsilon, STEPS, 1, "1" if given.counts else "0.001")
        days = PublicDays.from_date(given.first, STEPS)
        if given.counts:
            laplace = Hierarchical(Laplace(model), tree, ["1/2", "1/2"])
            runs = [errors_of(of_laplace(laplace, load, seed), load, True) for seed in range(given.seeds)]
        else:
            history = HistoryInformed(model, scale=4000, days=days)
            informed = HistoryInformedTree(history, tree, ["1/2", "1/2"])
            runs = [errors_of(of_history(informed, load, seed), load, False) for seed in range(given.seeds)]
        size = sum(size for _, size in runs) / sum(len(run) for run, _ in runs)
        columns = ["held", "days independent", "standard error / error made", "sums"]
        made = table(["sums of", "over"], columns, f"epsilon {epsilon}; {size / 1024:.0f} KiB a day")
        for span, n_days in SPANS.items():
            for kind, questions in groups_of(tree).items():
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
