"""Times a release: the closed form in a batch beside the program as the paper writes it, in one run.

    python -m studies.benchmarks.release_time [--periods 366] [--programs 20] [--data FOLDER]

13 nodes (the French regions and the nation), 48 steps, the paper's features. Three tables: the estimates of a
batch, beside the program as the paper writes it; a year released day by day with both samplers, with a
made-up load and, given --data, the real one of 2016; and what a noise sample costs beside numpy's. CPU
seconds: unlike the clock's, they hold on a busy machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from optstream import AggregationTree, secure_noise, simulated_noise
from optstream.estimation import make_consistent
from optstream.noise import NoiseSource
from optstream.stream import Measured
from studies.benchmarks.harness.measure import command, fastest, in_words, parser, show, table, timed
from studies.benchmarks.inputs.fixture import STEPS, french_tree, optstream
from studies.benchmarks.inputs.public_data import load_of_days
from studies.benchmarks.peers.naive_program import naive_program

SEED = 20160201
SAMPLINGS = {"equally spaced": False, "L1": True}
Values = NDArray[np.float64]


@dataclass
class TimedNoise:
    """Draws noise from its source, and notes how long it drew and how much."""

    source: NoiseSource = field(default_factory=secure_noise)
    seconds: float = 0.0
    samples: int = 0

    def __post_init__(self) -> None:
        self.simulated = self.source.simulated

    def discrete_laplace(self, scale: float, size: tuple[int, ...]) -> NDArray[np.int64]:
        """Return what the source draws."""
        return self._noted(lambda: self.source.discrete_laplace(scale, size))

    def uniform_below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what the source draws."""
        return self._noted(lambda: self.source.uniform_below(bounds))

    def _noted(self, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        taken, drawn = timed(draw)
        self.seconds += taken.processor
        self.samples += drawn.size
        return drawn


@dataclass(frozen=True)
class YearSeconds:
    """CPU seconds of a year. measure: without the noise. closed_form: estimates without bound. estimate: with
    the bound, hence with the bounded program where the closed form went below it, on `to_solver` periods.
    """

    measure: float
    noise: float
    samples: int
    closed_form: float
    estimate: float
    to_solver: int

    @property
    def besides_noise(self) -> float:
        """Measuring and estimating together."""
        return self.measure + self.estimate


def draw(tree: AggregationTree, load: Values, noise: NoiseSource, l1: bool = False) -> list[Measured]:
    """Measure load (n_days, n_leaves, 48) day by day, states passed on."""
    mechanism, drawn, state = optstream(tree, l1=l1), list[Measured](), None
    for number, day in enumerate(load):
        drawn.append(mechanism.measure(day, noise=noise, first_step=STEPS * number, state=state))
        state = drawn[-1].state
    return drawn


def a_year(l1: bool, tree: AggregationTree, load: Values) -> YearSeconds:
    """Release the load day by day with secure noise."""
    mechanism, unbounded = (optstream(tree, l1=l1, lower_bound=bound) for bound in (0.0, None))
    noise = TimedNoise()
    measuring, drawn = timed(lambda: draw(tree, load, noise, l1))
    closed_form, free = timed(lambda: [unbounded.estimate(measured) for measured in drawn])
    estimating, _ = timed(lambda: [mechanism.estimate(measured) for measured in drawn])
    return YearSeconds(
        measure=measuring.processor - noise.seconds,
        noise=noise.seconds,
        samples=noise.samples,
        closed_form=closed_form.processor,
        estimate=estimating.processor,
        to_solver=sum(bool((release.values[tree.leaf_indices] < 0).any()) for release in free),
    )


def show_batch(tree: AggregationTree, load: Values, n_programs: int) -> float:
    """Print the closed form beside the program, equally spaced; return the program's seconds a period."""
    n_periods, mechanism = len(load), optstream(tree)
    features = mechanism.features
    drawing, drawn = timed(lambda: draw(tree, load, secure_noise()))
    one_by_one, _ = timed(lambda: [mechanism.estimate(measured) for measured in drawn])
    batch = together(drawn)
    batched, series = fastest(lambda: make_consistent(batch, tree, features, bound_rule="joint"), 5)
    programs = range(0, n_periods, max(1, n_periods // n_programs))
    program, solved = timed(
        lambda: [naive_program(drawn[number], tree, features, "variance")[0] for number in programs]
    )
    gap = max(np.abs(series[number] - x).max() / x.max() for number, x in zip(programs, solved, strict=True))
    alone, _ = timed(lambda: secure_noise().discrete_laplace(4e5, (13 * (10 + 5) * n_periods,)))
    rows = table(["what"], ["periods", "CPU seconds", "a period"])
    for name, periods, taken in (
        ("closed form, batch", n_periods, batched),
        ("closed form, one by one", n_periods, one_by_one),
        ("program as in the paper (cvxpy)", len(programs), program),
        ("measure, secure noise included", n_periods, drawing),
        ("of that, the noise alone", n_periods, alone),
    ):
        rows.add_row(name, str(periods), f"{taken.processor:.4f}", in_words(taken.processor / periods))
    each = program.processor / len(programs)
    ratio = each / (batched.processor / n_periods)
    show(rows, f"batch over program: {ratio:,.0f} times faster; largest relative difference {gap:.1e}\n")
    return each


def show_years(loads: dict[str, tuple[AggregationTree, Values]], program: float) -> None:
    """Print a year day by day with each sampler; program: seconds a period of the paper's."""
    names = ("measure", "closed form", "estimate", "bounded", "besides noise", "noise", "samples")
    rows = table(["load", "points", "days"], names)
    for load, (tree, values) in loads.items():
        for sampling, l1 in SAMPLINGS.items():
            a_year(l1, tree, values[:3])  # imports and caches
            year = a_year(l1, tree, values)
            rows.add_row(
                load, sampling, str(len(values)), f"{year.measure:.2f}", f"{year.closed_form:.2f}",
                f"{year.estimate:.2f}", str(year.to_solver), f"{year.besides_noise:.2f}", f"{year.noise:.2f}",
                f"{year.samples:,}",
            )  # fmt: skip
    n_days = len(next(iter(loads.values()))[1])
    show(
        rows,
        "CPU seconds; besides noise = measure + estimate, which is the closed form, and the bounded program "
        "where that is below 0; the program as in the paper would take "
        f"{program * n_days:,.1f} s for the estimates\n",
    )


def show_noise(scale: float = 4e5, n_samples: int = 100_000) -> None:
    """Print samples a second, in one batch; the best of five."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    opendp_noise = dp.m.make_laplace(*integers, scale=scale)
    generator, size = np.random.default_rng(SEED), (n_samples,)
    rows = table(["noise"], ["samples a second", "a sample"])
    for name, work in {
        "secure noise (exact)": lambda: secure_noise().discrete_laplace(scale, size),
        "OpenDP (exact)": lambda: opendp_noise([0] * n_samples),
        "simulated noise (two geometric draws)": lambda: simulated_noise(SEED).discrete_laplace(scale, size),
        "numpy's laplace (floats)": lambda: generator.laplace(0.0, scale, size),
    }.items():
        seconds = fastest(work, 5)[0].processor
        rows.add_row(name, f"{n_samples / seconds:,.0f}", f"{seconds / n_samples * 1e6:.3f} µs")
    show(rows)


def together(drawn: Sequence[Measured]) -> Measured:
    """Return periods with the same plan as one batch. Their noisy numbers are public already."""
    first = drawn[0]
    assert first.point_variances is not None
    assert first.answers.variances is not None
    unit, steps = float(first.resolution), np.arange(first.n_steps)
    series = [[np.interp(steps, first.positions, row) for row in measured.point_values] for measured in drawn]
    sums = [np.array(same) for same in zip(*(measured.feature_sums for measured in drawn), strict=True)]
    variances = [first.point_variances * unit**2, *(entry * unit**2 for entry in first.answers.variances)]
    return Measured.from_public(np.array(series), sums, variances, first.positions)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__, data=False)
    options.add_argument("--periods", type=int, default=366, help="periods in the batch (default: 366)")
    options.add_argument("--programs", type=int, default=20, help="programs solved as the peer (default: 20)")
    given = options.parse_args(arguments)
    tree = french_tree()
    load = 4500 + 500 * np.random.default_rng(SEED).standard_normal((given.periods, 12, STEPS))
    loads = {"made up": (tree, load)}
    if given.data:
        _, real = load_of_days(given.data, date(2016, 1, 1), 366)
        loads["2016"] = (tree, real[: given.periods])
    show_years(loads, show_batch(tree, load, given.programs))
    show_noise()


if __name__ == "__main__":
    command(main)
