"""Counts how often bands of 95 % hold the true sums of days, weeks and four weeks, on the French load.

    python -m benchmarks.sum_coverage --data FOLDER [--first 2016-01-04] [--days 84] [--epsilon 1 0.1]
                                      [--seeds 2]

HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the regions.
The first 28 days are learned from. Each later day is estimated with the week after it, as vintages are; the
bands are those of `optstream.read_sum`, and beside them what they would be if the errors of days were
independent. The load is public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from optstream import PrivacyModel, simulated_noise
from optstream.catalogue.measurements.read_measurements import DayMeasurements
from optstream.catalogue.measurements.sums import ErrorsOfDays, covariance_together
from optstream.estimation.error_factor import BAND
from optstream.mechanisms import HistoryInformed, HistoryInformedTree
from optstream.stream import AggregationTree, Measured
from optstream.stream.public_days import PublicDays
from tasks.studies.evaluation.data import LOAD, read_load

STEPS, LEARNED_DAYS, LATER_DAYS = 48, 28, 7
SPANS = {"day": 1, "week": 7, "four weeks": 28}
Values = NDArray[np.float64]


def groups_of(names: Sequence[object]) -> Mapping[str, list[list[int]]]:
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


@dataclass(frozen=True, eq=False)
class Days:
    """Days that were estimated. errors: (n_days, n_regions), of daily sums; own: (n_days, n_regions,
    n_regions), their covariances by each day's posterior.
    """

    days: Sequence[DayMeasurements]
    errors: Values
    own: Values


def estimated(mechanism: HistoryInformedTree, load: Values, run: Sequence[Measured]) -> Days:
    """Return the days after those that are learned from, each estimated with those after it."""
    asked = range(LEARNED_DAYS, len(run) - LATER_DAYS)
    days = [
        DayMeasurements(
            date.min, run[at], mechanism, tuple(run[at + 1 : at + 1 + LATER_DAYS]), "nearest", None
        )
        for at in asked
    ]
    released = np.stack([one.release().values[mechanism.tree.leaf_indices] for one in days])
    found = [covariance_together([one]) for one in days]
    own = np.stack([one[:, 0, :, 0] for one in found if one is not None])
    return Days(days, (released - load[asked.start : asked.stop]).sum(axis=2), own)


def held(found: Days, n_days: int) -> Mapping[str, tuple[list[bool], list[bool]]]:
    """Return by kind of question whether the band held each sum over so many days, and whether that of
    independent days did. Spans begin a quarter of their length apart.
    """
    counted: dict[str, tuple[list[bool], list[bool]]] = {}
    n_regions = found.errors.shape[1]
    for first in range(0, len(found.days) - n_days + 1, max(1, n_days // 4)):
        part = slice(first, first + n_days)
        own, missed = found.own[part], found.errors[part].sum(axis=0)
        together = own[0][:, None, :, None] if n_days == 1 else covariance_together(found.days[part])
        assert together is not None
        errors = ErrorsOfDays(own, together)
        for kind, questions in groups_of(range(n_regions)).items():
            ours, independent = counted.setdefault(kind, ([], []))
            for regions in questions:
                weights = np.zeros(n_regions)
                weights[regions] = 1.0
                total = abs(float(weights @ missed))
                alone = float(np.einsum("i,dij,j->", weights, own, weights))
                ours.append(total <= BAND * np.sqrt(errors.variance(weights)))
                independent.append(total <= BAND * np.sqrt(alone))
    return counted


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
        runs = [
            estimated(mechanism, load, measured_days(mechanism, load, seed)) for seed in range(given.seeds)
        ]
        for span, n_days in SPANS.items():
            found = [held(run, n_days) for run in runs]
            for kind in found[0]:
                ours, independent = (
                    np.concatenate([np.array(one[kind][place]) for one in found]) for place in (0, 1)
                )
                made.add_row(kind, span, f"{ours.mean():.1%}", f"{independent.mean():.1%}", str(ours.size))
        show(made)


if __name__ == "__main__":
    command(main)
