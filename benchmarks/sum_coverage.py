"""Counts how often bands of 95 % hold the true sums of days, weeks and four weeks, on the French load.

    python -m benchmarks.sum_coverage --data FOLDER [--first 2016-01-04] [--days 84] [--epsilon 1 0.1]
                                      [--seeds 2]

HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the regions.
The first 28 days are learned from. Each later day is estimated with the week after it, as vintages are; the
bands are those of `optstream.read_sum`, and beside them what they would be if the errors of days were
independent. The load is public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from optstream import PrivacyModel, simulated_noise
from optstream.catalogue.measurements.read_measurements import DayMeasurements
from optstream.catalogue.measurements.sums import errors_of_days
from optstream.estimation.error_factor import BAND
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays
from tasks.studies.evaluation.data import LOAD, read_load

STEPS, LEARNED_DAYS, LATER_DAYS = 48, 28, 7
SPANS = {"day": 1, "week": 7, "four weeks": 28}
Values = NDArray[np.float64]


def groups_of(names: Sequence[str]) -> Mapping[str, list[list[int]]]:
    """Return the questions by kind: each the places of the regions that are summed."""
    every = list(range(len(names)))
    return {
        "region": [[place] for place in every],
        "three regions": [every[first : first + 3] for first in range(0, len(names), 3)],
        "nation": [every],
    }


def measured_days(mechanism: HistoryInformedTree, load: Values, seed: int) -> list[Measured]:
    """Return the measurements of days (n_days, n_regions, 48), one after the other."""
    noise, state, found = simulated_noise(seed), None, []
    for number, day in enumerate(load):
        found.append(mechanism.measure(day, noise=noise, first_step=number * STEPS, state=state))
        state = found[-1].state
    return found


def held_spans(
    mechanism: HistoryInformedTree, load: Values, days: Sequence[Measured], n_days: int
) -> Mapping[str, tuple[list[bool], list[bool]]]:
    """Return by kind of question whether the band held each sum over so many days, and whether that of
    independent days did. load: (n_days, n_regions, 48). Spans begin a quarter of their length apart.
    """
    leaves = mechanism.tree.leaf_indices
    found: dict[str, tuple[list[bool], list[bool]]] = {}
    for first in range(LEARNED_DAYS, len(days) - LATER_DAYS - n_days + 1, max(1, n_days // 4)):
        asked = range(first, first + n_days)
        part = [
            DayMeasurements(
                date.min, days[day], mechanism, tuple(days[day + 1 : day + 1 + LATER_DAYS]), "nearest", None
            )
            for day in asked
        ]
        released = np.stack([one.release().values[leaves] for one in part])
        missed = (released - load[first : first + n_days]).sum(axis=(0, 2))
        errors = errors_of_days(part)
        assert errors is not None
        for kind, questions in groups_of(mechanism.tree.leaves).items():
            ours, independent = found.setdefault(kind, ([], []))
            for regions in questions:
                weights = np.zeros(len(leaves))
                weights[regions] = 1.0
                total = abs(float(weights @ missed))
                alone = float(np.einsum("i,dij,j->", weights, errors.own, weights))
                ours.append(total <= BAND * np.sqrt(errors.variance(weights)))
                independent.append(total <= BAND * np.sqrt(alone))
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--first", type=date.fromisoformat, default=date(2016, 1, 4))
    options.add_argument("--days", type=int, default=84)
    options.add_argument("--epsilon", nargs="+", default=["1", "0.1"])
    options.add_argument("--seeds", type=int, default=2)
    given = options.parse_args(arguments)
    names, load = read_load(given.data / LOAD, given.first, given.first + timedelta(days=given.days - 1))
    tree = AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")})
    for epsilon in given.epsilon:
        model = PrivacyModel(epsilon, STEPS, 1, "0.001")
        days = PublicDays.from_date(given.first, STEPS)
        mechanism = HistoryInformedTree(HistoryInformed(model, scale=4000, days=days), tree, ["1/2", "1/2"])
        made = table(["sums of", "over"], ["held", "days independent", "sums"], f"epsilon {epsilon}")
        runs = [measured_days(mechanism, load, seed) for seed in range(given.seeds)]
        for span, n_days in SPANS.items():
            found = [held_spans(mechanism, load, run, n_days) for run in runs]
            for kind in found[0]:
                ours, independent = (
                    np.concatenate([np.array(one[kind][place]) for one in found]) for place in (0, 1)
                )
                made.add_row(kind, span, f"{ours.mean():.1%}", f"{independent.mean():.1%}", str(ours.size))
        show(made)


if __name__ == "__main__":
    command(main)
