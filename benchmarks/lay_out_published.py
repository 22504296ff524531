"""A published folder of many days, laid out without a night: simulated load and its noise, not a release.

For measuring what reads published folders. The files are as OptStream writes them; the figures are simulated
load with normal noise of the stated standard deviation, and nothing in them was anybody's.
"""

from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from optstream.catalogue import (
    NoiseScale,
    ReleaseStatement,
    StagedRelease,
    StandardErrors,
    error_columns,
    publish,
    stage,
)
from optstream.privacy import PrivacyModel
from optstream.stream import AggregationTree, Calendar
from tasks.load_shapes import FRENCH_REGIONS, daily_load, region_of

NOISE_MW = 300.0
AT_ONCE = 200
MECHANISM = {
    "name": "OptStream",
    "weights": "variance",
    "sampling": {"method": "equally_spaced", "n_samples": 10},
    "level_shares": ["1/3", "2/3"],
}


def french_tree() -> AggregationTree:
    """The nation and its twelve regions."""
    return AggregationTree.from_parents({"FR": None, **dict.fromkeys(FRENCH_REGIONS, "FR")})


def lay_out_published(
    folder: Path | str, first: date, n_days: int, *, with_noise_column: bool = True, seed: int = 0
) -> None:
    """Publish n_days from the first day on, 13 nodes by half-hours."""
    tree, calendar = french_tree(), Calendar(30, "Europe/Paris", "elapsed")
    days = [first + timedelta(days=number) for number in range(n_days)]
    for start in range(0, n_days, AT_ONCE):
        some = days[start : start + AT_ONCE]
        releases = [_release(tree, calendar, day, with_noise_column, seed) for day in some]
        publish(folder, releases, lambda _: "simulated")


def _release(
    tree: AggregationTree, calendar: Calendar, day: date, with_noise_column: bool, seed: int
) -> tuple[StagedRelease, ReleaseStatement]:
    statement = ReleaseStatement(
        stream="simulated-load", period=day, revision=0, vintage=0,
        model=PrivacyModel(epsilon="1", window_length=48, alpha=10), mechanism=MECHANISM,
        calibration="strict",
        epsilon_plan=Fraction(1), epsilon_own=Fraction(1),
        noise=tuple(NoiseScale(level, "samples", Fraction(400_000)) for level in (0, 1)),
        simulated=False, code_version="0.1.0", configuration_hash="0" * 64, value_column="load_mw",
        step_minutes=30, time_zone="Europe/Paris", day="elapsed",
        standard_errors=StandardErrors("all", "none") if with_noise_column else None,
    )  # fmt: skip
    rows = _rows(tree, calendar, day, seed)
    return stage(rows if with_noise_column else rows.drop(error_columns("load_mw")), statement), statement


def _rows(tree: AggregationTree, calendar: Calendar, day: date, seed: int) -> pl.DataFrame:
    stamps = calendar.utc_times(day)
    leaves = np.array([daily_load(region_of(leaf, None), leaf, day, calendar, seed) for leaf in tree.leaves])
    noise = np.random.default_rng([seed, day.toordinal()]).normal(0.0, NOISE_MW, leaves.shape)
    values = tree.add_up(np.round(np.maximum(leaves + noise, 0.0), 3))
    spread = tree.add_up(np.full(leaves.shape, NOISE_MW**2)) ** 0.5
    n_nodes, n_steps = values.shape
    of_node, of_step = np.repeat(np.arange(n_nodes), n_steps), np.tile(np.arange(n_steps), n_nodes)
    above = [tree.nodes[parent] if parent >= 0 else None for parent in tree.parents]
    return pl.DataFrame(
        {
            "date": pl.repeat(day, values.size, dtype=pl.Date(), eager=True),
            "step": pl.Series(of_step, dtype=pl.Int32),
            "timestamp": pl.Series(stamps, dtype=pl.Datetime("us", "UTC")).gather(of_step),
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
