"""Measures how far published counts are from the truth: trips of a city by the hour, mostly zeros.

City, boroughs and zones of taxi_trips_nyc_hourly_2024.parquet, w = 24, alpha 1 trip, HistoryInformed with
`counts`; rounded as published, resolution 1, bound 0; every so many days after the first 28. Mean absolute
errors in trips an hour, the bias of values, of estimates to add up with its standard error over nodes, and
of the city, how many true counts the bands of 95 % held. For comparison: the errors of `Laplace` with the
same shares, of publishing 0 everywhere, and of a noisy sum a day and zone over 28 days times the city's true
shape. made-up: instead of the trips counters of people
in a city, 4 districts and 12 places with so many an hour at a typical one, made up. The trips are public, so
errors may be printed. Noise is simulated.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from numpy.typing import NDArray

from optstream import PrivacyModel, simulated_noise
from optstream.estimation.rounding import rounded_units
from optstream.mechanisms import Hierarchical, HistoryInformed, HistoryInformedTree, Laplace
from optstream.stream import AggregationTree
from optstream.stream.public_days import PublicDays
from studies.benchmarks.measure import Data, Seed, show, table, timed, tracked

FIRST, SLOTS, LEARNED_DAYS = date(2024, 1, 1), 24, 28
SHARES = ["1/3", "1/6", "1/2"]
KNOWN_TRIPS = 0.3
"""How many trips an hour a typical zone is taken to have: a round number, publicly known."""
EMPTY, BUSY = 0.02, 0.5
"""Trips an hour: a zone below the first is empty, one from the second on busy."""
Values = NDArray[np.float64]


def read_trips(folder: Path, n_days: int) -> tuple[AggregationTree, Values]:
    """Return city, boroughs and zones as a tree, and the zones' trips by the hour, (n_zones, n_hours)."""
    zones = pl.read_parquet(folder / "taxi_zones_nyc.parquet").sort("borough", "zone")
    trips = pl.read_parquet(folder / "taxi_trips_nyc_hourly_2024.parquet")
    parents = {"city": None} | {f"borough {name}": "city" for name in zones["borough"].unique().sort()}
    rows = zip(zones["zone"], zones["borough"], strict=True)
    parents |= {f"zone {zone}": f"borough {borough}" for zone, borough in rows}
    tree = AggregationTree.from_parents(parents)
    place = {name: number for number, name in enumerate(tree.leaves)}
    start = datetime.combine(FIRST, datetime.min.time())
    hours = ((trips["timestamp_local"] - start).dt.total_seconds() // 3600).to_numpy()
    inside = (hours >= 0) & (hours < n_days * SLOTS)
    values = np.zeros((len(place), n_days * SLOTS))
    of_zone = np.array([place[f"zone {zone}"] for zone in trips["zone"]])
    np.add.at(values, (of_zone[inside], hours[inside]), trips["trips"].to_numpy()[inside])
    return tree, values


def made_up_people(mean: float, n_days: int, seed: int) -> tuple[AggregationTree, Values]:
    """Return a city, its districts and places as a tree, and people who pass a place in an hour, (12,
    n_hours).
    """
    random = np.random.default_rng([seed, 1])
    parents = {"city": None} | {f"district {number}": "city" for number in range(4)}
    tree = AggregationTree.from_parents(
        parents | {f"place {number}": f"district {number // 3}" for number in range(12)}
    )
    hour = np.arange(SLOTS)
    peaks = ((8.5, 2.0, 0.8), (13.0, 2.5, 1.0), (17.5, 2.0, 1.2))
    shape = 0.15 + sum(height * np.exp(-(((hour - at) / width) ** 2)) for at, width, height in peaks)
    of_days = np.where(np.arange(n_days) % 7 >= 5, 0.7, 1.1) * np.exp(random.normal(0.0, 0.125, n_days))
    sizes = np.exp(random.normal(0.0, 0.8, (12, 1)))
    own = np.exp(random.normal(0.0, 0.1, (12, n_days)))
    rates = mean * (sizes / sizes.mean() * of_days * own)[:, :, None] * shape / shape.mean()
    return tree, random.poisson(rates.reshape(12, -1)).astype(np.float64)


def noise_alone(laplace: Hierarchical, trips: Values, days: Sequence[int], seed: int) -> Values:
    """Return the mean absolute errors of each node, (n_nodes,), where every hour is measured by itself."""
    missed = []
    for day in days:
        truth = trips[:, day * SLOTS : (day + 1) * SLOTS]
        found = laplace.release(truth, noise=simulated_noise([seed, day, 1]), first_step=day * SLOTS)
        missed.append(np.abs(found.values - laplace.tree.add_up(truth)).mean(axis=1))
    return np.asarray(np.mean(missed, axis=0))


def released(
    mechanism: HistoryInformedTree, trips: Values, every: int, seed: int
) -> Mapping[int, tuple[Values, Values, tuple[Values, Values]]]:
    """Release day after day; return values, estimates and bands of every so many days once learned."""
    found, state = {}, None
    days = range(trips.shape[1] // SLOTS)
    for day in tracked(days):
        noise, step = simulated_noise([seed, day]), day * SLOTS
        measured = mechanism.measure(trips[:, step : step + SLOTS], noise=noise, first_step=step, state=state)
        state = measured.state
        if day >= LEARNED_DAYS and (day - LEARNED_DAYS) % every == 0:
            release = mechanism.estimate(measured)
            assert release.bands is not None
            units = rounded_units(release.values, mechanism.tree, Fraction(1), first_step=step, least=0)
            found[day] = units.astype(np.float64), release.estimate, release.bands
    return found


def peer(tree: AggregationTree, trips: Values, days: Sequence[int], seed: int, epsilon: float) -> float:
    """Return the zones' error of a noisy sum a day and zone over 28 days times the city's true shape."""
    generator, missed = np.random.default_rng(seed), []
    for day in days:
        past = trips[:, (day - LEARNED_DAYS) * SLOTS : day * SLOTS].reshape(len(trips), LEARNED_DAYS, SLOTS)
        sums = past.sum(axis=2) + generator.laplace(size=past.shape[:2]) * SLOTS / epsilon
        shape = past.sum(axis=(0, 1)) / past.sum()
        published = np.rint(np.maximum(sums.mean(axis=1), 0.0)[:, None] * shape)
        missed.append(np.abs(published - trips[:, day * SLOTS : (day + 1) * SLOTS]).mean())
    return float(np.mean(missed))


def main(
    data: Data,
    seed: Seed = 11,
    every: Annotated[int, typer.Option(min=1, help="Look at one of so many days.")] = 4,
    days: Annotated[int, typer.Option(min=LEARNED_DAYS + 1, help="Of the release.")] = 121,
    epsilon: str = "1",
    shares: Annotated[list[str], typer.Option(help="Of the levels, root first; or `model`.")] = SHARES,
    made_up: Annotated[
        float | None, typer.Option(help="Made-up people instead: so many an hour at a typical place.")
    ] = None,
) -> None:
    """Release the days, compare with the truth and print."""
    if made_up is None:
        known, (tree, trips) = KNOWN_TRIPS, read_trips(data, days)
    else:
        known, (tree, trips) = made_up, made_up_people(made_up, days, seed)
    model = PrivacyModel(epsilon, SLOTS, 1, resolution=1)
    pattern = HistoryInformed(model, scale=known, days=PublicDays.from_date(FIRST, SLOTS), counts=True)
    mechanism = HistoryInformedTree(pattern, tree, "model" if shares == ["model"] else shares)
    taken, found = timed(lambda: released(mechanism, trips, every, seed))
    looked = sorted(found)
    truth = np.stack([tree.add_up(trips[:, day * SLOTS : (day + 1) * SLOTS]) for day in looked])
    values, estimates = (np.stack([found[day][kind] for day in looked]) for kind in (0, 1))
    low, high = (np.stack([found[day][2][side] for day in looked]) for side in (0, 1))
    held = ((truth >= low) & (truth <= high)).mean(axis=(0, 2))
    missed, size = np.abs(values - truth).mean(axis=(0, 2)), truth.mean(axis=(0, 2))
    zones = np.arange(len(tree.nodes)) >= tree.levels[-1].start
    groups = {
        "city": tree.depths == 0,
        "boroughs": tree.depths == 1,
        "zones": zones,
        "zones, empty": zones & (size < EMPTY),
        "zones, middling": zones & (size >= EMPTY) & (size < BUSY),
        "zones, busy": zones & (size >= BUSY),
    }
    laplace = Hierarchical(Laplace(model), tree, mechanism.level_shares, 0.0)
    alone = noise_alone(laplace, trips, looked, seed)
    headings = ["number", "an hour", "error", "Laplace", "0 everywhere", "peer", "bands hold %"]
    rows = table(["nodes"], [*headings, "bias", "bias of estimates", "its standard error"])
    for name, which in groups.items():
        rival = f"{peer(tree, trips, looked, seed, float(model.epsilon)):.3f}" if name == "zones" else ""
        if not which.any():
            continue
        off = (estimates - truth)[:, which].mean(axis=(0, 2))
        figures = [one[which].mean() for one in (size, missed, alone)] + [np.abs(truth[:, which]).mean()]
        rows.add_row(
            name, str(int(which.sum())), *(f"{one:.3f}" for one in figures), rival,
            f"{100 * held[which].mean():.1f}", f"{(values - truth)[:, which].mean():+.3f}",
            f"{off.mean():+.3f}", f"{off.std() / off.size**0.5:.3f}",
        )  # fmt: skip
    show(rows)
    bias = (values - truth)[:, 0].mean()
    levels = [own.blocks for _, own in mechanism.levels if isinstance(own, HistoryInformed)]
    blocks = ", ".join(f"{one.n_blocks} x {one.length}" for one in levels)
    show(
        f"bias of the city {bias:+.2f} trips, {100 * bias / size[0]:+.2f} %; "
        f"shares {', '.join(map(str, mechanism.level_shares))}; blocks by level {blocks}; "
        f"{len(looked)} days, seed {seed}; {taken.processor:.0f} s of processor for {days} nights"
    )
