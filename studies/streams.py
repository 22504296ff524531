"""Releases streams of many kinds by default plans: is the estimate better than a simple one, do bands hold?

load: French regions in 2016. The others are made up: solar (nights of 0), peaks (two sensors of a commuters'
path), people (counts that vary more than Poisson's), trips (most zones nearly empty), homes (50 metered
households on ten feeders), cases (counts a day, a window of a week). HistoryInformed, the shares and blocks
that the public figures propose, joint noise where it errs less, a customer in one leaf a day; the second half
of 42 days (cases: of 84), each estimated in its own night.

By level: mean absolute error, and that of Laplace noise at every step (shares and bound as ours), of zeros
and of noisy totals a day (their mean over 28 days, not below 0, spread evenly); the error of a node's mean
over all these days, and that of noisy totals of the same days; the bias in percent of the mean; how many true
values the bands of 95 % hold, for the worst and the best quarter of the day, smallest and largest third of
the nodes, and all; and root mean square errors, expected once learned over found. --follow: after two
weeks the blocks are those that `optstream advise` proposes from that.
All streams are public or made up, so errors may be printed. Noise is simulated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.rounding import rounded_units
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.stream import AggregationTree, State
from optstream.stream.public_days import PublicDays
from studies.benchmarks.measure import Data, show, table, timed, tracked
from studies.evaluation.series import LOAD, read_load

Values = NDArray[np.float64]
FIRST, DAYS, PAST, FOLLOWED = date(2016, 1, 4), 42, 28, 15
BAND = 1.96
"""Standard errors: half of a band of 95 %."""


@dataclass(frozen=True)
class Stream:
    """A stream. values: (n_days, n_leaves, n_steps). variation: as of `HistoryInformed`."""

    tree: AggregationTree
    values: Values
    alpha: str
    scale: float
    resolution: str = "0.001"
    window: int | None = None
    variation: float | None = None


def tree_of(n_parents: int, n_each: int = 0) -> AggregationTree:
    """Return a root, nodes below it, and leaves below each of these."""
    parents: dict[str, str | None] = {"root": None} | {f"{n:02}": "root" for n in range(n_parents)}
    below = {f"{n:02}-{leaf:02}": f"{n:02}" for n in range(n_parents) for leaf in range(n_each)}
    return AggregationTree.from_parents(parents | below)


def days_of(random: np.random.Generator, n_leaves: int, spread: float, n_days: int = DAYS) -> Values:
    """Return relative sizes of leaves on each day, (n_days, n_leaves, 1): a week, and all days differ."""
    week = np.where(np.arange(n_days) % 7 >= 5, 0.7, 1.1)[:, None]
    sizes = np.exp(random.normal(0, spread, n_leaves))
    every = np.exp(random.normal(0, 0.1, (n_days, 1)) + random.normal(0, 0.1, (n_days, n_leaves)))
    return np.asarray((sizes / sizes.mean() * week * every)[:, :, None])


def bumps(n_steps: int, *peaks: tuple[float, float, float], base: float = 0.1) -> Values:
    """Return a day's shape of mean 1, from peaks: hour, width in hours, height."""
    hours = np.arange(n_steps) * 24 / n_steps
    each = [height * np.exp(-(((hours - at) / width) ** 2)) for at, width, height in peaks]
    shape = base + np.sum(each, axis=0)
    return np.asarray(shape / shape.mean())


def varied(random: np.random.Generator, means: Values, strength: float) -> Values:
    """Return counts of these means: variance mean + mean^2 / strength."""
    return random.poisson(means * random.gamma(strength, 1 / strength, means.shape)).astype(np.float64)


def load(random: np.random.Generator, folder: Path) -> Stream:
    """Return the regions' load, MW."""
    names, values = read_load(folder / LOAD, FIRST, FIRST + timedelta(days=DAYS - 1))
    return Stream(AggregationTree.from_parents({"FR": None, **dict.fromkeys(names, "FR")}), values, "10", 4e3)


def solar(random: np.random.Generator, folder: Path) -> Stream:
    """Return solar power of 12 regions, MW: clouds of a day and of hours."""
    sky = np.clip(np.sin((np.arange(48) - 15) * np.pi / 20), 0, None) * (np.arange(48) < 36)
    clouds = random.beta(3, 2, (DAYS, 1, 1)) + random.normal(0, 0.15, (DAYS, 12, 1))
    moved = np.cumsum(random.normal(0, 0.04, (DAYS, 12, 48)), axis=2)
    sizes = 1000 * np.exp(random.normal(0, 0.6, (12, 1)))
    return Stream(tree_of(12), sizes * sky * np.clip(clouds + moved, 0.05, 1), "10", 200.0)


def peaks(random: np.random.Generator, folder: Path) -> Stream:
    """Return two sensors' counts on a path of commuters, 150 an hour."""
    shape = bumps(24, (8, 0.8, 2.0), (17, 1.2, 1.6), (13, 3, 0.3), base=0.04)
    return Stream(tree_of(2), varied(random, 150 * days_of(random, 2, 0.1) * shape, 300), "1", 150.0, "1")


def people(random: np.random.Generator, folder: Path) -> Stream:
    """Return counts of people who pass 12 places, 60 an hour."""
    shape = bumps(24, (8.5, 2, 0.8), (13, 2.5, 1), (17.5, 2, 1.2))
    return Stream(tree_of(4, 3), varied(random, 60 * days_of(random, 12, 0.8) * shape, 6), "1", 60.0, "1")


def trips(random: np.random.Generator, folder: Path) -> Stream:
    """Return trips from 60 zones of 4 boroughs, most of them rare."""
    shape = bumps(24, (9, 2, 0.8), (18, 3, 1.2))
    values = varied(random, 0.3 * days_of(random, 60, 2) * shape, 10)
    return Stream(tree_of(4, 15), values, "1", 0.3, "1")


def homes(random: np.random.Generator, folder: Path) -> Stream:
    """Return ten feeders' power, kW, of five homes each."""
    shape = bumps(48, (7.5, 1, 0.7), (19, 2, 1.2), base=0.4)
    means = 0.5 * days_of(random, 50, 0.4) * shape
    each = means * random.gamma(1.5, 1 / 1.5, (DAYS, 50, 48))
    values = np.minimum(each, 6).reshape(DAYS, 10, 5, 48).sum(axis=2)
    return Stream(tree_of(10), values, "6", 2.5, variation=6 / 8)  # that of metered customers


def cases(random: np.random.Generator, folder: Path) -> Stream:
    """Return daily cases of 12 regions in waves, 200 a day; a window is a week."""
    wave = np.exp(0.6 * np.sin(np.arange(2 * DAYS) / 12))[:, None, None]
    values = varied(random, 200 * wave * days_of(random, 12, 0.6, 2 * DAYS), 30)
    return Stream(tree_of(12), values, "1", 200.0, "1", 7)


Make = Callable[[np.random.Generator, Path], Stream]
KINDS: dict[str, tuple[Make, str]] = {
    "load": (load, "1"),
    "load-0.1": (load, "0.1"),
    "load-0.01": (load, "0.01"),
    "solar": (solar, "1"),
    "peaks": (peaks, "1"),
    "people": (people, "1"),
    "trips": (trips, "1"),
    "trips-0.1": (trips, "0.1"),
    "homes": (homes, "1"),
    "cases": (cases, "1"),
}
ALL = list(KINDS)


def plan(stream: Stream, epsilon: str) -> tuple[HistoryInformedTree, Hierarchical]:
    """Return the default plan, and Laplace noise at every step under its shares."""
    n_steps = stream.values.shape[2]
    window = stream.window or n_steps
    model = PrivacyModel(epsilon, window, stream.alpha, stream.resolution)
    pattern = HistoryInformed(
        model, scale=stream.scale, days=PublicDays.from_date(FIRST, n_steps), counts=stream.resolution == "1",
        period_lengths=(n_steps,), declared_leaves=1, variation=stream.variation,
    )  # fmt: skip
    tree = HistoryInformedTree(pattern, stream.tree, "model")
    every = Laplace(model, noise="laplace")
    return tree, Hierarchical(every, stream.tree, tree.level_shares, 0.0)


def advised(mechanism: HistoryInformedTree, state: State | None) -> HistoryInformedTree:
    """Return the mechanism with the blocks that its learned prior chooses."""
    blocks: Any = mechanism.with_learned(state, keeps_blocks=False).common_blocks
    pattern = replace(mechanism.pattern, **blocks)
    return HistoryInformedTree(pattern, mechanism.tree, mechanism.level_shares, mechanism.lower_bound)


def released(
    stream: Stream,
    mechanism: HistoryInformedTree,
    laplace: Hierarchical,
    seed: int,
    n_days: int,
    follow: bool,
) -> tuple[Values, ...]:
    """Return truth, estimates, both edges of bands, and the rivals, of the second half of the days.

    (n_days, n_nodes, n_steps) each; then the means over these days of truth, estimates and noisy
    totals, and the errors of levels that the learned prior expects.
    """
    found, state, tree, n_steps = [], None, stream.tree, stream.values.shape[2]
    random = np.random.default_rng([seed, 1])
    truth = np.stack([tree.add_up(day) for day in stream.values[:n_days]])
    share = np.array([float(one) for one in mechanism.level_shares])[tree.depths]
    model = mechanism.pattern.model
    scale = model.window_length * float(model.alpha / model.epsilon) / np.where(share, share, share.max())
    totals = truth.sum(axis=2) + random.laplace(size=truth.shape[:2]) * scale
    for day in range(n_days):
        if follow and day == FOLLOWED:
            mechanism = advised(mechanism, state)
        noise, first = simulated_noise([seed, day]), day * n_steps
        measured = mechanism.measure(stream.values[day], noise=noise, first_step=first, state=state)
        state = measured.state
        if day < n_days // 2:
            continue
        release = mechanism.estimate(measured)
        resolution = Fraction(stream.resolution)
        units = rounded_units(release.values, tree, resolution, first_step=first, least=0)
        values, errors = units * float(resolution), release.standard_errors
        assert errors is not None
        low, high = release.bands or (values - BAND * errors, values + BAND * errors)
        plain = laplace.release(stream.values[day], noise=simulated_noise([seed, day, 1]), first_step=first)
        past = totals[max(day - PAST, 0) : day].mean(axis=0)[:, None] / n_steps
        even = np.broadcast_to(np.maximum(past, 0), values.shape)
        found.append((truth[day], values, low, high, plain.values, np.zeros_like(values), even))
    # of the mean over all these days
    mean = np.maximum(totals[n_days // 2 :].mean(axis=0), 0) / n_steps
    means = [np.mean([one[place] for one in found], axis=(0, 2)) for place in (0, 1)] + [mean]
    expected = mechanism.with_learned(state, keeps_blocks=True).expected_by_level()[None, :, 0]
    return (*(np.stack(one) for one in zip(*found, strict=True)), np.array(means)[None], expected)


def all_of(run: Callable[..., tuple[Values, ...]], streams: Sequence[Stream]) -> list[tuple[Values, ...]]:
    """Return what each draw of a stream gives."""
    return [run(one, seed=seed) for seed, one in enumerate(streams)]


def rows(stream: Stream, parts: tuple[Values, ...]) -> list[list[str]]:
    """Return the figures of each level."""
    truth, values, low, high, *rivals, means, expected = parts
    slack = 0 if stream.resolution == "1" else 1e-9
    held = (truth >= low - slack) & (truth <= high + slack)
    found = []
    for depth, level in enumerate(stream.tree.levels):
        at = slice(level.start, level.stop)
        missed, size = values[:, at] - truth[:, at], truth[:, at].mean()
        by_hour = [part.mean() for part in np.array_split(held[:, at], 4, axis=2) if part.size]
        nodes = np.argsort(truth[:, at].mean(axis=(0, 2)))
        thirds = [held[:, at][:, one].mean() for one in np.array_split(nodes, 3) if one.size]
        errors = [np.abs(missed).mean(), *(np.abs(one[:, at] - truth[:, at]).mean() for one in rivals)]
        errors += [np.abs(means[:, place, at] - means[:, 0, at]).mean() for place in (1, 2)]
        bands = [min(by_hour), max(by_hour), thirds[0], thirds[-1], held[:, at].mean()]
        found.append(
            [f"{size:.4g}", *(f"{one:.3g}" for one in errors), f"{100 * missed.mean() / size:+.1f}"]
            + [f"{100 * one:.0f}" for one in bands]
            + [f"{expected[:, depth].mean() / np.sqrt((missed**2).mean()):.2f}"]
        )
    return found


COLUMNS = (
    "mean", "error", "Laplace", "zeros", "totals", "of means", "totals", "bias %",
    "hours", "to", "small", "large", "all %", "exp/found",
)  # fmt: skip


def main(
    data: Data,
    kinds: Annotated[list[str], typer.Option("--stream", help="May be repeated.")] = ALL,
    draws: Annotated[int, typer.Option(min=1, help="Of stream and noise.")] = 3,
    days: Annotated[int, typer.Option(min=2, help="At most so many days.")] = 2 * DAYS,
    follow: Annotated[bool, typer.Option(help="Take the blocks that are proposed after two weeks.")] = False,
) -> None:
    """Release the streams and print the table."""
    found, notes = table(["stream", "level"], COLUMNS), []
    for kind in tracked(kinds):
        if kind not in KINDS:
            raise typer.BadParameter(f"streams are {', '.join(KINDS)}; got {kind!r}")
        make, epsilon = KINDS[kind]
        streams = [make(np.random.default_rng([seed, 0]), data) for seed in range(draws)]
        mechanism, laplace = plan(streams[0], epsilon)
        n_days = min(len(streams[0].values), days)
        run = partial(released, mechanism=mechanism, laplace=laplace, n_days=n_days, follow=follow)
        taken, parts = timed(partial(all_of, run, streams))
        every = tuple(np.concatenate(one) for one in zip(*parts, strict=True))
        for level, figures in enumerate(rows(streams[0], every)):
            found.add_row(kind, str(level), *figures)
        groups = {level: own for level, own in mechanism.levels if isinstance(own, HistoryInformed)}
        blocks = ", ".join(
            f"{one.blocks.n_blocks} x {one.blocks.length} {'joint' if one.order_terms else 'Laplace'}"
            for one in groups.values()
        )
        shares = ", ".join(map(str, mechanism.level_shares))
        notes.append(f"{kind}: shares {shares}; blocks {blocks}; {taken.processor / draws:.0f} s a draw")
    show(found, *notes)
