"""Counts how often OptStream's bands of 95 % hold the true steps, beside bands of the noise alone.

    python -m studies.benchmarks.noise.optstream_bands --data FOLDER [--of load trips] [--epsilon 10 1 0.1]
        [--points 10 24 6 4]

load: a nation and its regions, half-hours, w = 48, alpha 10 MW, half of epsilon each; every 31st day from 10
January 2013 to October 2016, without history, as the mechanism has none. trips: New York's taxis by the hour,
city, boroughs and up to 3 zones of each, w = 24, alpha 1 trip, a third each; every second day of 98. Points
are equally spaced; those in --points that are at most 10 are measured beside the sums of four day parts and
of the day, and again without sums. Bands are `Release.standard_errors` around the estimate, before a lower
bound. Load and trips are public, so errors may be printed. Noise is simulated.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.error_terms import BAND
from optstream.measurement import EquallySpaced
from optstream.mechanisms import OptStream
from optstream.stream import Feature
from studies.benchmarks.harness.measure import command, parser, show, table, tracked
from studies.benchmarks.inputs.public_data import load_of_days
from studies.benchmarks.sum_coverage import Case, load_case, trips_case

FIRST, DAYS_APART, N_DAYS = date(2013, 1, 10), 31, 46
HOURS = 0, 7, 12, 18, 24
"""Where day parts begin, and the last one ends."""
N_ZONES, TRIP_DAYS = 3, 98


def case_of(of: str, folder: Path) -> Case:
    """Return the days that are released."""
    if of == "trips":
        case = trips_case(folder, TRIP_DAYS, N_ZONES)
        return Case(case.first, case.tree, case.values[::2], {})
    days = [FIRST + timedelta(days=DAYS_APART * number) for number in range(N_DAYS)]
    values = np.concatenate([load_of_days(folder, day, 1)[1] for day in days])
    return Case(FIRST, load_case(folder, 1, 1.0, 0).tree, values, {})


def mechanism_of(of: str, case: Case, epsilon: str, n_points: int, sums: bool) -> OptStream:
    """Return OptStream on the tree of a case."""
    steps = [hour * case.n_steps // 24 for hour in HOURS]
    parts = tuple(range(*ends) for ends in pairwise(steps))
    features = [Feature(parts, "day parts"), Feature((range(case.n_steps),), "day")] if sums else []
    alpha, resolution = ("1", "1") if of == "trips" else ("10", "0.001")
    return OptStream(
        PrivacyModel(epsilon, case.n_steps, alpha, resolution),
        case.tree,
        sampling=EquallySpaced(n_points),
        features=features,
        level_shares=[f"1/{case.tree.n_levels}"] * case.tree.n_levels,
        lower_bound=None,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a row for each level of each case."""
    options = parser(__doc__, data=True, epsilon=["10", "1", "0.1"])
    options.add_argument("--of", nargs="+", choices=("load", "trips"), default=["load", "trips"])
    options.add_argument("--points", nargs="+", type=int, default=[10, 24, 6, 4])
    given = options.parse_args(arguments)
    columns = ["held", "by noise alone", "error made", "of noise"]
    rows = table(["of", "epsilon", "points", "sums", "level"], columns, "root mean squares of a step")
    cases = {of: case_of(of, given.data) for of in given.of}
    plans = [(points, sums) for points in given.points for sums in (True, False) if points <= 10 or not sums]
    asked = [(of, epsilon, *plan) for of in given.of for epsilon in given.epsilon for plan in plans]
    for of, epsilon, points, sums in tracked(asked):
        case = cases[of]
        if points > case.n_steps:
            continue
        one, found = mechanism_of(of, case, epsilon, points, sums), []
        for number, day in enumerate(case.values):
            noise, first_step = simulated_noise([1, number]), number * case.n_steps
            release = one.release(day, noise=noise, first_step=first_step)
            missed = release.values - case.tree.add_up(day)
            found.append((missed, release.standard_errors, release.noise_standard_errors))
        missed, whole, alone = (np.array(part, dtype=np.float64) for part in zip(*found, strict=True))
        for level, nodes in enumerate(case.tree.levels):
            own = slice(nodes.start, nodes.stop)
            held = [(np.abs(missed) <= BAND * errors)[:, own].mean() for errors in (whole, alone)]
            sizes = [np.sqrt((part[:, own] ** 2).mean()) for part in (missed, alone)]
            figures = [*(f"{one:.1%}" for one in held), *(f"{one:.1f}" for one in sizes)]
            rows.add_row(of, epsilon, str(points), "yes" if sums else "no", str(level), *figures)
    show(rows)


if __name__ == "__main__":
    command(main)
