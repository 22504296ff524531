"""How many of a region's readings were strange, by day: what a wrong unit or sign shows first.

It depends on readings, so it is for the trusted zone alone, and so is what a person decides by it: that a day
was withdrawn for it tells of readings too.
"""

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date

import polars as pl

from tasks.config import Settings
from tasks.contracts.results import RAW, newest_results

CLAMPED, ABSENT, DOUBLED = {"out_of_bounds", "infinite"}, {"absent"}, {"duplicates", "two_leaves"}
UNUSABLE = {"unknown_region", "no_timestamp", "outside_day", "off_grid", "no_customer"}
"""Metrics of the raw frame that count rows."""
LOUD = 0.5
"""The share of a region's readings from which on a run says so."""
MOST_NAMED = 12
"""Regions of a line or an alarm, and lines of a run."""


@dataclass(frozen=True)
class Suspect:
    """Shares in [0, 1] of one region's rows of a day.

    clamped: beyond the public bounds, or infinite. absent: null or NaN. doubled: repeated rows of one step,
    and of metered input rows of one customer that lie in several leaves at one step. unusable: metered rows
    without a step of the day, a leaf or a customer; 1 where a region has no row at all.
    """

    clamped: float
    absent: float
    doubled: float
    unusable: float = 0.0

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """What happened to readings, in a word, and to which share of them."""
        return tuple((field.name, getattr(self, field.name)) for field in fields(self))


def suspect_readings(settings: Settings, days: set[date]) -> dict[date, dict[str, Suspect]]:
    """By day, each region with rows, in the tree's order, by the newest validation result of that day.

    Days without one that can be read are left out. A region in another unit shows where it leaves the bounds:
    a thousandfold one and a negative one do, a thousandth does not.
    """
    found = {}
    for day, suite, document in newest_results(settings, days):
        if suite == RAW:
            with suppress(KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
                found[day] = _shares(pl.DataFrame(document["meta"]["metrics"], strict=False), day)
    return {day: regions for day, regions in found.items() if regions}


def loudest(settings: Settings, days: set[date]) -> list[str]:
    """Return a line for each day and each thing that happened to most readings of a region, for the trusted
    zone; of many days the first.
    """
    kept = settings.budget.restatement_share
    again = (
        f"deliver it again and run it with --restate (budget.restatement_share = {kept})"
        if kept
        else "withdraw it: budget.restatement_share is 0, so that no day is measured again"
    )
    found: defaultdict[tuple[date, str], list[str]] = defaultdict(list)
    for day, regions in sorted(suspect_readings(settings, days).items()):
        for region, one in regions.items():
            for name, share in one.shares:
                if share >= LOUD:
                    found[day, name].append(f"{settings.called(region)} ({share:.0%})")
    lines = [
        f"{day}: readings were {name} in {', '.join(regions[:MOST_NAMED])}"
        + (f" and {len(regions) - MOST_NAMED:,} more" if len(regions) > MOST_NAMED else "")
        + f": are privacy.bounds, and unit and day of this dump, right? If it is wrong, {again}"
        for (day, name), regions in found.items()
    ]
    more = len(lines) - MOST_NAMED
    return lines[:MOST_NAMED] + [f"and so {more:,} times more, on later days"] * (more > 0)


def _shares(metrics: pl.DataFrame, day: date) -> dict[str, Suspect]:
    own = metrics.filter(pl.col("day") == day.isoformat())
    shares = [
        pl.min_horizontal(
            pl.sum_horizontal(sorted(of & {*own.columns})) / pl.max_horizontal("rows", 1), 1.0
        ).alias(name)
        for name, of in (("clamped", CLAMPED), ("absent", ABSENT), ("doubled", DOUBLED))
    ]
    unusable = pl.sum_horizontal(sorted(UNUSABLE & {*own.columns})) / pl.col("rows")
    shares.append(pl.when(pl.col("rows") == 0).then(1.0).otherwise(unusable.clip(0, 1)).alias("unusable"))
    return {region: Suspect(*rest) for region, *rest in own.select("region", *shares).iter_rows()}
