"""Shows whether HistoryInformed's plans rank as they are expected to: their errors, found and expected.

    python -m studies.benchmarks.history.plans --data FOLDER [--noise 0.002 0.02] [--days 35] [--trials 1]
        [--streams N]

Ten streams, each of mean 1,000: the French load in five months of 2016, the taxi trips of New York's boroughs
by the hour, and four that are simulated: a shape of the day, the same with weekends, a random walk, steps.
noise: alpha / (epsilon * 1,000). Half of the days teach, the others are judged. For each stream the rank
correlation of expected and found errors over plans (blocks x steps, Laplace or joint noise), and by how much
the plan that would be chosen misses more than the best. Noise is simulated, all streams are public.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from optstream import PrivacyModel
from optstream.estimation.gaussian_process.expected_error import expected_error
from optstream.mechanisms import HistoryInformed
from optstream.mechanisms.history_informed.block_choice import planned_blocks
from optstream.mechanisms.joint_groups import Noise
from optstream.noise import simulated_noise
from optstream.stream.public_days import PublicDays
from studies.benchmarks.harness.measure import command, parser, show, table, tracked
from studies.benchmarks.inputs.public_data import load_of_days
from studies.benchmarks.small_counts import read_trips

Values = NDArray[np.float64]
MEAN = 1000.0
FIRST = date(2016, 2, 1)
BLOCKS = ((2, 4), (4, 1), (4, 4), (6, 4), (8, 1), (8, 2), (16, 1), (24, 1))
"""Plans that are compared, those that fit a window, each with either noise."""
FEWEST_SHARED = 6
"""Blocks of a window that may share noise."""


def streams(folder: Path, n_days: int) -> Iterator[tuple[str, Values, int]]:
    """Yield ten streams, (n_series, n_steps) of mean 1,000 each, with their steps a day."""
    for month in (2, 4, 6, 8, 10):
        _, load = load_of_days(folder, date(2016, month, 1), n_days)
        yield f"load, month {month}", _scaled(np.concatenate(list(load), axis=1)), 48
    tree, trips = read_trips(folder, n_days)
    yield "taxi trips", _scaled(tree.add_up(trips)[tree.levels[1].start : tree.levels[1].stop]), 24
    for number, (name, shape) in enumerate(SIMULATED.items()):
        yield name, _scaled(shape(np.random.default_rng(number), np.arange(48 * n_days))), 48


def _scaled(values: Values) -> Values:
    return np.asarray(values * MEAN / values.mean(axis=1, keepdims=True))


def _day(generator: np.random.Generator, steps: NDArray[np.int64]) -> Values:
    drift = np.cumsum(generator.normal(0, 0.002, (6, steps.size)), axis=1)
    return np.asarray((1 + 0.25 * np.sin(steps * np.pi / 24)) * np.exp(drift))


def _week(generator: np.random.Generator, steps: NDArray[np.int64]) -> Values:
    return np.asarray(_day(generator, steps) * np.where(steps // 48 % 7 > 4, 0.8, 1.0))


def _walk(generator: np.random.Generator, steps: NDArray[np.int64]) -> Values:
    return np.asarray(np.exp(np.cumsum(generator.normal(0, 0.01, (6, steps.size)), axis=1)))


def _levels(generator: np.random.Generator, steps: NDArray[np.int64]) -> Values:
    jumps = generator.normal(0, 0.3, (6, steps.size)) * (generator.random((6, steps.size)) < 1 / 48)
    return np.asarray(np.exp(np.clip(np.cumsum(jumps, axis=1), -1, 1)))


SIMULATED: dict[str, Callable[[np.random.Generator, NDArray[np.int64]], Values]] = {
    "simulated, days": _day,
    "simulated, weeks": _week,
    "simulated, walk": _walk,
    "simulated, levels": _levels,
}


def plans(noise: float, slots: int, n_series: int) -> Iterator[tuple[HistoryInformed, float]]:
    """Yield plans, and the error that is expected of each."""
    model = PrivacyModel("1", slots, str(noise * MEAN), "0.01")
    days = PublicDays.from_date(FIRST, slots)
    given: dict[str, Any] = {"period_lengths": (slots,), "n_nodes": n_series, "declared_leaves": 1}
    kinds: tuple[Noise, ...] = ("laplace", "joint")
    for blocks, kind in product(BLOCKS, kinds):
        if blocks[0] * blocks[1] > slots or (kind == "joint" and blocks[0] < FEWEST_SHARED):
            continue
        plan = HistoryInformed(model, *blocks, scale=MEAN, days=days, noise=kind, **given)
        (planned,) = plan.figures.noises(blocks, (1.0,))
        yield plan, MEAN * expected_error(planned_blocks(plan.figures, *blocks), planned)


def found_error(plan: HistoryInformed, values: Values, slots: int, trial: int) -> float:
    """Return the root mean square error of the second half of the days."""
    state, missed = None, []
    for number, at in enumerate(range(0, values.shape[1], slots)):
        day = values[:, at : at + slots]
        released = plan.release(day, noise=simulated_noise([trial, number]), first_step=at, state=state)
        state = released.state
        missed.append(float(((released.values - day) ** 2).mean()))
    return float(np.sqrt(np.mean(missed[len(missed) // 2 :])))


def ranked(
    plans: Sequence[str], expected: Sequence[float], found: Sequence[float]
) -> tuple[float, str, str, str, str]:
    """Return the rank correlation of expected and found errors; then as texts the plan that is chosen, the
    best one, the correlation, and by how much the first misses more.
    """
    chosen, best = int(np.argmin(expected)), int(np.argmin(found))
    rank = float(spearmanr(expected, found).statistic)
    return rank, plans[chosen], plans[best], f"{rank:.2f}", f"{found[chosen] / found[best] - 1:+.1%}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every stream and plan, and print."""
    options = parser(__doc__, data=True, noise=[0.002, 0.02], days=35, trials=1, streams=10)
    given = options.parse_args(arguments)
    rows = table(["noise", "stream", "chosen", "best"], ["rank correlation", "chosen beside best"])
    known = list(streams(given.data, given.days))[: given.streams]
    for noise in given.noise:
        correlations = []
        for name, values, slots in tracked(known):
            pairs = list(plans(noise, slots, len(values)))
            expected = [error for _, error in pairs]
            found = [
                float(np.mean([found_error(plan, values, slots, trial) for trial in range(given.trials)]))
                for plan, _ in pairs
            ]
            words = [f"{plan.n_blocks} x {plan.block_length}, {plan.noise}" for plan, _ in pairs]
            rank, *cells = ranked(words, expected, found)
            correlations.append(rank)
            rows.add_row(f"{noise}", name, *cells)
        rows.add_row(f"{noise}", "mean", "", "", f"{np.mean(correlations):.2f}", "")
    show(rows)


if __name__ == "__main__":
    command(main)
