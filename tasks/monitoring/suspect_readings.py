"""How many of a region's readings were strange, by day: what a wrong unit or sign shows first.

It depends on readings, so it is for the trusted zone alone, and so is what a person decides by it: that a day
was withdrawn for it tells of readings too.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import date

import polars as pl

from tasks.config import Settings
from tasks.contracts.results import RAW, newest_results

CLAMPED, ABSENT, DOUBLED = {"out_of_bounds", "infinite"}, {"absent"}, {"duplicates", "two_leaves"}
"""Metrics of the raw frame that count rows."""


@dataclass(frozen=True)
class Suspect:
    """Shares in [0, 1] of one region's rows of a day.

    clamped: beyond the public bounds, or infinite. absent: null or NaN. doubled: repeated rows of one step,
    and of metered input rows of one customer that lie in several leaves at one step.
    """

    clamped: float
    absent: float
    doubled: float

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """What happened to readings, in a word, and to which share of them."""
        return ("clamped", self.clamped), ("absent", self.absent), ("doubled", self.doubled)


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


def _shares(metrics: pl.DataFrame, day: date) -> dict[str, Suspect]:
    own = metrics.filter(pl.col("day") == day.isoformat(), pl.col("rows") > 0)
    shares = [
        pl.min_horizontal(pl.sum_horizontal(sorted(of & {*own.columns})) / pl.col("rows"), 1.0).alias(name)
        for name, of in (("clamped", CLAMPED), ("absent", ABSENT), ("doubled", DOUBLED))
    ]
    return {region: Suspect(*rest) for region, *rest in own.select("region", *shares).iter_rows()}
