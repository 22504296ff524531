"""How fast a release is: the closed form in a batch beside the program as the paper writes it, in one run.

    python benchmarks/release.py [--periods 366] [--programs 20] [--data FOLDER]

13 nodes (the French regions and the nation), 48 steps, the paper's features. Three tables: the estimates of a
batch, beside the program as the paper writes it; a year released day by day with both samplers, with a
made-up load and, given --data, the real one of 2016; and what a noise sample costs beside numpy's. CPU
seconds: unlike the clock's, they hold on a busy machine.
"""

import argparse
import sys
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.naive_program import naive_program
from benchmarks.real_year import add_data_option, read_year
from benchmarks.release_year import SAMPLINGS, YearSeconds, a_year, mechanism_for
from optstream import AggregationTree, secure_noise, simulated_noise
from optstream.errors import OptStreamError
from optstream.estimation import make_consistent
from optstream.stream import Measured
from tasks.load_shapes import FRENCH_REGIONS

SEED = 20160201
WIDTH = 120  # of the tables, also where the output is a file


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--periods", type=int, default=366, help="periods in the batch (default: 366)")
    parser.add_argument("--programs", type=int, default=20, help="programs solved as the peer (default: 20)")
    add_data_option(parser, required=False)
    arguments = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    tree = AggregationTree.from_parents({"FR": None} | dict.fromkeys(FRENCH_REGIONS, "FR"))
    load = 4500 + 500 * np.random.default_rng(SEED).standard_normal((arguments.periods, 12, 48))
    try:
        years = {"made up": (tree, load)}
        if arguments.data:
            real = read_year(arguments.data)
            years["2016"] = (real.tree, real.load_mw[: arguments.periods])
    except OptStreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    program = show_batch(console, tree, load, arguments.programs)
    show_years(console, years, program)
    show_noise(console)
    return 0


def show_batch(console: Console, tree: AggregationTree, load: NDArray[np.float64], n_programs: int) -> float:
    """Equally spaced: the closed form beside the program. Return the program's seconds a period."""
    n_periods, mechanism = len(load), mechanism_for("equally spaced", tree)
    features = mechanism.features
    started = time.process_time()
    drawn = [
        mechanism.measure(day, noise=secure_noise(), first_step=48 * number)
        for number, day in enumerate(load)
    ]
    drawing = time.process_time() - started
    one_by_one = timed(lambda: [mechanism.estimate(measured) for measured in drawn])
    batch = together(drawn)
    batched = min(timed(lambda: make_consistent(batch, tree, features)) for _ in range(5))
    series = make_consistent(batch, tree, features)
    programs = range(0, n_periods, max(1, n_periods // n_programs))
    started = time.process_time()
    solved = [naive_program(drawn[number], tree, features, "variance")[0] for number in programs]
    program = time.process_time() - started
    gap = max(np.abs(series[number] - x).max() / x.max() for number, x in zip(programs, solved, strict=True))
    alone = timed(lambda: secure_noise().discrete_laplace(4e5, (13 * (10 + 5) * n_periods,)))
    table = Table("what", "periods", "CPU seconds", "a period", box=None)
    rows = [
        ("closed form, batch", n_periods, batched),
        ("closed form, one by one", n_periods, one_by_one),
        ("program as in the paper (cvxpy)", len(programs), program),
        ("measure, secure noise included", n_periods, drawing),
        ("of that, the noise alone", n_periods, alone),
    ]
    for name, periods, seconds in rows:
        table.add_row(name, str(periods), f"{seconds:.4f}", f"{seconds / periods * 1e6:,.0f} µs")
    console.print(table)
    ratio = (program / len(programs)) / (batched / n_periods)
    console.print(f"batch over program: {ratio:,.0f} times faster; largest relative difference {gap:.1e}\n")
    return program / len(programs)


def show_years(
    console: Console, years: dict[str, tuple[AggregationTree, NDArray[np.float64]]], program: float
) -> None:
    """A year day by day with each sampler; the aim is 2 s besides noise, and 10 times that for L1."""
    table = Table(box=None)
    for name in ("load", "points", "days"):
        table.add_column(name)
    for name in ("measure", "closed form", "estimate", "to solver", "besides noise", "noise", "samples"):
        table.add_column(name, justify="right")
    for load, (tree, values) in years.items():
        for sampling in SAMPLINGS:
            a_year(sampling, tree, values[:3])  # imports and caches
            year = a_year(sampling, tree, values)
            table.add_row(load, sampling, str(len(values)), *seconds_of(year))
    console.print(table)
    n_days = len(next(iter(years.values()))[1])
    console.print(
        "CPU seconds; besides noise = measure + estimate, which is the closed form, and the solver if it is "
        f"below 0; the program as in the paper would take {program * n_days:,.1f} s for the estimates\n"
    )


def seconds_of(year: YearSeconds) -> list[str]:
    """The cells of a year."""
    return [
        f"{year.measure:.2f}",
        f"{year.closed_form:.2f}",
        f"{year.estimate:.2f}",
        str(year.to_solver),
        f"{year.besides_noise:.2f}",
        f"{year.noise:.2f}",
        f"{year.samples:,}",
    ]


def show_noise(console: Console, scale: float = 4e5, n_samples: int = 100_000) -> None:
    """Samples a second, in one batch; the best of five."""
    generator = np.random.default_rng(SEED)
    sources = {
        "secure noise (OpenDP, exact)": lambda: secure_noise().discrete_laplace(scale, (n_samples,)),
        "simulated noise (two geometric draws)": lambda: simulated_noise(SEED).discrete_laplace(
            scale, (n_samples,)
        ),
        "numpy's laplace (floats)": lambda: generator.laplace(0.0, scale, n_samples),
    }
    table = Table("noise", "samples a second", "a sample", box=None)
    for name, draw in sources.items():
        seconds = min(timed(draw) for _ in range(5))
        table.add_row(name, f"{n_samples / seconds:,.0f}", f"{seconds / n_samples * 1e6:.3f} µs")
    console.print(table)


def timed(work) -> float:
    """CPU seconds that a call takes."""
    started = time.process_time()
    work()
    return time.process_time() - started


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
