"""Counts how often bands of 95 % hold the true sums of days, weeks and four weeks, on the French load.

    python -m benchmarks.sum_coverage --data FOLDER [--first 2016-01-04] [--days 84] [--epsilon 1 0.1]
                                      [--seeds 2]

HistoryInformed with scale 4000 MW, w = 48, alpha 1 MW, half of epsilon at the nation, half at the regions.
The first 28 days are learned from. Each later day is estimated with the week after it, as vintages are; the
bands are of `HistoryInformedTree.error_covariance`, and beside them what they would be if the errors of days
were independent. The load is public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.measure import command, parser, show, table
from optstream import PrivacyModel, simulated_noise
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


def errors_and_covariances(
    mechanism: HistoryInformedTree, load: Values, days: Sequence[Measured]
) -> tuple[Values, Values, Values]:
    """Return the errors of the regions' daily sums, (n_days, n_regions); what their covariances are said to
    be, (n_days, n_days, n_regions, n_regions), of days up to the longest span apart, else 0; and those of the
    spans that end with a day, by its posterior alone, (n_days, n_spans, n_regions, n_regions).
    """
    leaves, asked = mechanism.tree.leaf_indices, range(LEARNED_DAYS, len(days) - LATER_DAYS)
    errors = np.zeros((len(asked), len(leaves)))
    said = np.zeros((len(asked), len(asked), len(leaves), len(leaves)))
    least = np.zeros((len(asked), len(SPANS), len(leaves), len(leaves)))
    for row, number in enumerate(asked):
        later = days[number + 1 : number + 1 + LATER_DAYS]
        values = mechanism.revise(days[number], later).values[leaves]
        errors[row] = (values - load[number]).sum(axis=1)
        first = max(0, row - max(SPANS.values()) + 1)
        steps = range(asked[first] * STEPS, (number + 1) * STEPS)
        sums = np.repeat(np.eye(row - first + 1), STEPS, axis=1)
        found = mechanism.error_covariance(days[number], later, steps, sums)
        assert found is not None
        said[row, first : row + 1] = found[:, -1].transpose(2, 0, 1)
        said[first : row + 1, row] = found[:, :, :, -1].transpose(1, 0, 2)
        for place, span in enumerate(SPANS.values()):
            least[row, place] = found[:, -span:, :, -span:].sum(axis=(1, 3))
    return errors, said, least


def held(
    errors: Values, said: Values, least: Values, regions: Sequence[int], span: int
) -> tuple[list[bool], list[bool]]:
    """Return whether the band held each sum over so many days, and whether that of independent days did.

    least: of the span, (n_days, n_regions, n_regions).
    """
    weights = np.zeros(errors.shape[1])
    weights[list(regions)] = 1.0
    missed, between = errors @ weights, np.einsum("i,deij,j->de", weights, said, weights)
    at_least = np.einsum("i,dij,j->d", weights, least, weights)
    found: tuple[list[bool], list[bool]] = [], []
    for first in range(len(errors) - span + 1):
        part = slice(first, first + span)
        whole = max(between[part, part].sum(), at_least[first + span - 1])
        alone = np.trace(between[part, part])
        total = abs(missed[part].sum())
        found[0].append(bool(total <= BAND * np.sqrt(whole)))
        found[1].append(bool(total <= BAND * np.sqrt(alone)))
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
        counted: dict[tuple[str, str], tuple[list[bool], list[bool]]] = {}
        for seed in range(given.seeds):
            errors, said, least = errors_and_covariances(
                mechanism, load, measured_days(mechanism, load, seed)
            )
            for kind, questions in groups_of(names).items():
                for place, (span, n_days) in enumerate(SPANS.items()):
                    for regions in questions:
                        found = held(errors, said, least[:, place], regions, n_days)
                        for mine, more in zip(counted.setdefault((kind, span), ([], [])), found, strict=True):
                            mine.extend(more)
        made = table(["sums of", "over"], ["held", "days independent", "sums"], f"epsilon {epsilon}")
        asked = {key: found for key, found in counted.items() if found[0]}
        for (kind, span), (ours, independent) in asked.items():
            made.add_row(kind, span, f"{np.mean(ours):.1%}", f"{np.mean(independent):.1%}", str(len(ours)))
        show(made)


if __name__ == "__main__":
    command(main)
