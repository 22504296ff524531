"""Published days of half-hours, made without a night, as OptStream writes them."""

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from optstream import AggregationTree, PrivacyModel
from optstream.catalogue import (
    NoiseScale,
    ReleaseStatement,
    StagedRelease,
    StandardErrors,
    error_columns,
    publish,
    stage,
)
from optstream.stream import Calendar
from tasks.operate.simulate import FRENCH_REGIONS, daily_load, region_of, stable_hash

STEPS = 48
FRANCE = AggregationTree.from_parents({"FR": None, **dict.fromkeys(FRENCH_REGIONS, "FR")})
NOISE_MW = 300.0
AT_ONCE = 200


def lay_out_published(
    folder: Path | str,
    first: date,
    n_days: int,
    *,
    with_noise_column: bool = True,
    seed: int = 0,
    tree: AggregationTree | None = None,
) -> None:
    """Publish n_days without a night, by half-hours, of simulated load with normal noise."""
    tree, calendar = tree or FRANCE, Calendar(30, "Europe/Paris", "elapsed")
    days = [first + timedelta(days=number) for number in range(n_days)]
    at_once = max(1, AT_ONCE * 13 // len(tree.nodes))
    for start in range(0, n_days, at_once):
        some = days[start : start + at_once]
        releases = [_release(tree, calendar, day, with_noise_column, seed) for day in some]
        publish(folder, releases, lambda _: "simulated")


def _release(
    tree: AggregationTree, calendar: Calendar, day: date, with_noise_column: bool, seed: int
) -> tuple[StagedRelease, ReleaseStatement]:
    statement = statement_of(day, calendar.step_minutes, with_noise_column)
    rows = rows_of(tree, calendar, day, seed)
    return stage(rows if with_noise_column else rows.drop(error_columns("load_mw")), statement), statement


def statement_of(period: date, step_minutes: int = 30, with_noise_column: bool = True) -> ReleaseStatement:
    """Return what a period's release says of itself, as if OptStream had made it."""
    mechanism = {
        "name": "OptStream", "weights": "variance", "level_shares": ["1/3", "2/3"],
        "sampling": {"method": "equally_spaced", "n_samples": 10},
    }  # fmt: skip
    return ReleaseStatement(
        stream="simulated-load", period=period, revision=0, vintage=0,
        model=PrivacyModel("1", STEPS, 10), mechanism=mechanism, calibration="strict",
        epsilon_plan=Fraction(1), epsilon_own=Fraction(1),
        noise=tuple(
            NoiseScale(level=level, stage="samples", scale=Fraction(400), scale_units=Fraction(400_000))
            for level in (0, 1)
        ),
        simulated=False, code_version="0.1.0", configuration_hash="0" * 64, value_column="load_mw",
        step_minutes=step_minutes, time_zone="Europe/Paris", day="elapsed",
        standard_errors=StandardErrors(noise="all", posterior="none") if with_noise_column else None,
    )  # fmt: skip


def _loads(leaves: Sequence[str], calendar: Calendar, day: date, seed: int) -> NDArray[np.float64]:
    """Return a load of each leaf; other leaves take turns at a French region's, times their own number."""
    names = list(leaves if FRENCH_REGIONS.keys() >= set(leaves) else FRENCH_REGIONS)
    loads: NDArray[np.float64] = np.array(
        [daily_load(region_of(name), name, day, calendar, seed) for name in names]
    )
    if len(names) == len(leaves):
        return loads
    sizes = np.array([0.5 + stable_hash(leaf) / 2**32 for leaf in leaves], dtype=np.float64)
    spread: NDArray[np.float64] = loads[np.arange(len(leaves)) % len(names)] * sizes[:, np.newaxis]
    return spread


def rows_of(tree: AggregationTree, calendar: Calendar, day: date, seed: int) -> pl.DataFrame:
    """Return a day's rows as they are published, simulated."""
    leaves = _loads(tree.leaves, calendar, day, seed)
    noise = np.random.default_rng([seed, day.toordinal()]).normal(0.0, NOISE_MW, leaves.shape)
    noisy = np.round(np.maximum(leaves + noise, 0.0), 3)
    values = tree.add_up(np.asarray(noisy, dtype=np.float64))
    spread = np.sqrt(tree.add_up(np.full(leaves.shape, NOISE_MW**2, dtype=np.float64)))
    n_nodes, n_steps = values.shape
    of_node, of_step = np.repeat(np.arange(n_nodes), n_steps), np.tile(np.arange(n_steps), n_nodes)
    above = [tree.nodes[parent] if parent >= 0 else None for parent in tree.parents]
    stamps = pl.Series(calendar.utc_times(day), dtype=pl.Datetime("us", "UTC"))
    return pl.DataFrame(
        {
            "date": pl.repeat(day, values.size, dtype=pl.Date(), eager=True),
            "step": pl.Series(of_step, dtype=pl.Int32),
            "timestamp": stamps.gather(of_step),
            "node": pl.Series(tree.nodes).gather(of_node),
            "parent": pl.Series(above, dtype=pl.String).gather(of_node),
            "level": pl.Series(tree.depths[of_node], dtype=pl.Int32),
            "load_mw": values.ravel(),
            "load_mw_noise_se": spread.ravel(),
            "load_mw_se": pl.repeat(None, values.size, dtype=pl.Float64(), eager=True),
            "revision": pl.repeat(0, values.size, dtype=pl.Int32(), eager=True),
            "vintage": pl.repeat(0, values.size, dtype=pl.Int32(), eager=True),
        }
    )
