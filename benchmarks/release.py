"""How fast a release is: the closed form in a batch beside the program as the paper writes it, in one run.

    python benchmarks/release.py [--periods 366] [--programs 20]

13 nodes (the French regions and the nation), 48 steps, equally spaced points and the paper's features.
"""

import argparse
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.naive_program import naive_program
from optstream import AggregationTree, EquallySpaced, Feature, OptStream, PrivacyModel, secure_noise
from optstream.estimation import make_consistent
from optstream.stream import Measured
from tasks.load_shapes import FRENCH_REGIONS

SEED = 20160201


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--periods", type=int, default=366, help="periods in the batch (default: 366)")
    parser.add_argument("--programs", type=int, default=20, help="programs solved as the peer (default: 20)")
    arguments = parser.parse_args()
    tree = AggregationTree.from_parents({"FR": None} | dict.fromkeys(FRENCH_REGIONS, "FR"))
    features = Feature.day_parts(48)
    model = PrivacyModel(epsilon="1", window_length=48, alpha=10)
    mechanism = OptStream(
        model, tree, sampling=EquallySpaced(10), features=features, level_shares=["1/2", "1/2"]
    )
    rng = np.random.default_rng(SEED)
    load = 4500 + 500 * rng.standard_normal((arguments.periods, 12, 48))

    started = time.perf_counter()
    drawn = [
        mechanism.measure(day, noise=secure_noise(), first_step=48 * number)
        for number, day in enumerate(load)
    ]
    drawing = time.perf_counter() - started
    one_by_one = timed(lambda: [mechanism.estimate(measured) for measured in drawn])
    batch = together(drawn)
    batched = min(timed(lambda: make_consistent(batch, tree, features)) for _ in range(5))
    series = make_consistent(batch, tree, features)
    programs = range(0, arguments.periods, max(1, arguments.periods // arguments.programs))
    started = time.perf_counter()
    solved = [naive_program(drawn[number], tree, features, "variance")[0] for number in programs]
    program = time.perf_counter() - started
    gap = max(np.abs(series[number] - x).max() / x.max() for number, x in zip(programs, solved, strict=True))
    samples = 13 * (10 + 5) * arguments.periods
    alone = timed(lambda: secure_noise().discrete_laplace(4e5, (samples,)))

    table = Table("what", "periods", "seconds", "a period", box=None)
    rows = [
        ("closed form, batch", arguments.periods, batched),
        ("closed form, one by one", arguments.periods, one_by_one),
        ("program as in the paper (cvxpy)", len(programs), program),
        ("measure, secure noise included", arguments.periods, drawing),
        ("of that, the noise alone", arguments.periods, alone),
    ]
    for name, periods, seconds in rows:
        table.add_row(name, str(periods), f"{seconds:.4f}", f"{seconds / periods * 1e6:,.0f} µs")
    console = Console(highlight=False)
    console.print(table)
    ratio = (program / len(programs)) / (batched / arguments.periods)
    console.print(f"batch over program: {ratio:,.0f} times faster; largest relative difference {gap:.1e}")
    return 0


def timed(work) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def together(drawn: list[Measured]) -> Measured:
    """Periods with the same plan as one batch. Their noisy numbers are public already."""
    first = drawn[0]
    unit = float(first.resolution)
    steps = np.full((len(drawn), first.points.shape[0], first.n_steps), np.nan)
    steps[..., list(first.positions)] = [measured.point_values for measured in drawn]
    for number, measured in enumerate(drawn):
        for node, row in enumerate(measured.point_values):
            steps[number, node] = np.interp(np.arange(first.n_steps), first.positions, row)
    sums = [np.array([measured.feature_sums[k] for measured in drawn]) for k in range(len(first.sums))]
    variances = [first.point_variances * unit**2, *(entry * unit**2 for entry in first.sum_variances)]
    return Measured.from_public(steps, sums, variances, first.positions)


if __name__ == "__main__":
    sys.exit(main())
