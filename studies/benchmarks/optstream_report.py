"""Reruns what OptStream's two texts show and experiments 1 to 8 of docs/evaluation.md do not.

    python -m studies.benchmarks.optstream_report --data FOLDER [--trials 30] [--seed 2016]

Table 2 against the public series; January 2016 of Auvergne-Rhone-Alpes (figures 2, 7, 10 and 12, pictures in
the texts) in numbers; the forecast of 2 February (figure 5); how near the greedy points of Algorithm 3 come
to those with the least error (equation 4), without noise; and the time of the optimisation by length of the
period and number of features (Theorem 10). Figure numbers are the second version's. "Strict" costs epsilon
in any window, "paper" takes the texts' scales; the column "epsilon" is what the accountant says of what was
drawn. Noise is simulated; the series is public.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import product

import numpy as np

from optstream import Feature, PrivacyModel, simulated_noise
from optstream.measurement import EquallySpaced, L1Sampling
from optstream.mechanisms import OptStream
from optstream.mechanisms.base import Mechanism
from optstream.noise import NoiseSource
from optstream.stream import AggregationTree
from studies.benchmarks.harness.measure import command, fastest, in_words, parser, show, table
from studies.evaluation.build import on_series
from studies.evaluation.data import STEPS_PER_DAY, Values
from studies.evaluation.experiments import EPSILONS, POINTS_ONLY, Calibration, Point, both, cell_of
from studies.evaluation.metrics import LEARNED_DAYS, forecast
from studies.evaluation.paper_scales import PaperOptStream
from studies.evaluation.releases import Released, release_days
from studies.papers.data import FORECAST_REGION, LOAD, read_load

TABLE_2 = {
    "84": 7717.58, "53": 2554.23, "27": 2498.23, "24": 2157.97, "44": 5286.24, "32": 5832.26,
    "11": 8315.13, "75": 4985.68, "28": 3267.22, "76": 4314.70, "52": 3174.17, "93": 4782.40,
}  # fmt: skip
"""Mean load by region's code, MW, as printed."""
FIRST, JANUARY = date(2016, 1, 1), 31
FORECAST_DAY = 32
"""2 February, from the first of January."""
POINTS, THRESHOLD = 10, "1000"
NO_NOISE = "1000000"
"""An epsilon by which noise is far below a MW."""
SCALES: tuple[Calibration, ...] = ("strict", "paper")
FOUR = ("Laplace", "DFT", "OptStream ES", "OptStream L1")
L1_ONLY = "OptStream L1, no optimisation"
Row = tuple[str, str, Calibration, Point]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = parser(__doc__, data=True, seed=2016)
    options.add_argument("--trials", type=int, default=30, help="of each row (default: 30)")
    given = options.parse_args(arguments)
    regions, load = read_load(given.data / LOAD, FIRST, date(2016, 12, 31))
    means = table(["region"], ["Table 2, MW", "public series, MW", "difference"])
    for name, printed, found in table_2(regions, load):
        means.add_row(name, f"{printed:,.2f}", f"{found:,.2f}", f"{found / printed - 1:+.2%}")
    show(means)
    region = load[:, regions.index(FORECAST_REGION)][:, None]
    january = table(
        ["figure", "what", "scales"], ["epsilon", "MW a step ± s.e.", "99 % below", "correlation"]
    )
    for row in january_rows():
        figure, name, calibration, point = row
        errors, high, likeness, epsilon = in_january(row, region, given.trials, given.seed)
        what = f"{name}, ε = {point.epsilon}, α = {point.alpha}, k = {point.n_samples}, θ = {point.threshold}"
        mean, spread = errors.mean(), errors.std() / errors.size**0.5
        january.add_row(
            figure, what, calibration, f"{epsilon:.3g}", f"{mean:,.4g} ± {spread:.2g}", f"{high:,.4g}",
            f"{likeness:.3f}",
        )  # fmt: skip
    show(january, f"{given.trials} trials")
    ahead = table(
        ["figure 5: 2 February, ε = 0.1", "scales"], ["from the real day, MW", "from real data's, MW"]
    )
    for name, scales, error, distance in forecasts(region, given.trials, given.seed):
        ahead.add_row(name, scales, f"{error:,.4g}", f"{distance:,.4g}")
    show(ahead)
    spacing = table(["points, no noise, whole year"], ["MW a step"])
    for name, error in points_without_noise(region, given.seed):
        spacing.add_row(name, f"{error:.4g}")
    show(spacing)
    times = table(["optimisation of a period, 13 nodes"], ["steps", "features", "CPU time"])
    for n_steps, n_features in product((24, 48, 96, 192, 384), (1, 2, 4)):
        times.add_row("", str(n_steps), str(n_features), in_words(optimisation_seconds(n_steps, n_features)))
    show(times)


def table_2(regions: Sequence[str], load: Values) -> Iterator[tuple[str, float, float]]:
    """Yield each region, and the nation, with the printed mean and that of a year of load."""
    means = dict(zip(regions, load.mean(axis=(0, 2)).tolist(), strict=True))
    for region, printed in TABLE_2.items():
        yield region, printed, means[region]
    yield "nation", sum(TABLE_2.values()), sum(means.values())


def scaled(*names: str) -> Iterator[tuple[str, Calibration]]:
    """Yield each name with each of the noise scales that it has."""
    for name, scales in both(*names):
        if scales != "none":
            yield name, scales


def january_rows() -> list[Row]:
    """Return figure, mechanism, scales and parameters of every row."""
    rows: list[Row] = []
    for epsilon, (name, scales) in product(EPSILONS, scaled(*FOUR)):
        rows += [("2", name, scales, Point(epsilon))]
    for epsilon, scales in product(("0.1", "0.01"), SCALES):
        for name in ("OptStream, every step", POINTS_ONLY, L1_ONLY):
            if name != POINTS_ONLY or scales == "strict":
                rows += [("7", name, scales, Point(epsilon))]
    for (alpha, k), (name, scales) in product((("10", 10), ("50", 10), ("100", 5)), scaled(*FOUR)):
        rows += [("10", name, scales, Point("1", alpha, k))]
    for name, scales in scaled("PeGaSus"):
        rows += [("12, caption", name, scales, Point(epsilon)) for epsilon in EPSILONS]
        rows += [("12, text", name, scales, Point("1", alpha)) for alpha in ("10", "50", "100")]
    mean = TABLE_2[FORECAST_REGION]
    for epsilon, k in product(EPSILONS, (5, 10, 20)):
        for threshold in (THRESHOLD, f"{mean / k:.0f}"):
            rows += [("6.2, θ", "OptStream L1", "strict", Point(epsilon, "1", k, threshold))]
    return rows


def mechanism_of(name: str, calibration: Calibration, point: Point) -> Mechanism:
    """Return a mechanism for one region's days."""
    if name == L1_ONLY:
        assert point.n_samples is not None
        assert point.threshold is not None
        made = PaperOptStream if calibration == "paper" else OptStream
        return made(
            PrivacyModel(point.epsilon, STEPS_PER_DAY, point.alpha),
            AggregationTree.from_parents({FORECAST_REGION: None}),
            sampling=L1Sampling(point.n_samples, point.threshold), features=[], level_shares=["1"],
            lower_bound=None, post_processing=False,
        )  # fmt: skip
    return on_series(cell_of("regions", name, calibration, point, "2016", (0, 1)), [FORECAST_REGION])


def in_january(row: Row, region: Values, trials: int, seed: int) -> tuple[Values, float, float, float]:
    """Return the mean error of each trial, the error that 99 % of steps keep below, the correlation with the
    real month, and the worst window's epsilon.
    """
    _, name, calibration, point = row
    mechanism, truth = mechanism_of(name, calibration, point), region[:JANUARY]
    errors, highs, likeness, worst = np.empty(trials), np.empty(trials), np.empty(trials), 0.0
    for trial in range(trials):
        noise = simulated_noise([seed, trial])
        released = _days(mechanism, truth, noise, accounted=not trial)
        worst = worst or float(released.drawn or 0)
        missed = np.abs(released.values - truth)
        errors[trial], highs[trial] = missed.mean(), np.percentile(missed, 99)
        likeness[trial] = np.corrcoef(released.values.ravel(), truth.ravel())[0, 1]
    return errors, float(highs.mean()), float(likeness.mean()), worst


def _days(mechanism: Mechanism, truth: Values, noise: NoiseSource, *, accounted: bool = False) -> Released:
    """Return what is released of days, raised to 0."""
    released = release_days(mechanism, truth, 0, noise, accounted=accounted)
    return replace(released, values=np.maximum(released.values[:, -1:], 0.0))


def forecasts(region: Values, trials: int, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield how far forecasts of 2 February lie from that day, and from the forecast by real data."""
    past, day = region[FORECAST_DAY - LEARNED_DAYS : FORECAST_DAY], region[FORECAST_DAY].ravel()
    real = forecast(past.ravel(), STEPS_PER_DAY).values
    yield "real data", "none", float(np.abs(real - day).mean()), 0.0
    for name, calibration in scaled(*FOUR):
        mechanism = mechanism_of(name, calibration, Point("0.1"))
        found = np.array(
            [
                forecast(_days(mechanism, past, simulated_noise([seed, trial])).values.ravel(), STEPS_PER_DAY)
                .values
                for trial in range(trials)
            ]
        )  # fmt: skip
        yield name, calibration, float(np.abs(found - day).mean()), float(np.abs(found - real).mean())


def points_without_noise(region: Values, seed: int) -> Iterator[tuple[str, float]]:
    """Yield the error of lines through k points: equally spaced, greedy by threshold, and the best ones."""
    names: list[tuple[str, str, Calibration, str]] = [("equally spaced", POINTS_ONLY, "strict", THRESHOLD)]
    for scales, one in product(SCALES, ("500", "1000", "2000", "5000", "10000")):
        rule = "ours" if scales == "strict" else "with forced last points"
        names += [(f"Algorithm 3, {rule}, θ = {one}", L1_ONLY, scales, one)]
    for shown, name, scales, threshold in names:
        mechanism = mechanism_of(name, scales, Point(NO_NOISE, "1", POINTS, threshold))
        released = _days(mechanism, region, simulated_noise(seed)).values
        yield shown, float(np.abs(released - region).mean())
    yield "the best, equation 4", float(np.mean([least_error(day[0], POINTS) for day in region]))


def least_error(day: Values, n_points: int) -> float:
    """Return the mean error of the best line through so many of a day's points, held at both ends.

    By dynamic programming over the last point: exact.
    """
    n = day.size
    between = np.full((n, n), np.inf)
    for first in range(n):
        for last in range(first + 1, n):
            line = np.interp(np.arange(first, last), [first, last], day[[first, last]])
            between[first, last] = np.abs(day[first:last] - line).sum()
    until = np.array([np.abs(day[:first] - day[first]).sum() for first in range(n)])
    held = np.array([np.abs(day[last:] - day[last]).sum() for last in range(n)])
    best = float((until + held).min())
    for _ in range(n_points - 1):
        until = (until[:, None] + between).min(axis=0)
        best = min(best, float((until + held).min()))
    return best / n


def optimisation_seconds(n_steps: int, n_features: int) -> float:
    """Return CPU seconds of Algorithm 4 for a nation of twelve regions, the least of five days."""
    regions: dict[str, str | None] = dict.fromkeys(TABLE_2, "nation")
    tree = AggregationTree.from_parents({"nation": None, **regions})
    halves = [np.linspace(0, n_steps, 2**number + 1).astype(int).tolist() for number in range(n_features)]
    features = [
        Feature(tuple(map(range, edges[:-1], edges[1:])), f"feature {number}")
        for number, edges in enumerate(halves)
    ]
    mechanism = OptStream(
        PrivacyModel("1", n_steps, "10"), tree, sampling=EquallySpaced(n_steps // 4), features=features,
        level_shares=["1/2", "1/2"], weights="paper",
    )  # fmt: skip
    day = 500 * (2 + np.sin(2 * np.pi * np.arange(n_steps) / n_steps)) * np.ones((len(regions), 1))
    measured = mechanism.measure(np.round(day), noise=simulated_noise(0), first_step=0)
    return fastest(lambda: mechanism.estimate(measured), 5)[0].processor


if __name__ == "__main__":
    command(main)
